from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError
from signal_fakes import ask, image, in_tool_result, view

from router.request.view import AudioPart, FilePart, TextPart, ToolCallPart, ToolResultPart
from router.signals.base import Evidence
from router.signals.conversation import BUILTINS, ConversationSettings
from router.signals.registry import FAMILIES

EMPTY = view()
TEXT = view(("system", "Be kind."), ("user", "Hello."))
RICH = view(
    ("user", "Look.", image("one")),
    ("assistant", ToolCallPart("/messages/1/tool_calls/0", "1", "look", "{}")),
    ("tool", in_tool_result(TextPart("/r/0", "seen"), image("two"), FilePart("/r/2"))),
    ("user", AudioPart("/messages/3/content/0", "wav")),
    tools=2,
)


@pytest.mark.parametrize(
    ("name", "empty", "text", "rich"),
    [
        ("has_images", False, False, True),
        ("has_audio", False, False, True),
        ("has_files", False, False, True),
        ("has_tools", False, False, True),
        ("has_tool_calls", False, False, True),
        ("has_tool_results", False, False, True),
        ("active_tool_loop", False, False, False),
        ("multi_turn", False, False, True),
        ("continues", False, False, False),
    ],
)
async def test_builtin_names(name: str, empty: bool, text: bool, rich: bool) -> None:
    settings = FAMILIES["conversation"].builtins[name].model_dump(exclude_none=True)
    assert [(await ask("conversation", settings, request)).matched for request in (EMPTY, TEXT, RICH)] == [
        empty,
        text,
        rich,
    ]


def test_every_builtin_is_tested_here() -> None:
    assert set(BUILTINS) == {
        f"has_{kind}" for kind in ("images", "audio", "files", "tools", "tool_calls", "tool_results")
    } | {"multi_turn", "active_tool_loop", "continues"}


@pytest.mark.parametrize("kept", [True, False])
async def test_turns_that_only_the_upstream_keeps_are_told_of(kept: bool) -> None:
    request = replace(TEXT, continues=kept)
    assert (await ask("conversation", {"continues": True}, request)).matched is kept
    assert (await ask("conversation", {"continues": False, "max_images": 0}, request)).matched is not kept


@pytest.mark.parametrize(
    ("what", "empty", "text", "rich"),
    [
        ("turns", 0, 2, 4),
        ("user_turns", 0, 1, 2),
        ("system_turns", 0, 1, 0),
        ("developer_turns", 0, 0, 0),
        ("assistant_turns", 0, 0, 1),
        ("tool_turns", 0, 0, 1),
        ("images", 0, 0, 2),
        ("audio", 0, 0, 1),
        ("files", 0, 0, 1),
        ("tools", 0, 0, 2),
        ("tool_calls", 0, 0, 1),
        ("tool_results", 0, 0, 1),
    ],
)
async def test_bounds_are_inclusive_on_both_sides(what: str, empty: int, text: int, rich: int) -> None:
    for request, count in ((EMPTY, empty), (TEXT, text), (RICH, rich)):
        for bound, expected in (
            ({f"min_{what}": count}, True),
            ({f"min_{what}": count + 1}, False),
            ({f"max_{what}": count}, True),
            ({f"min_{what}": count, f"max_{what}": count}, True),
            *([({f"max_{what}": count - 1}, False)] if count else []),
        ):
            observation = await ask("conversation", bound, request)
            assert observation.matched is expected, (bound, count)
            assert observation.value == count


CALL = ("assistant", ToolCallPart("/c/1", "1", "look", "{}"))
OTHER_CALL = ("assistant", ToolCallPart("/c/2", "2", "look", "{}"))


def result(call: str) -> ToolResultPart:
    return ToolResultPart(f"/r/{call}", call, (TextPart(f"/r/{call}/0", "seen"),))


@pytest.mark.parametrize(
    ("turns", "pending"),
    [
        ([], 0),
        ([("user", "hi")], 0),
        ([("user", "hi"), CALL], 0),
        ([("user", "hi"), CALL, ("tool", result("1"))], 1),
        ([CALL, ("tool", result("1")), OTHER_CALL, ("tool", result("2"))], 1),
        ([("assistant", CALL[1], OTHER_CALL[1]), ("tool", result("1")), ("tool", result("2"))], 2),
        ([("assistant", CALL[1], OTHER_CALL[1]), ("user", result("1"), result("2"))], 2),
        # Beside what else stands in the message, as a reminder that the application adds.
        ([CALL, ("user", result("1"), "remember the rules")], 1),
        ([CALL, ("tool", result("1")), ("assistant", "It is red.")], 0),
        ([CALL, ("tool", result("1")), ("user", "And this?")], 0),
        # Some upstreams run a tool themselves, and tell of its result within their answer.
        ([CALL, ("assistant", result("1"))], 0),
        # Nobody asked for it.
        ([("user", "hi"), ("tool", result("1"))], 0),
        ([CALL, ("tool", result("x"))], 0),
    ],
)
async def test_results_are_pending_until_the_assistant_or_a_person_speaks(turns: list[Any], pending: int) -> None:
    request = view(*turns)
    observation = await ask("conversation", {"min_pending_tool_results": 1}, request)
    assert (observation.value, observation.matched) == (pending, pending > 0)
    builtin = FAMILIES["conversation"].builtins["active_tool_loop"].model_dump(exclude_none=True)
    assert (await ask("conversation", builtin, request)).matched is (pending > 0)


async def test_a_hundred_thousand_messages_are_counted() -> None:
    request = view(*[("user", "x"), ("assistant", "y")] * 50_000)
    assert (await ask("conversation", {"min_assistant_turns": 50_000}, request)).matched is True
    assert (await ask("conversation", {"min_pending_tool_results": 1}, request)).matched is False


async def test_several_bounded_things_have_no_one_value() -> None:
    assert (await ask("conversation", {"min_images": 1, "max_tools": 9}, RICH)).value is None
    assert (await ask("conversation", {"min_images": 1, "max_images": 9}, RICH)).value == 2


async def test_all_bounds_must_hold() -> None:
    assert (await ask("conversation", {"min_images": 2, "max_tools": 2}, RICH)).matched is True
    assert (await ask("conversation", {"min_images": 2, "max_tools": 1}, RICH)).matched is False


async def test_evidence_counts_and_points_to_the_first() -> None:
    observation = await ask("conversation", {"min_images": 1, "max_audio": 0}, RICH)
    assert observation.evidence == (
        Evidence("/images/one", label="images", detail="2"),
        Evidence("/messages/3/content/0", label="audio", detail="1"),
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "at least one bound"),
        ({"min_turns": 3, "max_turns": 2}, "min_turns is greater than max_turns"),
        ({"min_turns": -1}, "greater than or equal to 0"),
        ({"min_turn": 1}, "Extra inputs"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ConversationSettings.model_validate(settings)
