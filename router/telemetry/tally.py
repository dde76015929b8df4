"""Counts and histograms by labels, and a pace for what is dear: what happens once a request, or many times.

The SDK cleans and hashes labels with every point, which takes some 5 to 10 microseconds; a tally takes about a half,
and is read when metrics are collected (`python -m tests.bench.measuring_cost`).
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

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


@dataclass(slots=True)
class Buckets:
    """How often values fell below each bound and not below the one before, and above the last; and their sum."""

    counts: list[int]
    total: float = 0.0


class HistogramTally:
    """The values of one metric by labels. One thread records, any may read."""

    def __init__(self, labels: tuple[str, ...], bounds: tuple[float, ...], most: int) -> None:
        """`most` series at most, as in a `Tally`; `bounds` are the buckets' upper ones, which belong to them."""
        self.labels = labels
        self.bounds = bounds
        self._most = most
        self._beyond = (OTHER,) * len(labels)
        self._series: dict[tuple[str, ...], Buckets] = {}

    def record(self, value: float, *values: str) -> None:
        """Count a value of these labels, in their order."""
        buckets = self._series.get(values)
        if buckets is None:
            buckets = self._begin(values)
        buckets.counts[bisect_left(self.bounds, value)] += 1
        buckets.total += value

    def series(self) -> dict[tuple[tuple[str, str], ...], Buckets]:
        """All series as they are now, by their labels; a label that is not there has no value."""
        return {
            tuple((label, word) for label, word in zip(self.labels, values, strict=True) if word): Buckets(
                list(buckets.counts), buckets.total
            )
            for values, buckets in tuple(self._series.items())
        }

    def _begin(self, values: tuple[str, ...]) -> Buckets:
        if len(self._series) >= self._most:
            values = self._beyond
        return self._series.setdefault(values, Buckets([0] * (len(self.bounds) + 1)))


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
