"""Counts by labels for observable counters, and a pace for what is dear: what happens many times a request.

The SDK cleans and hashes labels with every point, which takes about 10 microseconds; a tally takes less than one, and
is read when metrics are collected (`python -m tests.bench.measuring_cost`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from router.telemetry.names import OTHER

Reading = tuple[float, Mapping[str, str]]
"""A value and its labels."""


class Tally:
    """Counts of one metric. One thread adds, any may begin series and read."""

    def __init__(self, labels: tuple[str, ...], most: int) -> None:
        """`most` series at most; what comes beyond is counted in one more, whose labels are all `other`."""
        self._labels = labels
        self._most = most
        self._beyond = (OTHER,) * len(labels)
        self._counts: dict[tuple[str, ...], int] = {}

    def begin(self, *values: str) -> None:
        """Let the series with these labels, in their order, be there, at 0 if it is new."""
        if len(self._counts) < self._most:
            self._counts.setdefault(values, 0)

    def add(self, *values: str) -> None:
        """Count one of these labels, in their order."""
        count = self._counts.get(values)
        if count is None and len(self._counts) >= self._most:
            values = self._beyond
            count = self._counts.get(values)
        self._counts[values] = 1 if count is None else count + 1

    def readings(self) -> Iterable[Reading]:
        """All series."""
        return [(count, dict(zip(self._labels, values, strict=True))) for values, count in tuple(self._counts.items())]


class Pace:
    """So many a second, and as many at once after a pause. Belongs to one thread."""

    def __init__(self, a_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._a_second = a_second
        self._clock = clock
        self._left = a_second
        self._at = clock()

    def allows(self) -> bool:
        """Whether one more is within the pace; it counts as done then."""
        now = self._clock()
        self._left = min(self._a_second, self._left + (now - self._at) * self._a_second)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
