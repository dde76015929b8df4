"""What a condition tree can still become when some of its signals have not answered.

A sound outer bound: every value and confidence that a completion of the observations can give lies inside; a value
that is listed may be out of reach when a signal occurs twice in a tree. The plan stops asking when the bounds leave no
choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from router.policy.model import All, Any, AtLeast, Condition, Not
from router.policy.predicate import Leaf, Truth, leaf_confidence, leaf_truth
from router.signals.base import Observation, SignalName


@dataclass(frozen=True, slots=True)
class Range:
    """A closed interval of confidence."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bounds:
    """`true` and `false` are the confidences that the tree can have with that value; None: it cannot have the value.

    `unknown` says whether it can end up unknown (with confidence 0).
    """

    true: Range | None
    false: Range | None
    unknown: bool

    @property
    def value(self) -> Truth:
        """The only possible value; ask only when `settled`."""
        return None if self.unknown else self.true is not None

    @property
    def settled(self) -> bool:
        """Whether only one value is possible."""
        return (self.true is not None) + (self.false is not None) + self.unknown == 1

    @property
    def exact(self) -> bool:
        """Whether value and confidence are both beyond change."""
        if not self.settled:
            return False
        only = self.true or self.false
        return only is None or only.low == only.high

    def negated(self) -> Bounds:
        """Bounds of the negation."""
        return Bounds(self.false, self.true, self.unknown)


_OPEN = Bounds(Range(0.0, 1.0), Range(0.0, 1.0), unknown=True)


def leaf_bounds(leaf: Leaf, observation: Observation | None) -> Bounds:
    """Bounds of one leaf; None: its signal has not answered."""
    if observation is None:
        return _OPEN
    sure = leaf_confidence(leaf, observation)
    match leaf_truth(leaf, observation):
        case True:
            return Bounds(Range(sure, sure), None, unknown=False)
        case False:
            return Bounds(None, Range(sure, sure), unknown=False)
        case None:
            return Bounds(None, None, unknown=True)


def at_least_bounds(least: int, children: Sequence[Bounds]) -> Bounds:
    """Bounds of an `at_least` over these children; `all` asks for every one, `any` for one."""
    count = len(children)
    surely_true = sum(child.settled and child.true is not None for child in children)
    surely_false = sum(child.settled and child.false is not None for child in children)
    return Bounds(
        true=_range_of([(child.true, child.settled) for child in children if child.true], least),
        # It is false when so many are false that too few are left.
        false=_range_of([(child.false, child.settled) for child in children if child.false], count - least + 1),
        unknown=surely_true < least and surely_false < count - least + 1 and any(child.unknown for child in children),
    )


def _range_of(possible: Sequence[tuple[Range, bool]], wanted: int) -> Range | None:
    """Confidence of having the value through `wanted` children; None: there are not as many that can have it.

    `possible` holds each child's range and whether it is sure to have the value.
    """
    if len(possible) < wanted:
        return None
    if wanted <= 0:
        return Range(1.0, 1.0)
    high = sorted((each.high for each, _ in possible), reverse=True)[wanted - 1]
    sure = sorted((each.low for each, is_sure in possible if is_sure), reverse=True)
    if len(sure) >= wanted:
        return Range(sure[wanted - 1], high)
    # At worst no more have it than it takes, and of the others it is the least sure ones.
    return Range(min([*sure, *(each.low for each, is_sure in possible if not is_sure)]), high)


def bounds(condition: Condition, observations: Mapping[SignalName, Observation]) -> Bounds:
    """Bounds of the tree, given the signals that have answered."""
    match condition:
        case Leaf(signal=signal):
            return leaf_bounds(condition, observations.get(signal))
        case Not(of=child):
            return bounds(child, observations).negated()
        case All(of=children):
            return at_least_bounds(len(children), [bounds(child, observations) for child in children])
        case Any(of=children):
            return at_least_bounds(1, [bounds(child, observations) for child in children])
        case AtLeast(least=least, of=children):
            return at_least_bounds(least, [bounds(child, observations) for child in children])
