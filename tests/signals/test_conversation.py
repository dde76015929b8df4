from __future__ import annotations

import pytest
from pydantic import ValidationError
from signal_fakes import ask, image, in_tool_result, view

from router.request.view import AudioPart, FilePart, TextPart, ToolCallPart
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
        ("multi_turn", False, False, True),
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
    } | {"multi_turn"}


@pytest.mark.parametrize(
    ("what", "empty", "text", "rich"),
    [
        ("turns", 0, 2, 4),
        ("user_turns", 0, 1, 2),
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
            assert (await ask("conversation", bound, request)).matched is expected, (bound, count)


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
