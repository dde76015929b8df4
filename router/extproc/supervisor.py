"""The parent of the workers: starts them, starts the dead again, replaces them one at a time, ends them all.

It serves nothing itself: while it hangs or is away, workers go on. One process per worker, because Envoy spreads its
requests over endpoints while one process's threads share a core. Only asyncio is used here, so that the parent stays
small.
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
    "MALLOC_ARENA_MAX": "1",
}
"""glibc keeps the memory of large bodies instead of mapping it anew for each; halves the CPU time of 8 MB bodies. One
arena, because glibc gives back the end of no other when `memory.py` asks for it: of 32 bodies of 8 MB, 90 MB stayed.

The environment of the supervisor wins over these.
"""


READY_LOOK = 0.1
"""Seconds between looks at whether a worker that follows another is ready."""


def _at_once(index: int, pid: int) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """How workers are run.

    `argv` gives the command line for a worker's index, from 0; `environment` is added to the supervisor's. `grace` is
    how long a worker may take to end after SIGTERM, `silence` how long one may hang before it is killed. A worker that
    dies is started again after `first_delay`, doubled for each death in a row up to `last_delay`; one that lived for
    `healthy_after` starts the row anew. All in seconds.

    For a rolling restart: `trial` is a command that must end with 0 before any worker is touched; `ready` tells by
    index and pid whether a new worker serves, which it must within `ready_within`; `settle` is the time after that in
    which Envoy notices.
    """

    argv: Callable[[int], Sequence[str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    grace: float = 30.0
    first_delay: float = 0.1
    last_delay: float = 10.0
    healthy_after: float = 10.0
    silence: float = 15.0
    trial: Sequence[str] = ()
    ready: Callable[[int, int], bool] = _at_once
    ready_within: float = 300.0
    settle: float = 1.5


@dataclass(slots=True)
class _Post:
    """A worker's place: the process that holds it, whether that hears signals, and whether it is to be followed."""

    index: int
    process: Process | None = None
    listening: bool = False
    follow: asyncio.Event = field(default_factory=asyncio.Event)

    def hears(self) -> None:
        self.listening = True


async def supervise(spec: WorkerSpec, count: int) -> int:
    """Run `count` workers until SIGTERM or SIGINT; 0 when all ended by themselves within the grace, else 1.

    A second signal kills at once. SIGHUP is passed on to the workers, which read their policy again. SIGUSR2 replaces
    the workers one after the other. Call it from the main thread. Raises OSError when the command cannot be started.
    """
    stop, kill, roll = asyncio.Event(), asyncio.Event(), asyncio.Event()
    posts = [_Post(index) for index in range(count)]
    with _signals(stop, kill, roll, posts), lifeline.lifeline() as read_end:
        rolling = asyncio.create_task(_roll_when_asked(spec, posts, roll))
        clean = await asyncio.gather(*(_keep(spec, post, read_end, stop, kill) for post in posts))
        rolling.cancel()
        await asyncio.wait([rolling])
    return 0 if all(clean) else 1


async def _keep(spec: WorkerSpec, post: _Post, read_end: int, stop: asyncio.Event, kill: asyncio.Event) -> bool:
    """Keep one worker running until `stop`; whether the last one ended without being killed.

    It is sent no signal before it can hear them: SIGHUP would end it.
    """
    deaths, index = 0, post.index
    while not stop.is_set():
        started = time.monotonic()
        # Whoever comes now is the one that was asked for.
        post.follow.clear()
        with pulse() as (heard, write_end):
            process = post.process = await _start(spec, index, read_end, write_end)
            heard.once(post.hears)
            await _first(process.wait(), stop.wait(), post.follow.wait(), heard.stopped(spec.silence))
            post.listening = False
            if process.returncode is None and (stop.is_set() or post.follow.is_set()):
                ended = await _end(process, spec.grace, kill)
                if stop.is_set():
                    return ended
                deaths = 0
                continue
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


async def _roll_when_asked(spec: WorkerSpec, posts: Sequence[_Post], roll: asyncio.Event) -> None:
    """Replace all workers whenever `roll` is set, until cancelled."""
    while True:
        await roll.wait()
        roll.clear()
        try:
            await _roll(spec, posts)
        except Exception:
            logger.exception("rolling restart broke off")


async def _roll(spec: WorkerSpec, posts: Sequence[_Post]) -> None:
    """Replace one worker after the other. It stops at the first that does not get ready: the others serve on as before.

    A place is empty while its new worker starts, so that two processes never hold one socket; Envoy sends to the
    others meanwhile.
    """
    if spec.trial and (status := await _tried(spec)):
        logger.error("rolling restart refused", extra={"fields": {"status": status}})
        return
    for post in posts:
        fields = {"worker": post.index}
        if not await _replaced(spec, post):
            logger.error("rolling restart stopped", extra={"fields": {**fields, "why": "the new worker is not ready"}})
            return
        logger.info("worker replaced", extra={"fields": fields})
        await asyncio.sleep(spec.settle)
    logger.info("rolling restart done", extra={"fields": {"workers": len(posts)}})


async def _tried(spec: WorkerSpec) -> int:
    """The exit code of the trial, which is not waited for longer than a new worker would be."""
    process = await asyncio.create_subprocess_exec(*spec.trial, env={**os.environ, **spec.environment}, stdin=DEVNULL)
    try:
        return await asyncio.wait_for(process.wait(), spec.ready_within)
    except TimeoutError:
        return -signal.SIGKILL
    finally:
        if process.returncode is None:
            await _kill(process)


async def _replaced(spec: WorkerSpec, post: _Post) -> bool:
    """Put a new worker in this place; whether it got ready in time."""
    former = post.process
    post.follow.set()
    limit = time.monotonic() + spec.grace + spec.ready_within
    # Readiness is told in a file: no event that could be waited for.
    while time.monotonic() < limit:
        process = post.process
        if process is not None and process is not former and spec.ready(post.index, process.pid):
            return True
        await asyncio.sleep(READY_LOOK)
    return False


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
def _signals(stop: asyncio.Event, kill: asyncio.Event, roll: asyncio.Event, posts: Sequence[_Post]) -> Iterator[None]:
    """The first SIGTERM or SIGINT sets `stop`, the second `kill`, SIGUSR2 `roll`; SIGHUP goes to those who listen."""
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        (kill if stop.is_set() else stop).set()

    def on_hangup() -> None:
        for post in posts:
            if post.listening and post.process is not None:
                with contextlib.suppress(ProcessLookupError):
                    post.process.send_signal(signal.SIGHUP)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    loop.add_signal_handler(signal.SIGHUP, on_hangup)
    loop.add_signal_handler(signal.SIGUSR2, roll.set)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
            loop.remove_signal_handler(number)
