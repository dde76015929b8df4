"""What a condition asks of one observation: that it matched, that its number lies in a range, that its label is this.

The leaves of condition trees, and what they make of an observation. Trees are `logic.py`'s matter.
"""

from __future__ import annotations

from dataclasses import dataclass

from router.signals.base import Observation, SignalName

Truth = bool | None
"""True, false, or unknown."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A range of numbers; None: no bound there. `low` belongs to it unless `above`, `high` only if `closed`."""

    low: float | None = None
    high: float | None = None
    above: bool = False
    closed: bool = False

    def holds(self, number: float) -> bool:
        """Whether the number lies in it."""
        if self.low is not None and (number <= self.low if self.above else number < self.low):
            return False
        return self.high is None or (number <= self.high if self.closed else number < self.high)

    def __str__(self) -> str:
        low = "" if self.low is None else f"{'>' if self.above else '>='} {self.low:g}"
        high = "" if self.high is None else f"{'<=' if self.closed else '<'} {self.high:g}"
        return " and ".join(filter(None, (low, high)))


@dataclass(frozen=True, slots=True)
class Leaf:
    """True when the signal or projection matched, by its own threshold.

    `within` takes the place of that threshold: the observation's number (its `value` where it has one, else its
    `score`) must lie in it. `labels` ask in addition for one of these labels.
    """

    signal: SignalName
    within: Interval | None = None
    labels: frozenset[str] = frozenset()

    def __str__(self) -> str:
        label = f"label {' or '.join(sorted(self.labels))}" if self.labels else ""
        asked = ", ".join(filter(None, (str(self.within) if self.within else "", label)))
        return f"{self.signal}{f' ({asked})' if asked else ''}"


def number(observation: Observation) -> float | None:
    """What predicates compare."""
    return observation.score if observation.value is None else observation.value


def leaf_truth(leaf: Leaf, observation: Observation | None) -> Truth:
    """Unknown without an answer, and where the predicate asks for a number that the answer does not have."""
    if observation is None or observation.matched is None:
        return None
    met = observation.matched
    if leaf.within is not None:
        measured = number(observation)
        if measured is None:
            return None
        met = leaf.within.holds(measured)
    elif _told_by_label(leaf):
        met = True
    return met and (not leaf.labels or observation.label in leaf.labels)


def _told_by_label(leaf: Leaf) -> bool:
    """Whether the label alone settles it: a partition that nobody won has the label that says so, and no match."""
    return bool(leaf.labels) and leaf.within is None and leaf.signal.family == "partition"


def leaf_confidence(leaf: Leaf, observation: Observation) -> float:
    """Confidence of a leaf in its own value, in 0-1; 0 when unknown. The rules stand in `confidence.py`."""
    truth = leaf_truth(leaf, observation)
    if truth is None:
        return 0.0
    if observation.score is None or (leaf.within is not None and observation.value is not None):
        return 1.0
    score = min(max(observation.score, 0.0), 1.0)
    if leaf.within is None:
        met, sure = bool(observation.matched) or _told_by_label(leaf), score
    else:
        met = leaf.within.holds(observation.score)
        sure = min(
            score if leaf.within.low is not None else 1.0,
            1.0 - score if leaf.within.high is not None else 1.0,
        )
    # Met, and yet false: the label is another, which is as sure as what was met.
    return sure if met else 1.0 - sure
