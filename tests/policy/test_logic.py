from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_cases import NAMES, all_observations, conditions, leaf, no, observed_values, seen, unknown, yes

from router.policy.logic import at_least, conjunction, disjunction, evaluate, negation, signals_of
from router.policy.model import All, Any, Condition, Not
from router.signals.base import Observation, SignalName

TRUTHS = (True, False, None)


@pytest.mark.parametrize(
    ("left", "right", "both", "either"),
    [
        (True, True, True, True),
        (True, False, False, True),
        (True, None, None, True),
        (False, True, False, True),
        (False, False, False, False),
        (False, None, False, None),
        (None, True, None, True),
        (None, False, False, None),
        (None, None, None, None),
    ],
)
def test_kleene_tables(left: bool | None, right: bool | None, both: bool | None, either: bool | None) -> None:
    assert conjunction((left, right)) is both
    assert disjunction((left, right)) is either


def test_not_of_unknown_is_unknown() -> None:
    assert [negation(value) for value in TRUTHS] == [False, True, None]


def test_empty_all_is_true_and_empty_any_is_false() -> None:
    assert evaluate(All(()), {}) is True
    assert evaluate(Any(()), {}) is False


@given(st.lists(st.sampled_from(TRUTHS), min_size=1, max_size=5), st.data())
def test_at_least_has_all_and_any_as_its_ends_and_counts_between(
    values: list[bool | None], data: st.DataObject
) -> None:
    assert at_least(1, values) is disjunction(values)
    assert at_least(len(values), values) is conjunction(values)
    least = data.draw(st.integers(1, len(values)))
    unknowns = [index for index, value in enumerate(values) if value is None]
    completions = set()
    for truths in itertools.product((True, False), repeat=len(unknowns)):
        complete = list(values)
        for index, truth in zip(unknowns, truths, strict=True):
            complete[index] = truth
        completions.add(sum(value is True for value in complete) >= least)
    assert at_least(least, values) is (completions.pop() if len(completions) == 1 else None)


def test_tree_over_observations() -> None:
    tree = All((leaf("a"), Not(Any((leaf("b"), leaf("c"))))))
    assert evaluate(tree, seen(a=yes(), b=no(), c=no())) is True
    assert evaluate(tree, seen(a=yes(), b=no(), c=unknown())) is None
    assert evaluate(tree, seen(a=yes(), b=yes(), c=unknown())) is False
    assert evaluate(tree, seen(a=no(), b=unknown(), c=unknown())) is False


def test_a_signal_that_has_not_answered_is_unknown() -> None:
    assert evaluate(leaf("a"), {}) is None
    assert evaluate(All((leaf("a"), leaf("b"))), seen(b=no())) is False


def test_signals_of_a_tree_in_the_order_of_writing() -> None:
    tree = All((leaf("b"), Not(leaf("a")), Any((leaf("b"), leaf("c")))))
    assert [name.name for name in signals_of(tree)] == ["b", "a", "b", "c"]


@given(st.lists(st.sampled_from(TRUTHS), max_size=5))
def test_de_morgan(values: list[bool | None]) -> None:
    assert negation(conjunction(values)) is disjunction(negation(v) for v in values)
    assert negation(disjunction(values)) is conjunction(negation(v) for v in values)


@given(conditions, all_observations)
def test_double_negation_changes_nothing(condition: Condition, observations: dict[SignalName, Observation]) -> None:
    assert evaluate(Not(Not(condition)), observations) is evaluate(condition, observations)


@given(st.lists(conditions, max_size=4), all_observations)
def test_order_of_children_changes_nothing(
    children: list[Condition], observations: dict[SignalName, Observation]
) -> None:
    for kind in (All, Any):
        expected = evaluate(kind(tuple(children)), observations)
        for order in itertools.permutations(children):
            assert evaluate(kind(order), observations) is expected


@given(conditions, all_observations, st.fixed_dictionaries(dict.fromkeys(NAMES, observed_values)))
def test_learning_an_unknown_never_flips_a_decided_root(
    condition: Condition, observations: dict[SignalName, Observation], truth: dict[SignalName, Observation]
) -> None:
    before = evaluate(condition, observations)
    learned = {name: truth[name] if o.matched is None else o for name, o in observations.items()}
    after = evaluate(condition, learned)
    # An answer without a score leaves a predicate on the score unknown.
    assert after is not None or any(answer.score is None for answer in learned.values())
    assert before is None or before is after


@given(conditions, all_observations, st.sampled_from(NAMES))
def test_forgetting_a_value_never_flips_a_decided_root(
    condition: Condition, observations: dict[SignalName, Observation], name: SignalName
) -> None:
    before = evaluate(condition, observations)
    after = evaluate(condition, {**observations, name: unknown()})
    assert after is None or after is before
