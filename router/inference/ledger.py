"""What the last check of each pack found: how near it was to its reference, and when that was.

The gate writes it first, then the canary; metrics and the parity page read it. What follows from a miss is decided
elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

Tower = Literal["text", "heads", "vision", "classifier"]

Saw = Callable[[float], None]
"""Takes how near one comparison came: a cosine, or of `BY_PROBABILITY` the greatest difference of a probability."""

BY_PROBABILITY: Final[frozenset[Tower]] = frozenset({"heads", "classifier"})


def unseen(_: float) -> None:
    """For checks whose figures nobody keeps."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One tower's last check. `at` is in seconds since the epoch.

    `cosine` is the least that was seen, `difference`, of what is held by its probabilities, the greatest; the other one
    is None. A check that broke off before it compared anything has neither.
    """

    pack: str
    tower: Tower
    at: float
    cosine: float | None = None
    difference: float | None = None


class Ledger:
    """The last check of each tower. Written by one thread at a time, read by any."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._last: dict[tuple[str, Tower], Checked] = {}

    def enter(self, pack: str, tower: Tower, seen: list[float]) -> None:
        """Enter what a check of this tower saw."""
        by_probability = tower in BY_PROBABILITY
        worst = (max(seen) if by_probability else min(seen)) if seen else None
        figures = {"difference": worst} if by_probability else {"cosine": worst}
        self._last[pack, tower] = Checked(pack, tower, self._clock(), **figures)

    def last(self) -> tuple[Checked, ...]:
        """The last check of each tower, in the order of their first."""
        return tuple(self._last.values())
