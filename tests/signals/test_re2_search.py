from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from signal_fakes import turns_given

from router.signals.re2_search import LONGEST_MATCH, Hit, compile_pattern, compile_patterns, first_match
from router.signals.texts import PIECE_CHARACTERS


async def found(pattern: str, text: str) -> Hit | None:
    return await first_match((compile_pattern(pattern, "x"),), text)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("(", "x: missing \\)"), ("a*", "x: the pattern matches the empty text"), (r"(?=a)", "x: invalid perl operator")],
)
def test_a_bad_pattern_is_named(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compile_pattern(pattern, "x")


def test_a_bad_pattern_among_several_is_named_by_its_index() -> None:
    with pytest.raises(ValueError, match=r"arguments\[1\]: "):
        compile_patterns(("a", "["), "arguments")


async def test_the_first_pattern_that_occurs_is_told_with_its_group_and_place() -> None:
    programs = compile_patterns(("never", "(b)|(c)"), "x")
    assert await first_match(programs, "a c") == Hit(1, 2, (2, 3))
    assert await first_match(programs, "abc") == Hit(1, 1, (1, 2))
    assert await first_match(programs, "") is None
    assert await first_match((), "abc") is None


async def test_case_counts_only_if_asked() -> None:
    assert await found("drop", "DROP") is not None
    assert await first_match((compile_pattern("drop", "x", case_sensitive=True),), "DROP") is None


@pytest.mark.parametrize("text", ["dr\u200bop", "ｄｒｏｐ", "d\u00adrop", "d\x07rop"])
async def test_invisible_and_compatibility_characters_hide_nothing(text: str) -> None:
    hit = await found("drop", f"{text} table")
    assert hit is not None
    assert hit.span is None


async def test_lone_surrogates_are_searched_around() -> None:
    assert await found("drop", "\ud800 drop") is not None


@given(st.integers(0, 3 * PIECE_CHARACTERS), st.sampled_from(["needle", "nädel", "n" * 2_000 + "x"]))
async def test_a_match_is_found_wherever_pieces_are_cut(place: int, needle: str) -> None:
    text = "- " * (place // 2) + "-" * (place % 2) + needle + " -" * PIECE_CHARACTERS
    hit = await found(re.escape(needle) if needle.isascii() else needle, text)
    assert hit is not None
    assert hit.span == (place, place + len(needle))


@pytest.mark.parametrize("pattern", [r"^b", r"a\z", r"\bb\b"])
async def test_a_piece_s_edge_is_not_the_text_s(pattern: str) -> None:
    text = "ab" * PIECE_CHARACTERS
    assert await found(pattern, text) is None
    assert len(text) > LONGEST_MATCH


async def test_a_long_text_gives_way_to_others() -> None:
    assert await turns_given(found("needle", "x" * 40 * PIECE_CHARACTERS)) >= 40
