from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from signal_fakes import ask, said

from router.request.view import RequestView
from router.signals.base import Evidence
from router.signals.header import HeaderSettings

SECRET = "tenant-4711-hunter2"


def carrying(**headers: str) -> RequestView:
    return replace(said("hello"), headers={name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    ("settings", "value", "expected"),
    [
        ({"any": ["research", "nlp"]}, "research", "research"),
        ({"any": ["research", "nlp"]}, " NLP ", "nlp"),
        ({"any": ["research"]}, "research-2", None),
        ({"any": ["research"]}, "", None),
        ({"any": ["research"], "case_sensitive": True}, "Research", None),
        ({"any": ["Zürich"]}, "Zürich".encode().decode("latin-1"), "Zürich"),
        ({"any": ["Zürich"]}, "Zürich".encode("latin-1").decode("latin-1"), "Zürich"),
        ({"any": ["beta-"], "method": "prefix"}, "Beta-7", "beta-"),
        ({"any": ["beta-"], "method": "prefix"}, "a beta-7", None),
        ({"any": ["Beta"], "method": "prefix", "case_sensitive": True}, "beta", None),
        ({"any": [r"^b\d+$"], "method": "regex"}, "B12", r"^b\d+$"),
        ({"any": [r"^b\d+$"], "method": "regex", "case_sensitive": True}, "B12", None),
        ({"any": [r"^b\d+$"], "method": "regex"}, "b12x", None),
        ({"any": ["a", "b"], "method": "regex"}, "xb", "b"),
        ({"any": ["x"], "method": "regex"}, "\ud800x", "x"),
        ({"method": "present"}, "anything", ""),
        ({"method": "present"}, "  ", None),
    ],
)
async def test_a_value_is_compared_by_its_method(settings: dict[str, Any], value: str, expected: str | None) -> None:
    observation = await ask("header", {"name": "X-Team", **settings}, carrying(x_team=value))
    assert observation.matched is (expected is not None)
    assert observation.label == (expected or "")


@pytest.mark.parametrize("settings", [{"any": ["a"]}, {"any": ["."], "method": "regex"}, {"method": "present"}])
async def test_an_absent_header_does_not_match_and_is_no_failure(settings: dict[str, Any]) -> None:
    observation = await ask("header", {"name": "x-team", **settings}, carrying(x_other="a"))
    assert (observation.status, observation.matched) == ("observed", False)
    assert observation.evidence == (Evidence("header:x-team", detail="absent"),)


@pytest.mark.parametrize("method", ["exact", "prefix", "regex"])
async def test_neither_what_matches_nor_what_does_not_is_recorded(method: str) -> None:
    for words in (["tenant-4711"], ["other"], [SECRET.upper()]):
        settings = {"name": "x-team", "any": words, "method": method}
        observation = await ask("header", settings, carrying(x_team=SECRET))
        assert "hunter2" not in repr(observation)


async def test_hostile_values_are_only_values() -> None:
    for value in ("a" * 200_000, "a,b", "\x00", "a\r\nx-team: b", "é" * 9_000, "research\u200b"):
        observation = await ask("header", {"name": "x-team", "any": ["research"]}, carrying(x_team=value))
        assert (observation.status, observation.matched) == ("observed", False)


def test_the_header_must_be_trusted_by_its_lower_case_name() -> None:
    assert HeaderSettings.model_validate({"name": " X-Team ", "method": "present"}).trusted_headers == ("x-team",)


@given(st.text(max_size=20), st.lists(st.text(alphabet="abAB-", min_size=1, max_size=4).filter(str.strip), min_size=1))
async def test_a_prefix_matches_wherever_the_whole_value_does(value: str, words: list[str]) -> None:
    request = carrying(x_team=value)
    exact = await ask("header", {"name": "x-team", "any": words}, request)
    prefix = await ask("header", {"name": "x-team", "any": words, "method": "prefix"}, request)
    assert prefix.matched or not exact.matched


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "x-team"}, "`any` is needed"),
        ({"name": "x-team", "any": ["a"], "method": "present"}, "leave `any` out"),
        ({"name": "x-team", "any": ["("], "method": "regex"}, r"any\[0\]: missing"),
        ({"name": "x-team", "any": [" "]}, "at least 1 character"),
        ({"name": ":path", "any": ["a"]}, "pattern"),
        ({"name": "x team", "any": ["a"]}, "pattern"),
        ({"name": "", "any": ["a"]}, "pattern"),
        ({"any": ["a"]}, "Field required"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        HeaderSettings.model_validate(settings)
