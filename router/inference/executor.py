"""Runs model work in a few threads, so that the event loop never waits for a forward pass.

It bounds what runs and what waits, and sheds the rest at once. It knows nothing about models, batches or caches.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, TypeVar

from router.telemetry.waiting import WAITING

T = TypeVar("T")

_GIVES_WAY: Final[ContextVar[bool]] = ContextVar("gives way", default=False)


@contextmanager
def giving_way() -> Iterator[None]:
    """What is asked for in here, and by tasks that begin in here, waits behind all that is asked for elsewhere."""
    before = _GIVES_WAY.set(True)
    try:
        yield
    finally:
        _GIVES_WAY.reset(before)


class Overloaded(Exception):
    """More work waits than may wait; ask again later or decide without the answer."""


class InferenceExecutor:
    """`threads` jobs run at a time and `queue` more may wait, in the order they came. Belongs to one event loop.

    As many again may wait that give way: they take no place of the others, and start when none of the others waits.
    """

    def __init__(self, threads: int, queue: int) -> None:
        if threads < 1 or queue < 0:
            raise ValueError(f"threads={threads} must be at least 1 and queue={queue} at least 0")
        self.threads = threads
        self._queue = queue
        self._line: dict[asyncio.Future[None], None] = {}
        self._behind: dict[asyncio.Future[None], None] = {}
        self._free = threads
        self._closed = False
        self._done = 0
        self._shed = 0
        self._begun: dict[concurrent.futures.Future[Any], float] = {}
        self._pool = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="inference")

    @property
    def waiting(self) -> int:
        """Jobs that have not started."""
        return len(self._line) + len(self._behind)

    @property
    def running(self) -> int:
        """Jobs that hold a thread."""
        return self.threads - self._free

    @property
    def done(self) -> int:
        """Jobs that have run so far, whatever they gave."""
        return self._done

    @property
    def shed(self) -> int:
        """Jobs that found no place so far."""
        return self._shed

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return self._free == self.threads

    @property
    def longest(self) -> float:
        """Seconds for which the oldest of the running jobs has run; 0 when none runs."""
        return time.monotonic() - min(self._begun.values()) if self._begun else 0.0

    async def run(self, fn: Callable[..., T], *args: object) -> T:
        """The result of `fn(*args)`, or what it raises. Raises Overloaded when the queue is full or closed.

        A caller that is cancelled while it waits takes its job with it. One that is cancelled later leaves a thread at
        work, and that thread's slot stays taken until it has finished: cores are not promised twice.
        """
        return await _heard(lambda begin: self._run(begin, fn, *args))

    async def ask(self, fn: Callable[..., Coroutine[Any, Any, T]], *args: object) -> T:
        """As `run`, for work of another machine: it takes a slot and no thread, and ends with its caller."""
        return await _heard(lambda begin: self._ask(begin, fn, *args))

    async def _run(self, begin: Callable[[], None], fn: Callable[..., T], *args: object) -> T:
        """See `run`; calls `begin` when the job has its slot."""
        await self._take_slot()
        loop = asyncio.get_running_loop()
        try:
            job = self._pool.submit(fn, *args)
        except BaseException:
            self._free_slot()
            raise
        begin()
        self._begun[job] = time.monotonic()
        job.add_done_callback(partial(self._give_back, loop))
        return await asyncio.wrap_future(job)

    async def _ask(self, begin: Callable[[], None], fn: Callable[..., Coroutine[Any, Any, T]], *args: object) -> T:
        await self._take_slot()
        begin()
        try:
            return await fn(*args)
        finally:
            self._done += 1
            self._free_slot()

    def close(self) -> None:
        """Take no more work. Jobs that wait are shed; jobs that run finish in their threads."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _take_slot(self) -> None:
        """Wait for one; raises Overloaded, which is counted."""
        try:
            await self._wait_for_slot()
        except Overloaded:
            self._shed += 1
            raise

    async def _wait_for_slot(self) -> None:
        if self._closed:
            raise Overloaded("the executor is closed")
        line = self._behind if _GIVES_WAY.get() else self._line
        if self._free:
            # Nobody waits, or whoever did would have it.
            self._free -= 1
        elif len(line) >= self._queue:
            raise Overloaded(f"{len(line)} jobs wait already")
        else:
            await self._wait_in(line)
        if self._closed:
            self._free_slot()
            raise Overloaded("the executor is closed")

    async def _wait_in(self, line: dict[asyncio.Future[None], None]) -> None:
        turn = asyncio.get_running_loop().create_future()
        line[turn] = None
        try:
            await turn
        except asyncio.CancelledError:
            line.pop(turn, None)
            if not turn.cancelled():
                # Its turn had come just then.
                self._free_slot()
            raise

    def _free_slot(self) -> None:
        """To whose turn it is, if anybody waits."""
        for line in (self._line, self._behind):
            while line:
                turn = next(iter(line))
                del line[turn]
                if not turn.done():
                    turn.set_result(None)
                    return
        self._free += 1

    def _finished(self, job: concurrent.futures.Future[Any]) -> None:
        self._begun.pop(job, None)
        self._done += 1
        self._free_slot()

    def _give_back(self, loop: asyncio.AbstractEventLoop, job: concurrent.futures.Future[Any]) -> None:
        """Called in the job's thread. A loop that has ended needs no slot back."""
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._finished, job)


async def _heard(work: Callable[[Callable[[], None]], Coroutine[Any, Any, T]]) -> T:
    """The result of `work(begin)`; how long it took until it called `begin` is told to whoever asks for that."""
    waiting = WAITING.get()
    if waiting is None:
        return await work(_unheard)
    waiting.queued()
    begun = False

    def begin() -> None:
        nonlocal begun
        begun = True
        waiting.begun()

    try:
        return await work(begin)
    finally:
        if begun:
            waiting.done()
        else:
            waiting.given_up()


def _unheard() -> None:
    """Nobody asks how long work waits."""
