from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from signal_fakes import DIMENSION, FakeText, said, unit

from router.request.view import TextSpan
from router.signals.anchors import (
    END_CHARACTERS,
    AnchorClasses,
    ends,
    logistic,
    pooled,
    read_ends,
    softmax,
    unit_interval,
)

cosines = st.lists(st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=4), min_size=1, max_size=5).map(
    lambda rows: np.array(rows, np.float32)
)


@given(cosines, st.integers(1, 9))
def test_the_mean_of_the_nearest_lies_between_the_mean_of_all_and_the_greatest(rows: np.ndarray, k: int) -> None:
    nearest = pooled(rows, "top_k", k)
    assert (nearest <= pooled(rows, "max") + 1e-6).all()
    assert (nearest >= pooled(rows, "mean") - 1e-6).all()


def test_top_k_averages_the_nearest_only() -> None:
    rows = np.array([[0.9, 0.1, 0.5, -0.3]], np.float32)
    assert pooled(rows, "top_k", 2) == pytest.approx([0.7])
    assert pooled(rows, "top_k", 1) == pytest.approx([0.9])
    assert pooled(rows, "top_k", 9) == pytest.approx(pooled(rows, "mean"))


@given(st.lists(st.floats(-700, 700), min_size=1, max_size=6))
def test_shares_add_up_to_one_however_large_the_logits(logits: list[float]) -> None:
    shares = softmax(np.array(logits))
    assert shares.sum() == pytest.approx(1.0)
    assert (shares >= 0).all()


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_the_logistic_curve_rises_and_stays_within_0_and_1(left: float, right: float) -> None:
    low, high = sorted((left, right))
    assert 0.0 <= logistic(low) <= logistic(high) <= 1.0


def test_the_logistic_curve() -> None:
    assert logistic(0) == 0.5
    assert logistic(1) == pytest.approx(1 / (1 + math.exp(-1)))
    assert logistic(-1) == pytest.approx(1 - logistic(1))


@given(st.floats(-2, 2))
def test_scores_lie_within_0_and_1(cosine: float) -> None:
    assert 0.0 <= unit_interval(cosine) <= 1.0
    assert unit_interval(cosine) == cosine or not 0 <= cosine <= 1


@given(st.integers(0, 3 * END_CHARACTERS))
def test_ends_are_pieces_of_the_text_at_their_places(length: int) -> None:
    text = "".join(chr(97 + i % 26) for i in range(length))
    found = ends(text)
    assert all(text[place : place + len(piece)] == piece for place, piece in found)
    assert sum(len(piece) for _, piece in found) == min(length, 2 * END_CHARACTERS)
    if found:
        assert text.startswith(found[0][1])
        assert text.endswith(found[-1][1])


async def test_spans_of_a_long_texts_end_count_from_its_beginning() -> None:
    text = "a" * (3 * END_CHARACTERS) + ". The end."
    windows = await read_ends(FakeText(), [TextSpan("/x", "user", text)])
    start, end = windows[-1].span
    assert text[start:end] == " The end."


async def test_of_a_megabyte_little_is_read() -> None:
    text = FakeText()
    await read_ends(text, said("word. " * 200_000).latest_user_texts)
    assert len(text.embedded) <= 2 * END_CHARACTERS // 5


async def test_a_class_is_as_like_as_its_nearest_examples_on_average() -> None:
    text = FakeText({"a1": unit(1), "a2": unit(0, 1), "a3": unit(0, 0, 1), "b1": unit(1, 1)})
    classes = AnchorClasses(text, {"a": ["a1", "a2", "a3"], "b": ["b1"]}, nearest=2, temperature=0.1)
    await classes.prepare()
    likeness = classes.likeness(np.stack([unit(1), unit(0, 0, 1)]))
    assert likeness == pytest.approx(np.array([[0.5, math.sqrt(0.5)], [0.5, 0.0]]), abs=1e-6)
    assert classes.labels == ("a", "b")


async def test_shares_of_classes_follow_the_temperature() -> None:
    text = FakeText({"a": unit(1), "b": unit(0, 1), "it": unit(1)})
    for temperature in (0.1, 0.5):
        classes = AnchorClasses(text, {"x": ["a"], "y": ["b"]}, nearest=5, temperature=temperature)
        await classes.prepare()
        (judged,) = await classes.judge(said("it").latest_user_texts)
        assert judged.shares[0] == pytest.approx(logistic(1 / temperature))
        assert judged.span == (0, 2)


async def test_no_text_is_judged_as_nothing() -> None:
    classes = AnchorClasses(FakeText(), {"x": ["a"], "y": ["b"]}, nearest=1, temperature=0.1)
    await classes.prepare()
    assert await classes.judge([]) == []
    assert classes.likeness(np.zeros((0, DIMENSION), np.float32)).shape == (0, 2)
