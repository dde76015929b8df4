from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.evaluation.statistics import (
    Bin,
    auc,
    auc_figure,
    calibration_error,
    curve,
    percentile,
    recall_at,
    recall_figure,
    reliability,
    wilson,
)

# Few different values, so that ties are common.
scores = st.lists(st.integers(0, 20).map(lambda n: n / 20), min_size=1, max_size=30).map(np.asarray)


def test_wilson_of_nine_in_ten_is_the_published_interval() -> None:
    figure = wilson(9, 10)
    assert figure is not None
    assert (figure.value, figure.n) == (0.9, 10)
    assert (figure.low, figure.high) == pytest.approx((0.5958, 0.9821), abs=1e-4)


def test_wilson_of_no_hits_reaches_up_to_z_squared_over_n_plus_z_squared() -> None:
    figure = wilson(0, 20)
    assert figure is not None
    assert figure.low == 0
    assert figure.high == pytest.approx(3.841459 / 23.841459, abs=1e-6)


def test_wilson_of_nothing_is_nothing() -> None:
    assert wilson(0, 0) is None


@pytest.mark.parametrize(("hits", "n"), [(-1, 3), (4, 3)])
def test_wilson_refuses_what_is_no_share(hits: int, n: int) -> None:
    with pytest.raises(ValueError, match="no share"):
        wilson(hits, n)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_share_and_mirrors(pair: tuple[int, int]) -> None:
    hits, n = pair
    figure, mirrored = wilson(hits, n), wilson(n - hits, n)
    assert figure is not None
    assert mirrored is not None
    assert 0 <= figure.low <= figure.value <= figure.high <= 1
    assert figure.low < figure.high
    assert figure.low == pytest.approx(1 - mirrored.high, abs=1e-12)


@given(st.integers(1, 50), st.integers(1, 9))
def test_more_answers_make_wilson_narrower(hits: int, times: int) -> None:
    few, many = wilson(hits, 2 * hits), wilson(hits * (times + 1), 2 * hits * (times + 1))
    assert few is not None
    assert many is not None
    assert many.high - many.low < few.high - few.low


def test_auc_by_hand_with_a_tie() -> None:
    # Pairs: 0.9>0.4, 0.9>0.5, 0.5>0.4, 0.5=0.5: 3.5 of 4.
    assert auc(np.asarray([0.9, 0.5]), np.asarray([0.4, 0.5])) == 3.5 / 4


@given(scores, scores)
def test_auc_is_the_share_of_pairs_in_order(up: np.ndarray, down: np.ndarray) -> None:
    pairs = [(p > n) + 0.5 * (p == n) for p in up for n in down]
    assert auc(up, down) == pytest.approx(sum(pairs) / len(pairs))


@given(scores, scores)
def test_auc_turns_around_with_its_classes(up: np.ndarray, down: np.ndarray) -> None:
    assert auc(up, down) == pytest.approx(1 - auc(down, up))


@given(scores, scores)
def test_auc_is_the_area_below_the_curve(up: np.ndarray, down: np.ndarray) -> None:
    points = curve(up, down)
    area = sum(
        (right.false_positives - left.false_positives) * (right.recall + left.recall) / 2
        for left, right in pairwise(points)
    )
    assert auc(up, down) == pytest.approx(area)


@given(scores, scores)
def test_curve_rises_from_nothing_to_everything(up: np.ndarray, down: np.ndarray) -> None:
    points = curve(up, down)
    assert (points[0].threshold, points[0].false_positives, points[0].recall) == (math.inf, 0, 0)
    assert (points[-1].false_positives, points[-1].recall) == (1, 1)
    assert all(a.threshold > b.threshold for a, b in pairwise(points))
    assert all(a.recall <= b.recall for a, b in pairwise(points))


def test_recall_at_a_rate_by_hand() -> None:
    negatives = np.arange(100) / 100
    positives = np.asarray([0.5, 0.97, 0.985, 0.995])
    # One of a hundred may be reached: the threshold lies above 0.98.
    assert recall_at(positives, negatives, 0.01) == 0.5
    assert recall_at(positives, negatives, 0.0) == 0.25
    assert recall_at(positives, negatives, 1.0) == 1.0


@given(scores, scores, st.floats(0, 1))
def test_recall_at_a_rate_is_the_best_point_of_the_curve_that_keeps_it(
    up: np.ndarray, down: np.ndarray, rate: float
) -> None:
    allowed = [point.recall for point in curve(up, down) if point.false_positives <= rate + 1e-12]
    assert recall_at(up, down, rate) == pytest.approx(max(allowed))


@given(scores, scores)
@settings(max_examples=8)
def test_intervals_hold_their_value_and_repeat(up: np.ndarray, down: np.ndarray) -> None:
    for figure, again in (
        (auc_figure(up, down), auc_figure(up, down)),
        (recall_figure(up, down, 0.1), recall_figure(up, down, 0.1)),
    ):
        assert figure is not None
        assert figure == again
        assert 0 <= figure.low <= figure.value <= figure.high <= 1


def test_two_answers_without_an_error_promise_little() -> None:
    figure = auc_figure(np.asarray([0.9]), np.asarray([0.1]))
    assert figure is not None
    assert figure.value == 1
    assert figure.low < 0.25


@pytest.mark.parametrize(("up", "down"), [([], [0.5]), ([0.5], []), ([], [])])
def test_one_class_alone_has_no_curve(up: list[float], down: list[float]) -> None:
    positives, negatives = np.asarray(up), np.asarray(down)
    assert auc_figure(positives, negatives) is None
    assert recall_figure(positives, negatives, 0.01) is None
    assert curve(positives, negatives) == ()


def test_reliability_and_its_error_by_hand() -> None:
    bins = reliability([0.1, 0.15, 0.95, 1.0], [False, True, True, True])
    assert bins == (
        Bin(0.1, 0.2, 2, pytest.approx(0.125), 0.5),
        Bin(0.9, 1.0, 2, pytest.approx(0.975), 1.0),
    )
    assert calibration_error(bins) == pytest.approx((2 * 0.375 + 2 * 0.025) / 4)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=50))
def test_every_score_is_in_one_bin(answers: list[tuple[float, bool]]) -> None:
    bins = reliability([score for score, _ in answers], [true for _, true in answers])
    assert sum(each.n for each in bins) == len(answers)
    error = calibration_error(bins)
    assert (error is None) == (not answers)
    assert error is None or 0 <= error <= 1


def test_percentiles_interpolate() -> None:
    assert percentile([1.0, 2.0, 4.0], 50) == 2
    assert percentile([1.0, 2.0], 50) == 1.5
    assert percentile([], 50) is None
