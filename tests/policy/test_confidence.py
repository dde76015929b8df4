from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_cases import all_observations, conditions, confidence, leaf, no, partial_observations, seen, unknown, yes

from router.policy.bounds import bounds
from router.policy.logic import evaluate
from router.policy.model import All, Any, Condition, Not
from router.signals.base import Observation, SignalName

A, B, C = leaf("a"), leaf("b"), leaf("c")


@pytest.mark.parametrize(
    ("tree", "observations", "expected"),
    [
        (A, seen(a=yes(0.8)), 0.8),
        (A, seen(a=yes()), 1.0),
        (A, seen(a=no(0.2)), 0.8),
        (A, seen(a=no()), 1.0),
        (A, seen(a=unknown()), 0.0),
        (Not(A), seen(a=no(0.2)), 0.8),
        (Not(A), seen(a=yes(0.8)), 0.8),
        (All((A, B)), seen(a=yes(0.8), b=yes(0.6)), 0.6),
        (All((A, B)), seen(a=no(0.1), b=no(0.4)), 0.9),
        (All((A, B)), seen(a=no(0.1), b=yes(1.0)), 0.9),
        (All((A, B)), seen(a=yes(0.8), b=unknown()), 0.0),
        (Any((A, B)), seen(a=yes(0.8), b=yes(0.6)), 0.8),
        # A child that missed a high threshold is no evidence for the match.
        (Any((A, B)), seen(a=no(0.9), b=yes(0.6)), 0.6),
        (Any((A, B)), seen(a=no(0.1), b=no(0.4)), 0.6),
        (Any((A, B)), seen(a=yes(0.8), b=unknown()), 0.8),
        (Any((A, B)), seen(a=no(0.8), b=unknown()), 0.0),
        (All(()), {}, 1.0),
        (Any(()), {}, 1.0),
        (All((A, Not(Any((B, C))))), seen(a=yes(0.9), b=no(0.2), c=no(0.4)), 0.6),
    ],
)
def test_confidence_of_trees(tree: Condition, observations: dict[SignalName, Observation], expected: float) -> None:
    assert confidence(tree, observations) == pytest.approx(expected)


def test_a_score_out_of_range_does_not_leave_the_unit_interval() -> None:
    assert confidence(A, seen(a=yes(1.7))) == 1.0
    assert confidence(A, seen(a=no(-0.2))) == 1.0


@given(conditions, all_observations)
def test_confidence_is_bounded_and_zero_exactly_where_it_must_be(
    condition: Condition, observations: dict[SignalName, Observation]
) -> None:
    value = confidence(condition, observations)
    assert 0.0 <= value <= 1.0
    if evaluate(condition, observations) is None:
        assert value == 0.0


@given(conditions, all_observations)
def test_confidence_of_a_negation_is_that_of_its_child(
    condition: Condition, observations: dict[SignalName, Observation]
) -> None:
    assert confidence(Not(condition), observations) == confidence(condition, observations)


@given(st.lists(conditions, max_size=4), all_observations)
def test_de_morgan_holds_for_confidence(children: list[Condition], observations: dict[SignalName, Observation]) -> None:
    left = confidence(Not(All(tuple(children))), observations)
    right = confidence(Any(tuple(Not(child) for child in children)), observations)
    assert left == right


@given(conditions, all_observations)
def test_bounds_of_a_fully_observed_tree_are_its_value_and_confidence(
    condition: Condition, observations: dict[SignalName, Observation]
) -> None:
    tree = bounds(condition, observations)
    value = evaluate(condition, observations)
    assert tree.exact
    assert tree.value is value
    only = tree.true or tree.false
    assert (only.low if only else 0.0) == confidence(condition, observations)


@given(conditions, partial_observations, all_observations)
def test_every_completion_lies_within_the_bounds(
    condition: Condition, partial: dict[SignalName, Observation], rest: dict[SignalName, Observation]
) -> None:
    tree = bounds(condition, partial)
    complete = {**rest, **partial}
    value, sure = evaluate(condition, complete), confidence(condition, complete)
    match value:
        case None:
            assert tree.unknown
        case True:
            assert tree.true is not None
            assert tree.true.low <= sure <= tree.true.high
        case False:
            assert tree.false is not None
            assert tree.false.low <= sure <= tree.false.high


@given(conditions, partial_observations, all_observations)
def test_bounds_only_ever_narrow(
    condition: Condition, partial: dict[SignalName, Observation], rest: dict[SignalName, Observation]
) -> None:
    wide = bounds(condition, partial)
    narrow = bounds(condition, {**rest, **partial})
    if wide.settled:
        assert narrow.settled
        assert narrow.value is wide.value
    if wide.exact:
        assert narrow == wide
