"""Runs model work in a few threads, so that the event loop never waits for a forward pass.

It bounds what runs and what waits, and sheds the rest at once. It knows nothing about models, batches or caches.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


class Overloaded(Exception):
    """More work waits than may wait; ask again later or decide without the answer."""


class InferenceExecutor:
    """`threads` jobs run at a time and `queue` more may wait, in the order they came. Belongs to one event loop."""

    def __init__(self, threads: int, queue: int) -> None:
        if threads < 1 or queue < 0:
            raise ValueError(f"threads={threads} must be at least 1 and queue={queue} at least 0")
        self.threads = threads
        self._queue = queue
        self._waiting = 0
        self._running = 0
        self._closed = False
        self._begun: dict[concurrent.futures.Future[Any], float] = {}
        self._slots = asyncio.Semaphore(threads)
        self._pool = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="inference")

    @property
    def waiting(self) -> int:
        """Jobs that have not started."""
        return self._waiting

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return self._running == 0 and self._waiting == 0

    @property
    def longest(self) -> float:
        """Seconds for which the oldest of the running jobs has run; 0 when none runs."""
        return time.monotonic() - min(self._begun.values()) if self._begun else 0.0

    async def run(self, fn: Callable[..., T], *args: object) -> T:
        """The result of `fn(*args)`, or what it raises. Raises Overloaded when the queue is full or closed.

        A caller that is cancelled while it waits takes its job with it. One that is cancelled later leaves a thread at
        work, and that thread's slot stays taken until it has finished: cores are not promised twice.
        """
        await self._take_slot()
        loop = asyncio.get_running_loop()
        try:
            job = self._pool.submit(fn, *args)
        except BaseException:
            self._free_slot()
            raise
        self._begun[job] = time.monotonic()
        job.add_done_callback(partial(self._give_back, loop))
        return await asyncio.wrap_future(job)

    def close(self) -> None:
        """Take no more work. Jobs that wait are shed; jobs that run finish in their threads."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _take_slot(self) -> None:
        if self._closed:
            raise Overloaded("the executor is closed")
        if self._slots.locked() and self._waiting >= self._queue:
            raise Overloaded(f"{self._waiting} jobs wait already")
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        self._running += 1
        if self._closed:
            self._free_slot()
            raise Overloaded("the executor is closed")

    def _free_slot(self) -> None:
        self._running -= 1
        self._slots.release()

    def _finished(self, job: concurrent.futures.Future[Any]) -> None:
        self._begun.pop(job, None)
        self._free_slot()

    def _give_back(self, loop: asyncio.AbstractEventLoop, job: concurrent.futures.Future[Any]) -> None:
        """Called in the job's thread. A loop that has ended needs no slot back."""
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._finished, job)
