"""Projections as data: signals derived from signals. What they make of observations is computed in `project.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from router.policy.predicate import Interval, Leaf
from router.signals.base import SignalName

NO_MEMBER = "none"
"""Label of a partition that no member won."""

By = Literal["match", "score", "value"]


@dataclass(frozen=True, slots=True)
class Member:
    """One rival of a partition and the label that its victory has."""

    signal: SignalName
    label: str


@dataclass(frozen=True, slots=True)
class Partition:
    """At most one of rival signals wins, and its label is the projection's.

    `exclusive`: of those that matched, the one with the highest score. `softmax`: shares of all scores, divided by
    `temperature` first; `none` is the score of winning by nobody, None leaves that out. `threshold` is the share from
    which on a winner counts.
    """

    name: SignalName
    members: tuple[Member, ...]
    method: Literal["exclusive", "softmax"]
    temperature: float = 1.0
    none: float | None = None
    threshold: float = 0.0

    @property
    def reads(self) -> tuple[SignalName, ...]:
        """What must have answered before."""
        return tuple(member.signal for member in self.members)


@dataclass(frozen=True, slots=True)
class ScoreInput:
    """One summand: `weight` times 1 or 0 by `match`, or the observation's score or value."""

    leaf: Leaf
    weight: float
    by: By


@dataclass(frozen=True, slots=True)
class WeightedScore:
    """`offset` plus the weighted inputs. `missing`: whether an unknown input makes all unknown, or adds nothing."""

    name: SignalName
    inputs: tuple[ScoreInput, ...]
    offset: float = 0.0
    missing: Literal["unknown", "skip"] = "unknown"
    threshold: float | None = None

    @property
    def reads(self) -> tuple[SignalName, ...]:
        """What must have answered before."""
        return tuple(each.leaf.signal for each in self.inputs)


@dataclass(frozen=True, slots=True)
class Band:
    """Names for ranges of a number; ranges neither overlap nor, unless the policy allows gaps, leave any out."""

    name: SignalName
    of: SignalName
    ranges: tuple[tuple[str, Interval], ...]

    @property
    def reads(self) -> tuple[SignalName, ...]:
        """What must have answered before."""
        return (self.of,)


Projection = Partition | WeightedScore | Band
PROJECTION_FAMILIES = ("partition", "score", "band")
"""First half of a projection's name."""
