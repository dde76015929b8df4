from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.signals.scan import AROUND, AT_ONCE, Finding, Found, plain, scan


def needles(_: str, data: bytes) -> Iterator[Finding]:
    for hit in re.finditer(rb"needle-\d", data):
        yield Finding(*hit.span(), "needle", 0.9)


async def found_in(text: str) -> list[Found]:
    return [found async for found in scan(text, needles)]


@pytest.mark.parametrize(
    "shift", [0, 1, AROUND - 3, AT_ONCE - AROUND - 4, AT_ONCE - 4, AT_ONCE, 2 * AT_ONCE - 5, 8_188]
)
@pytest.mark.parametrize("filler", ["x ", "é ", "漢"])
async def test_each_thing_is_found_once_wherever_a_long_text_is_cut(shift: int, filler: str) -> None:
    text = filler * (shift // len(filler)) + " needle-1 " + filler * 6_000 + "needle-2"
    spans = [found.span for found in await found_in(text)]
    assert [text[slice(*span)] for span in spans if span] == ["needle-1", "needle-2"]


@pytest.mark.parametrize("shift", range(4_060, 4_120))
async def test_no_cut_of_a_plain_text_hides_a_thing(shift: int) -> None:
    text = "x" * shift + "needle-1" + "x" * 9_000
    assert [found.span for found in await found_in(text)] == [(shift, shift + 8)]


@pytest.mark.parametrize(
    "text",
    [
        "nee\u200bdle-1",
        "ｎｅｅｄｌｅ-1",
        "nee\u00addle-1",
        "need" + "\u2060" * 5_000 + "le-1",
        "".join(chr(0xE0000 + ord(c)) for c in "needle-1"),
    ],
)
async def test_what_a_model_reads_is_found_but_its_place_is_not_claimed(text: str) -> None:
    assert [(found.span, found.label) for found in await found_in(f"{text} it is")] == [(None, "needle")]


@pytest.mark.parametrize("text", ["needle-٣", "needle‑3", "needle—3", "needle-３"])
async def test_digits_and_dashes_of_any_script_count(text: str) -> None:
    assert [found.label for found in await found_in(text)][:1] == ["needle"]


async def test_equal_values_have_one_key_and_others_another() -> None:
    one, two, three = await found_in("needle-1 needle-1 needle-2")
    assert one.key == two.key != three.key


@given(st.text(max_size=300))
def test_a_plain_text_is_as_long_as_it_was(text: str) -> None:
    assert len(plain(text)) == len(text)
    assert len(plain(text).encode("ascii", "replace")) == len(text)


@given(st.text(st.sampled_from("abc é漢\u200b\u0301ｎ"), max_size=80), st.integers(0, 80))
async def test_a_thing_is_found_in_any_surroundings(around: str, place: int) -> None:
    place %= len(around) + 1
    text = f"{around[:place]} needle-1 {around[place:]}"
    assert any(found.span is None or text[slice(*found.span)] == "needle-1" for found in await found_in(text))


async def test_nothing_is_found_in_nothing() -> None:
    assert await found_in("") == []
