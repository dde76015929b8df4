"""Kleene's three-valued logic over a condition tree: true, false, and unknown, which Python's None stands for.

Unknown is the least informed value: learning what it stands for never flips a value that was already settled. Nothing
here settles an unknown root; that is the decision's choice, see `engine.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from router.policy.model import All, Any, Condition, Leaf, Not
from router.signals.base import Observation, SignalName

Truth = bool | None


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


def evaluate(condition: Condition, observations: Mapping[SignalName, Observation]) -> Truth:
    """The tree's value; a signal that has not answered is unknown, so that true and false stay what they are later."""
    match condition:
        case Leaf(signal=signal):
            observation = observations.get(signal)
            return None if observation is None else observation.matched
        case Not(of=child):
            return negation(evaluate(child, observations))
        case All(of=children):
            return conjunction(evaluate(child, observations) for child in children)
        case Any(of=children):
            return disjunction(evaluate(child, observations) for child in children)


def signals_of(condition: Condition) -> Iterator[SignalName]:
    """Every signal that the tree names, in the order of writing, repeated where it repeats."""
    match condition:
        case Leaf(signal=signal):
            yield signal
        case Not(of=child):
            yield from signals_of(child)
        case All(of=children) | Any(of=children):
            for child in children:
                yield from signals_of(child)
