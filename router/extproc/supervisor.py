"""The parent of the workers: starts them, starts the dead again, ends them all. It serves nothing itself.

One process per worker, because Envoy spreads its requests over endpoints while one process's threads share a core.
Only asyncio is used here, so that the parent stays small.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from router.extproc import heartbeat, lifeline
from router.extproc.heartbeat import pulse

logger = logging.getLogger(__name__)

ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "536870912",
    "MALLOC_TOP_PAD_": "67108864",
}
"""glibc keeps the memory of large bodies instead of mapping it anew for each; halves the CPU time of 8 MB bodies.

The environment of the supervisor wins over these.
"""


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """How workers are run.

    `argv` gives the command line for a worker's index, from 0; `environment` is added to the supervisor's. `grace` is
    how long a worker may take to end after SIGTERM, `silence` how long one may hang before it is killed. A worker that
    dies is started again after `first_delay`, doubled for each death in a row up to `last_delay`; one that lived for
    `healthy_after` starts the row anew. All in seconds.
    """

    argv: Callable[[int], Sequence[str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    grace: float = 30.0
    first_delay: float = 0.1
    last_delay: float = 10.0
    healthy_after: float = 10.0
    silence: float = 15.0


async def supervise(spec: WorkerSpec, count: int) -> int:
    """Run `count` workers until SIGTERM or SIGINT; 0 when all ended by themselves within the grace, else 1.

    A second signal kills at once. Call it from the main thread. Raises OSError when the command cannot be started.
    """
    stop, kill = asyncio.Event(), asyncio.Event()
    with _signals(stop, kill), lifeline.lifeline() as read_end:
        clean = await asyncio.gather(*(_keep(spec, index, read_end, stop, kill) for index in range(count)))
    return 0 if all(clean) else 1


async def _keep(spec: WorkerSpec, index: int, read_end: int, stop: asyncio.Event, kill: asyncio.Event) -> bool:
    """Keep one worker running until `stop`; whether the last one ended without being killed."""
    deaths = 0
    while not stop.is_set():
        started = time.monotonic()
        with pulse() as (heard, write_end):
            process = await _start(spec, index, read_end, write_end)
            await _first(process.wait(), stop.wait(), heard.stopped(spec.silence))
            if stop.is_set() and process.returncode is None:
                return await _end(process, spec.grace, kill)
            if process.returncode is None:
                logger.error("worker hangs", extra={"fields": {"worker": index, "silent_for_s": spec.silence}})
                await _kill(process)
        deaths = 1 if time.monotonic() - started >= spec.healthy_after else deaths + 1
        delay = restart_delay(spec, deaths)
        fields = {"worker": index, "status": process.returncode, "restart_in_s": round(delay, 1)}
        logger.warning("worker ended", extra={"fields": fields})
        await _first(asyncio.sleep(delay), stop.wait())
    return True


def restart_delay(spec: WorkerSpec, deaths: int) -> float:
    """Seconds until the next start after so many deaths in a row, at least 1."""
    # 2 to the 63rd is far beyond any cap; the bound keeps the power from growing without end.
    return min(spec.last_delay, spec.first_delay * 2.0 ** min(deaths - 1, 63))


async def _start(spec: WorkerSpec, index: int, read_end: int, write_end: int) -> Process:
    pipes = {lifeline.VARIABLE: str(read_end), heartbeat.VARIABLE: str(write_end)}
    environment = {**ALLOCATOR, **os.environ, **spec.environment, **pipes}
    # A group of its own: Ctrl-C at a terminal must reach the worker once, as our SIGTERM.
    return await asyncio.create_subprocess_exec(
        *spec.argv(index), env=environment, stdin=DEVNULL, pass_fds=(read_end, write_end), process_group=0
    )


async def _end(process: Process, grace: float, kill: asyncio.Event) -> bool:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    await _first(process.wait(), kill.wait(), asyncio.sleep(grace))
    if process.returncode is not None:
        return True
    logger.warning("worker killed", extra={"fields": {"pid": process.pid}})
    await _kill(process)
    return False


async def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()


async def _first(*awaitables: Coroutine[Any, Any, Any]) -> None:
    """Wait until one of these is done, and drop the others."""
    tasks = [asyncio.create_task(awaitable) for awaitable in awaitables]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def _signals(stop: asyncio.Event, kill: asyncio.Event) -> Iterator[None]:
    """The first SIGTERM or SIGINT sets `stop`, the second `kill`."""
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        (kill if stop.is_set() else stop).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
