"""Kleene's three-valued logic over a condition tree: true, false, and unknown, which Python's None stands for.

Unknown is the least informed value: learning what it stands for never flips a value that was already settled. Nothing
here settles an unknown root; that is the decision's choice, see `engine.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from router.policy.model import All, Any, AtLeast, Condition, Not
from router.policy.predicate import Leaf, Truth, leaf_truth
from router.signals.base import Observation, SignalName


def negation(value: Truth) -> Truth:
    """Not of unknown is unknown."""
    return None if value is None else not value


def conjunction(values: Iterable[Truth]) -> Truth:
    """False if any is false, else unknown if any is unknown, else true; true when empty."""
    result: Truth = True
    for value in values:
        if value is False:
            return False
        if value is None:
            result = None
    return result


def disjunction(values: Iterable[Truth]) -> Truth:
    """True if any is true, else unknown if any is unknown, else false; false when empty."""
    return negation(conjunction(negation(value) for value in values))


def at_least(least: int, values: Sequence[Truth]) -> Truth:
    """True if `least` are true, false if so many are false that this cannot be, else unknown."""
    true, false = sum(value is True for value in values), sum(value is False for value in values)
    if true >= least:
        return True
    return False if len(values) - false < least else None


def evaluate(condition: Condition, observations: Mapping[SignalName, Observation]) -> Truth:
    """The tree's value; a signal that has not answered is unknown, so that true and false stay what they are later."""
    match condition:
        case Leaf(signal=signal):
            return leaf_truth(condition, observations.get(signal))
        case Not(of=child):
            return negation(evaluate(child, observations))
        case All(of=children):
            return conjunction(evaluate(child, observations) for child in children)
        case Any(of=children):
            return disjunction(evaluate(child, observations) for child in children)
        case AtLeast(least=least, of=children):
            return at_least(least, [evaluate(child, observations) for child in children])


def leaves_of(condition: Condition) -> Iterator[Leaf]:
    """Every leaf of the tree, in the order of writing, repeated where it repeats."""
    match condition:
        case Leaf():
            yield condition
        case Not(of=child):
            yield from leaves_of(child)
        case All(of=children) | Any(of=children) | AtLeast(of=children):
            for child in children:
                yield from leaves_of(child)


def signals_of(condition: Condition) -> Iterator[SignalName]:
    """Every signal and projection that the tree names, in the order of writing, repeated where it repeats."""
    return (leaf.signal for leaf in leaves_of(condition))
