"""What has been learnt and measured so far, at one moment: rewards by decision and model, speeds by model.

Immutable, so that a choice sees one state from beginning to end. How it changes is `learning.py`, where it is kept
`state_file.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from router.selection.model import SpeedMeasure

START_RATING: Final = 1500.0
"""Everyone's first rating, as Elo's scale has it."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One model under one decision: discounted sums of rewards and of what they fell short of 1, the rating, counts.

    `rewards` and `comparisons` count all that ever came.
    """

    gained: float = 0.0
    missed: float = 0.0
    rating: float = START_RATING
    rewards: int = 0
    comparisons: int = 0


@dataclass(frozen=True, slots=True)
class Speed:
    """The latest times of one model in milliseconds, oldest first, and its load (0-1; None: never said)."""

    ttft: tuple[float, ...] = ()
    latency: tuple[float, ...] = ()
    load: float | None = None

    def percentile(self, measure: SpeedMeasure, percent: float) -> float | None:
        """By the nearest rank; None where nothing was measured."""
        times = sorted(self.ttft if measure == "ttft" else self.latency)
        if not times:
            return None
        return times[min(len(times) - 1, int(len(times) * percent / 100))]


NO_ARM: Final = Arm()
NO_SPEED: Final = Speed()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`version` counts what was taken in; `digest` is the SHA-256 in hex of the state's file, empty for none."""

    version: int = 0
    arms: Mapping[str, Mapping[str, Arm]] = field(default_factory=lambda: MappingProxyType({}))
    speeds: Mapping[str, Speed] = field(default_factory=lambda: MappingProxyType({}))
    digest: str = ""

    def arm(self, decision: str, model: str) -> Arm:
        """What is known of the model under the decision."""
        return self.arms.get(decision, {}).get(model, NO_ARM)

    def speed(self, model: str) -> Speed:
        """What was measured of the model."""
        return self.speeds.get(model, NO_SPEED)


EMPTY: Final = Snapshot()


def no_state() -> Snapshot:
    """The state where none is kept."""
    return EMPTY
