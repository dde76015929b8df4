from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from signal_fakes import ask, said

from router.request.view import RequestView
from router.signals.base import Evidence, Observation
from router.signals.role import RoleSettings


def held(value: str | None) -> RequestView:
    return replace(said("hello"), headers={} if value is None else {"x-user-roles": value})


async def asked(value: str | None, *roles: str, **rest: Any) -> Observation:
    return await ask("role", {"header": "X-User-Roles", "any": list(roles), **rest}, held(value))


@pytest.mark.parametrize(
    ("value", "rest", "expected"),
    [
        ("admin", {}, True),
        ("user, Admin ,guest", {}, True),
        ("user,site-admin,admins", {}, False),
        ("user,admin x", {}, False),
        (",,,", {}, False),
        ("", {}, False),
        (None, {}, False),
        ("Admin", {"case_sensitive": True}, False),
        ("user admin", {}, False),
        ("user admin", {"separator": " "}, True),
        ("user; admin", {"separator": ";"}, True),
        ("user||admin", {"separator": "||"}, True),
    ],
)
async def test_a_role_is_a_whole_item_of_the_list(value: str | None, rest: dict[str, Any], expected: bool) -> None:
    observation = await asked(value, "admin", **rest)
    assert (observation.status, observation.matched) == ("observed", expected)


async def test_one_of_several_roles_is_enough_and_only_those_asked_for_are_recorded() -> None:
    observation = await asked("hunter2,nurse,clinician", "clinician", "admin", "nurse")
    assert (observation.matched, observation.label) == (True, "clinician")
    pointer = "header:x-user-roles"
    assert observation.evidence == (Evidence(pointer, label="clinician"), Evidence(pointer, label="nurse"))
    assert "hunter2" not in repr(await asked("hunter2", "admin"))


async def test_a_huge_list_is_only_a_list() -> None:
    assert (await asked("user," * 50_000 + "admin", "admin")).matched is True


@given(st.lists(st.text(alphabet="abc-", min_size=1, max_size=4), max_size=6), st.sampled_from(["a", "ab", "c-"]))
async def test_membership_is_that_of_the_list(roles: list[str], role: str) -> None:
    assert (await asked(", ".join(roles), role)).matched is (role in roles)


def test_the_header_must_be_trusted() -> None:
    assert RoleSettings.model_validate({"header": "X-Roles", "any": ["a"]}).trusted_headers == ("x-roles",)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"header": "x", "any": []}, "at least 1 item"),
        ({"header": "x", "any": ["a"], "separator": ""}, "at least 1 character"),
        ({"header": "x y", "any": ["a"]}, "pattern"),
        ({"any": ["a"]}, "Field required"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RoleSettings.model_validate(settings)
