"""Remembers what was encoded, by content digest, within a number of bytes.

Chats resend their whole history: the same text or image is encoded once. Askers of one key share one computation.
Belongs to one event loop and takes no locks. It knows neither packs nor models.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

# What key, entry and array object weigh beside the numbers: tracemalloc finds 450 to 500 bytes.
ENTRY_OVERHEAD = 512


class Sized(Protocol):
    """A value that knows its size, as numpy arrays do."""

    @property
    def nbytes(self) -> int:
        """Bytes that the value keeps in memory."""
        ...


class CacheKey(NamedTuple):
    """What was computed: by which pack (digest), by which stage of it, from which content (digest)."""

    pack: str
    stage: str
    content: str | bytes


V = TypeVar("V", bound=Sized)


@dataclass(eq=False, slots=True)
class _Flight(Generic[V]):
    task: asyncio.Task[V]
    askers: int = field(default=0)


@dataclass(slots=True)
class Tally:
    """What the cache did and keeps for one stage. `joined` counts who waited for what another had asked for."""

    hits: int = 0
    joined: int = 0
    misses: int = 0
    entries: int = 0
    nbytes: int = 0


class EmbeddingCache:
    """Least recently used goes first. Values must not be changed by who gets them."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[CacheKey, Sized] = OrderedDict()
        self._flights: dict[CacheKey, _Flight[Any]] = {}
        self._tallies: defaultdict[str, Tally] = defaultdict(Tally)

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def nbytes(self) -> int:
        """Bytes kept, values and overhead; never more than `max_bytes`."""
        return self._bytes

    @property
    def max_bytes(self) -> int:
        """What may be kept."""
        return self._max_bytes

    def tallies(self) -> dict[str, Tally]:
        """By stage; may be called in any thread."""
        return dict(self._tallies)

    async def get(self, key: CacheKey, compute: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """The kept value, or what `compute()` gives; whoever asks meanwhile waits for the same computation.

        What `compute` raises goes to all who asked and is not kept. When all who asked have been cancelled, so is the
        computation.
        """
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            self._tallies[key.stage].hits += 1
            return cast("V", kept)
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(self._compute(key, compute)))
            self._tallies[key.stage].misses += 1
        else:
            self._tallies[key.stage].joined += 1
        flight.askers += 1
        try:
            return cast("V", await asyncio.shield(flight.task))
        finally:
            flight.askers -= 1
            if flight.askers == 0 and not flight.task.done():
                self._abandon(key, flight)

    async def _compute(self, key: CacheKey, compute: Callable[[], Coroutine[Any, Any, V]]) -> V:
        this = asyncio.current_task()
        try:
            value = await compute()
        finally:
            # An abandoned flight may find another one in its place.
            if (flight := self._flights.get(key)) is not None and flight.task is this:
                del self._flights[key]
        self._keep(key, value)
        return value

    def _abandon(self, key: CacheKey, flight: _Flight[Any]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        flight.task.cancel()
        flight.task.add_done_callback(_look_at_result)

    def _keep(self, key: CacheKey, value: Sized) -> None:
        size = value.nbytes + ENTRY_OVERHEAD
        if size > self._max_bytes:
            return
        if (old := self._kept.pop(key, None)) is not None:
            self._weigh(key, -1, old.nbytes)
        while self._bytes + size > self._max_bytes:
            leaving, oldest = self._kept.popitem(last=False)
            self._weigh(leaving, -1, oldest.nbytes)
        self._kept[key] = value
        self._weigh(key, 1, value.nbytes)

    def _weigh(self, key: CacheKey, entries: int, nbytes: int) -> None:
        """So many entries more, of this size each."""
        tally, size = self._tallies[key.stage], entries * (nbytes + ENTRY_OVERHEAD)
        tally.entries += entries
        tally.nbytes += size
        self._bytes += size


def _look_at_result(task: asyncio.Task[Any]) -> None:
    """An abandoned computation may still fail; nobody is left to be told."""
    if not task.cancelled():
        task.exception()
