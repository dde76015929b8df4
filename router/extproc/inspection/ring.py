"""The requests that a worker handled last, for whoever looks at it live: so many, and so many bytes.

It is told by the teller, off the request path, and asked from other threads. Documents are made only when
somebody asks; until then the records themselves are held, which were made anyway.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from router.extproc.telling.handled import Handled

REQUESTS: Final = 512
BYTES: Final = 16 * 2**20

BARE_BYTES: Final = 3000
OBSERVATION_BYTES: Final = 500
EVIDENCE_BYTES: Final = 300
"""About what a record takes in memory, and each observation and piece of evidence of it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which are wanted; what is empty does not matter. `since` is in nanoseconds of Unix time."""

    decision: str = ""
    outcome: str = ""
    model: str = ""
    signal: str = ""
    failed: bool = False
    since: int = 0

    def takes(self, handled: Handled, decision: str) -> bool:
        """Whether this request is among them; `decision` is the name of what became of it."""
        record = handled.record
        return (
            handled.began >= self.since
            and self.decision in ("", decision)
            and self.outcome in ("", handled.outcome)
            and self.model in ("", record.model if record is not None else None)
            and (not self.signal or _matched(handled, self.signal))
            and (not self.failed or _failed(handled))
        )


class Ring:
    """The newest come last and push the oldest out. Also counts requests by decision, for each policy that serves."""

    def __init__(self, requests: int = REQUESTS, limit: int = BYTES) -> None:
        self._limit = limit
        self._requests = requests
        self._held: deque[tuple[Handled, int]] = deque()
        self._bytes = 0
        self._policy = ""
        self._hits: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take(self, handled: Handled) -> None:
        """Remember it. See `Tell`."""
        size = _size(handled)
        with self._lock:
            self._held.append((handled, size))
            self._bytes += size
            while len(self._held) > self._requests or self._bytes > self._limit:
                self._bytes -= self._held.popleft()[1]
            if handled.policy != self._policy:
                # Requests that a former policy still had are told late, at most a few: they begin the count anew.
                self._policy, self._hits = handled.policy, Counter()
            self._hits[decision_of(handled)] += 1

    def newest(self, wanted: Wanted, limit: int) -> Iterator[Handled]:
        """Those that are wanted, the newest first, at most `limit`."""
        with self._lock:
            held = [handled for handled, _ in self._held]
        found = 0
        for handled in reversed(held):
            if found >= limit:
                return
            if wanted.takes(handled, decision_of(handled)):
                found += 1
                yield handled

    def find(self, identifier: str) -> Handled | None:
        """The one of this identifier."""
        with self._lock:
            return next((one for one, _ in reversed(self._held) if one.identifier == identifier), None)

    def hits(self, policy: str) -> Mapping[str, int]:
        """Requests by decision since this policy began to serve."""
        with self._lock:
            return dict(self._hits) if policy == self._policy else {}


def decision_of(handled: Handled) -> str:
    """The decision's name, as headers say it: `default` where none won, `failure` where none could be made."""
    return handled.record.decision if handled.record is not None else "failure"


def _matched(handled: Handled, signal: str) -> bool:
    if handled.record is None:
        return False
    return any(str(name) == signal and one.matched for name, one in handled.record.verdict.observations.items())


def _failed(handled: Handled) -> bool:
    if handled.record is None:
        return True
    return any(one.status != "observed" for one in handled.record.verdict.observations.values())


def _size(handled: Handled) -> int:
    if handled.record is None:
        return BARE_BYTES
    observations = handled.record.verdict.observations.values()
    pieces = sum(len(one.evidence) for one in observations)
    return BARE_BYTES + OBSERVATION_BYTES * len(observations) + EVIDENCE_BYTES * pieces
