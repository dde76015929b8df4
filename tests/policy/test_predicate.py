from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_cases import intervals, leaf, no, observed_values, unknown, yes

from router.policy.predicate import Interval, Leaf, leaf_confidence, leaf_truth, number
from router.signals.base import Observation, SignalName

A = SignalName("fake", "a")


@pytest.mark.parametrize(
    ("interval", "inside", "outside"),
    [
        (Interval(0.3, 0.6), (0.3, 0.59), (0.29, 0.6)),
        (Interval(0.3, 0.6, above=True, closed=True), (0.31, 0.6), (0.3, 0.61)),
        (Interval(None, 5), (-1e9, 4.9), (5,)),
        (Interval(5, None), (5, 1e9), (4.9,)),
        (Interval(2, 2, closed=True), (2,), (1.9, 2.1)),
    ],
)
def test_interval_holds_what_lies_in_it(
    interval: Interval, inside: tuple[float, ...], outside: tuple[float, ...]
) -> None:
    assert all(interval.holds(value) for value in inside)
    assert not any(interval.holds(value) for value in outside)


def test_a_bound_takes_the_place_of_the_signals_own_threshold() -> None:
    strict = Leaf(A, Interval(0.9))
    assert leaf_truth(strict, yes(0.8)) is False
    assert leaf_truth(strict, no(0.95)) is True
    assert leaf_truth(Leaf(A, Interval(None, 0.2)), no(0.1)) is True


def test_bounds_compare_the_value_where_there_is_one() -> None:
    counted = Observation("observed", False, 0.5, value=40.0)
    assert number(counted) == 40.0
    assert leaf_truth(Leaf(A, Interval(32)), counted) is True
    assert leaf_confidence(Leaf(A, Interval(32)), counted) == 1.0


def test_a_bound_on_an_answer_without_a_number_is_unknown() -> None:
    assert leaf_truth(Leaf(A, Interval(0.5)), yes()) is None
    assert leaf_confidence(Leaf(A, Interval(0.5)), yes()) == 0.0


def test_a_label_is_asked_beside_the_match() -> None:
    law = Leaf(A, labels=frozenset(("law", "health")))
    assert leaf_truth(law, Observation("observed", True, 0.9, label="law")) is True
    assert leaf_truth(law, Observation("observed", True, 0.9, label="physics")) is False
    assert leaf_truth(law, Observation("observed", False, 0.2, label="law")) is False
    assert leaf_truth(law, unknown()) is None


def test_another_label_is_as_sure_as_what_was_found() -> None:
    law = Leaf(A, labels=frozenset(("law",)))
    assert leaf_confidence(law, Observation("observed", True, 0.9, label="physics")) == pytest.approx(0.9)
    assert leaf_confidence(law, Observation("observed", False, 0.2, label="law")) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("interval", "score", "sure"),
    [
        (Interval(0.7), 0.9, 0.9),
        (Interval(0.7), 0.6, 0.4),
        (Interval(None, 0.3), 0.1, 0.9),
        (Interval(None, 0.3), 0.4, 0.4),
        (Interval(0.3, 0.6), 0.4, 0.4),
        (Interval(0.3, 0.6), 0.9, 0.9),
    ],
)
def test_confidence_of_a_bound_on_the_score(interval: Interval, score: float, sure: float) -> None:
    assert leaf_confidence(Leaf(A, interval), yes(score)) == pytest.approx(sure)


@given(intervals, observed_values)
def test_confidence_of_a_leaf_lies_in_the_unit_interval(interval: Interval, observation: Observation) -> None:
    assert 0.0 <= leaf_confidence(Leaf(A, interval), observation) <= 1.0


@given(st.floats(-2, 2), intervals)
def test_a_number_lies_in_a_range_or_in_what_is_left_of_it(value: float, interval: Interval) -> None:
    below = interval.low is not None and not Interval(interval.low, None, interval.above).holds(value)
    above = interval.high is not None and not Interval(None, interval.high, closed=interval.closed).holds(value)
    assert interval.holds(value) is not (below or above)


def test_a_leaf_says_what_it_asks() -> None:
    assert str(leaf("a")) == "fake/a"
    assert str(Leaf(A, Interval(0.5, 0.9, closed=True), frozenset(("y", "x")))) == (
        "fake/a (>= 0.5 and <= 0.9, label x or y)"
    )


def test_that_nobody_won_a_partition_can_be_asked_by_its_label() -> None:
    subject = SignalName("partition", "subject")
    nobody, somebody = Leaf(subject, labels=frozenset(("none",))), Leaf(subject, labels=frozenset(("a",)))
    lost = Observation("observed", False, 0.4, label="none")
    won = Observation("observed", True, 0.9, label="a")
    assert (leaf_truth(nobody, lost), leaf_truth(somebody, lost), leaf_truth(Leaf(subject), lost)) == (
        True,
        False,
        False,
    )
    assert (leaf_truth(nobody, won), leaf_truth(somebody, won)) == (False, True)
    assert leaf_confidence(nobody, won) == pytest.approx(0.9)
    # A signal's own label is what it saw best, matched or not.
    assert leaf_truth(Leaf(A, labels=frozenset(("none",))), lost) is False
