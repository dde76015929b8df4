"""What a condition tree can still become when some of its signals have not answered.

A sound outer bound: every value and confidence that a completion of the observations can give lies inside; a value
that is listed may be out of reach when a signal occurs twice in a tree. The plan stops asking when the bounds leave no
choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from router.policy.confidence import leaf_confidence
from router.policy.logic import Truth
from router.policy.model import All, Any, Condition, Leaf, Not
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


def leaf_bounds(observation: Observation | None) -> Bounds:
    """Bounds of one leaf; None: its signal has not answered."""
    if observation is None:
        return _OPEN
    sure = leaf_confidence(observation)
    match observation.matched:
        case True:
            return Bounds(Range(sure, sure), None, unknown=False)
        case False:
            return Bounds(None, Range(sure, sure), unknown=False)
        case None:
            return Bounds(None, None, unknown=True)


def conjunction_bounds(children: Sequence[Bounds]) -> Bounds:
    """Bounds of an `all` over these children."""
    true = [child.true for child in children if child.true is not None]
    false = [child.false for child in children if child.false is not None]
    surely_false = [child.false for child in children if child.false is not None and child.settled]
    return Bounds(
        true=Range(min((r.low for r in true), default=1.0), min((r.high for r in true), default=1.0))
        if len(true) == len(children)
        else None,
        # The surest false child counts, and all of those that are surely false are there to count.
        false=Range(max((r.low for r in surely_false), default=0.0), max(r.high for r in false)) if false else None,
        unknown=not surely_false
        and all(child.true is not None or child.unknown for child in children)
        and any(child.unknown for child in children),
    )


def bounds(condition: Condition, observations: Mapping[SignalName, Observation]) -> Bounds:
    """Bounds of the tree, given the signals that have answered."""
    match condition:
        case Leaf(signal=signal):
            return leaf_bounds(observations.get(signal))
        case Not(of=child):
            return bounds(child, observations).negated()
        case All(of=children):
            return conjunction_bounds([bounds(child, observations) for child in children])
        case Any(of=children):
            return conjunction_bounds([bounds(child, observations).negated() for child in children]).negated()
