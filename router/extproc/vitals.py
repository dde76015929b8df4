"""What a worker's observable metrics read: its queue, caches, packs, policy, bodies in hand, process.

Sources are asked by whoever collects metrics, in a thread of theirs: each only looks at numbers that are kept anyway.
"""

from __future__ import annotations

import math
import os
import resource
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from router.extproc.house import House
from router.extproc.room import Room
from router.telemetry import catalogue
from router.telemetry.instruments import Source
from router.telemetry.log import lines_dropped
from router.telemetry.tally import Reading

_STATM: Final = Path("/proc/self/statm")


def of_process() -> dict[str, Source]:
    """What every worker has from its start."""
    return {
        catalogue.PROCESS_MEMORY.name: _memory,
        catalogue.PROCESS_CPU.name: lambda: [(sum(os.times()[:2]), {})],
        catalogue.LOG_LINES_DROPPED.name: lambda: [(lines_dropped(), {})],
    }


def of_house(house: Callable[[], House], room: Room) -> dict[str, Source]:
    """What a worker has that serves; `house` gives the house that serves at the time."""

    def queue() -> Iterable[Reading]:
        return [(house().machinery.executor.waiting, {})]

    def running() -> Iterable[Reading]:
        return [(house().machinery.executor.running, {})]

    def jobs() -> Iterable[Reading]:
        executor = house().machinery.executor
        return [(executor.done, {"end": "done"}), (executor.shed, {"end": "shed"})]

    def calls() -> Iterable[Reading]:
        for remote in house().machinery.encoders.remotes:
            for end, count in remote.ends.items():
                yield count, {"tower": remote.kind, "end": end}

    def lookups() -> Iterable[Reading]:
        for kind, tally in house().machinery.cache.tallies().items():
            for result, count in (("hit", tally.hits), ("joined", tally.joined), ("miss", tally.misses)):
                yield count, {"kind": kind, "result": result}

    def kept() -> Iterable[Reading]:
        return [(tally.nbytes, {"kind": kind}) for kind, tally in house().machinery.cache.tallies().items()]

    def entries() -> Iterable[Reading]:
        return [(tally.entries, {"kind": kind}) for kind, tally in house().machinery.cache.tallies().items()]

    def cosines() -> Iterable[Reading]:
        for last in house().machinery.ledger.last():
            if last.cosine is not None:
                yield last.cosine, {"pack": last.pack, "tower": last.tower}

    def differences() -> Iterable[Reading]:
        for last in house().machinery.ledger.last():
            if last.difference is not None:
                yield last.difference, {"pack": last.pack}

    def ages() -> Iterable[Reading]:
        now = time.time()
        return [
            (max(0.0, now - last.at), {"pack": last.pack, "tower": last.tower})
            for last in house().machinery.ledger.last()
        ]

    def held_limit() -> Iterable[Reading]:
        return [] if math.isinf(room.limit) else [(room.limit, {})]

    return {
        catalogue.QUEUE_DEPTH.name: queue,
        catalogue.JOBS_RUNNING.name: running,
        catalogue.JOBS.name: jobs,
        catalogue.REMOTE_CALLS.name: calls,
        catalogue.CACHE_LOOKUPS.name: lookups,
        catalogue.CACHE_BYTES.name: kept,
        catalogue.CACHE_ENTRIES.name: entries,
        catalogue.CACHE_LIMIT.name: lambda: [(house().machinery.cache.max_bytes, {})],
        catalogue.PARITY_COSINE.name: cosines,
        catalogue.PARITY_DIFFERENCE.name: differences,
        catalogue.PARITY_AGE.name: ages,
        catalogue.POLICY_INFO.name: lambda: [(1, {"digest": house().loaded.policy.digest})],
        catalogue.HELD_BYTES.name: lambda: [(room.held, {})],
        catalogue.HELD_LIMIT.name: held_limit,
    }


def _memory() -> Iterable[Reading]:
    """Resident memory; nothing where there is no Linux's /proc (proc(5), `statm`)."""
    try:
        resident = int(_STATM.read_bytes().split()[1])
    except (OSError, IndexError, ValueError):
        return []
    return [(resident * resource.getpagesize(), {})]
