from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from signal_fakes import ask, said

from router.request.view import RequestView
from router.signals.base import Evidence, Observation
from router.signals.metadata import LARGEST, MetadataSettings

CLAIMS = {
    "department": "Radiology",
    "level": 3,
    "share": 0.5,
    "verified": True,
    "realm_access": {"roles": ["phi-reader", "user"]},
    "https://example.com/team": "über",
    "nothing": None,
    "empty": [],
    "secret": "hunter2",
}


def carrying(value: str | None) -> RequestView:
    return replace(said("hello"), headers={} if value is None else {"x-jwt-payload": value})


async def claimed(value: str | None, key: str, *words: object, **rest: Any) -> Observation:
    settings: dict[str, Any] = {"header": "X-JWT-Payload", "key": key, **rest}
    if words:
        settings["any"] = list(words)
    return await ask("metadata", settings, carrying(value))


def spelled(claims: object) -> list[str]:
    """The object as JSON, and in every base64 that a filter may write."""
    text = json.dumps(claims, ensure_ascii=False)
    standard = base64.b64encode(text.encode()).decode()
    urls = base64.urlsafe_b64encode(text.encode()).decode()
    return [text, f"  {text}", text.encode().decode("latin-1"), standard, urls, standard.rstrip("="), urls.rstrip("=")]


@pytest.mark.parametrize(
    ("key", "words", "expected"),
    [
        ("department", ["radiology"], "radiology"),
        ("/department", ["oncology", "radiology"], "radiology"),
        ("department", ["oncology"], None),
        ("department", [], ""),
        ("level", [3], "3"),
        ("level", [3.0], "3.0"),
        ("level", ["3"], None),
        ("level", [True], None),
        ("share", [0.5], "0.5"),
        ("verified", [True], "true"),
        ("verified", [1], None),
        ("verified", ["true"], None),
        ("verified", [False], None),
        ("realm_access.roles", ["phi-reader"], "phi-reader"),
        ("realm_access.roles.1", ["phi-reader"], None),
        ("/realm_access/roles/1", ["user"], "user"),
        ("/https:~1~1example.com~1team", ["über"], "über"),
        ("nothing", [], None),
        ("empty", [], None),
        ("missing", [], None),
        ("department.deeper", [], None),
    ],
)
async def test_a_value_by_its_path_in_every_spelling(key: str, words: list[object], expected: str | None) -> None:
    for value in spelled(CLAIMS):
        observation = await claimed(value, key, *words)
        assert (observation.status, observation.matched) == ("observed", expected is not None), value
        assert observation.label == (expected or "")


async def test_case_counts_only_if_asked() -> None:
    (value, *_) = spelled(CLAIMS)
    assert (await claimed(value, "department", "radiology", case_sensitive=True)).matched is False
    assert (await claimed(value, "department", "Radiology", case_sensitive=True)).matched is True


@pytest.mark.parametrize("value", [None, "", "  "])
async def test_an_absent_header_does_not_match_and_is_no_failure(value: str | None) -> None:
    observation = await claimed(value, "department")
    assert (observation.status, observation.matched) == ("observed", False)
    assert observation.evidence == (Evidence("header:x-jwt-payload", detail="absent"),)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("hunter2!", "neither JSON nor base64"),
        ("eyJh.eyJh.c2ln", "neither JSON nor base64"),
        ("aHVudGVyMg==", "not a JSON object"),
        (base64.b64encode(b"[1]").decode(), "not a JSON object"),
        (base64.b64encode(b"\xff\xfe").decode(), "not a JSON object"),
        ('{"department": "hunter2"', "not a JSON object"),
        ('{"department": "radiology", "department": "hunter2"}', "not a JSON object"),
        ('{"department": ' + "[" * 100_000, "not a JSON object"),
        ("{" + " " * LARGEST + "}", "too long to be read"),
    ],
)
async def test_what_carries_no_object_leaves_the_answer_unknown(value: str, reason: str) -> None:
    observation = await claimed(value, "department", "radiology")
    assert (observation.status, observation.matched, observation.reason) == ("failed", None, reason)
    assert "hunter2" not in repr(observation)


async def test_an_object_where_a_value_should_be_leaves_the_answer_unknown() -> None:
    observation = await claimed(spelled(CLAIMS)[0], "realm_access", "x")
    assert (observation.status, observation.reason) == ("failed", "an object where a value should be")
    mixed = spelled({"a": [{"b": 1}, "x"]})[0]
    assert (await claimed(mixed, "a", "x")).matched is True


async def test_no_value_is_recorded() -> None:
    for words in ((), ("hunter2x",), ("HUNTER2x", "other")):
        assert "hunter2'" not in repr(await claimed(spelled(CLAIMS)[0], "secret", *words))


@given(
    st.dictionaries(st.text(min_size=1), st.text() | st.integers() | st.booleans() | st.none(), min_size=1),
    st.booleans(),
)
async def test_whatever_a_claim_is_it_matches_itself_alone(claims: dict[str, Any], encoded: bool) -> None:
    name, value = next(iter(claims.items()))
    text = json.dumps(claims)
    header = base64.b64encode(text.encode()).decode() if encoded else text
    key = "/" + name.replace("~", "~0").replace("/", "~1")
    if key.strip() != key or (isinstance(value, str) and not value.strip()):
        return
    if value is None:
        assert (await claimed(header, key)).matched is False
        return
    assert (await claimed(header, key, value)).matched is True
    assert (await claimed(header, key, f"{value}x", case_sensitive=True)).matched is False


def test_the_header_must_be_trusted() -> None:
    settings = MetadataSettings.model_validate({"header": "X-JWT", "key": "a"})
    assert settings.trusted_headers == ("x-jwt",)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"header": "x", "key": "a..b"}, "a path is names joined by dots"),
        ({"header": "x", "key": "/~"}, "JSON pointer"),
        ({"header": "x", "key": " "}, "at least 1 character"),
        ({"header": "x", "key": "a", "any": []}, "at least 1 item"),
        ({"header": "x", "key": "a", "any": [None]}, "any"),
        ({"header": "x", "key": "a", "any": [[1]]}, "any"),
        ({"header": ":authority", "key": "a"}, "pattern"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        MetadataSettings.model_validate(settings)
