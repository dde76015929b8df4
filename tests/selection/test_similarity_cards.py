from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from selection_cases import request, upstream

from router.request.view import TextPart, Turn
from router.selection.similarity import READ_AT_MOST, Cards

CODER, NURSE, PLAIN = upstream("coder", card="code"), upstream("nurse", card="dose"), upstream("plain")


class Words:
    """Embeds a text by which of two words it holds."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        rows = np.array([["code" in text, "dose" in text] for text in texts], dtype=np.float32)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)


async def test_the_last_user_turn_is_held_against_each_card() -> None:
    embed = Words()
    cards = Cards(embed)
    await cards.prepare([CODER, NURSE, PLAIN])
    assert embed.asked == ["code", "dose"]
    view = request(("user", "a dose"), ("assistant", "x"), ("user", "some code"))
    assert await cards.similarities(view, [CODER, NURSE]) == {"coder": 1.0, "nurse": 0.0}
    assert embed.asked[2:] == ["some code"]


@pytest.mark.parametrize("turns", [(), (("system", "code"),), (("user", " \n"),)])
async def test_where_the_user_says_nothing_there_is_nothing_to_compare(turns: tuple[tuple[str, str], ...]) -> None:
    embed = Words()
    assert await Cards(embed).similarities(request(*turns), [CODER]) is None  # type: ignore[arg-type]
    assert embed.asked == []


async def test_a_long_turn_is_read_at_its_beginning_and_a_broken_character_breaks_nothing() -> None:
    embed = Words()
    cards = Cards(embed)
    await cards.prepare([CODER])
    view = request(("user", "code \ud800" + "x" * 3 * READ_AT_MOST))
    view = replace(view, turns=(*view.turns[:-1], Turn("/0", "user", (*view.turns[-1].parts, TextPart("/t", "dose")))))
    assert await cards.similarities(view, [CODER]) == {"coder": 1.0}
    assert len(embed.asked[-1]) == READ_AT_MOST
