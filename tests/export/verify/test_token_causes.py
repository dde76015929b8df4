"""Why token ids differ, from the ids alone."""

from __future__ import annotations

import numpy as np
import pytest

from router.export.verify.tokens import explain_tokens

PAD, END = 0, 1


def padded(ids: list[int], length: int, pad: int = PAD) -> list[int]:
    return [*ids, *[pad] * (length - len(ids))]


@pytest.mark.parametrize(
    ("ours", "theirs", "cause", "detail"),
    [
        (padded([5, 6, END], 6), padded([5, 6, END], 8), "padding", "padded to 6 instead of 8"),
        (padded([5, 6, END], 8), [5, 6, END], "padding", "padded to 8 instead of 3"),
        (
            padded([5, 6, END], 8),
            padded([5, 6, END], 8, 9),
            "padding",
            "padded with id 0, the reference pads with id 9",
        ),
        ([5, 6, 7, END], [5, 6, 7, 8, 9, END], "truncation", "cut at 4 tokens, the reference at 6"),
        ([2, 5, 6, 3], [5, 6], "tokeniser", "special tokens in front or behind differ"),
        ([5, 6, 7], [8, 9], "tokeniser", "another vocabulary, normaliser or pre-tokeniser"),
    ],
)
def test_ids_that_differ_have_a_cause(ours: list[int], theirs: list[int], cause: str, detail: str) -> None:
    a, b = np.array(ours, dtype=np.int32), np.array(theirs, dtype=np.int32)
    assert explain_tokens([("Text", a, b)], lambda text: a, PAD) == ((cause, detail), 1.0)


def test_the_cause_of_most_texts_is_named_with_its_share() -> None:
    padding = (np.array([5, 0], dtype=np.int32), np.array([5, 0, 0], dtype=np.int32))
    other = (np.array([5], dtype=np.int32), np.array([7, 8], dtype=np.int32))
    cases = [("a", *padding), ("b", *padding), ("c", *padding), ("d", *other)]
    (cause, _), share = explain_tokens(cases, lambda text: other[0], PAD)
    assert (cause, share) == ("padding", 0.75)
