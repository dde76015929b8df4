"""Work on requests after they were answered: one at a time, a bounded number waiting, nothing that a request waits for.

What finds no room is left out, which its owner counts. Belongs to one event loop; there is a task only while there is
something to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from router.inference.executor import InferenceExecutor

logger = logging.getLogger(__name__)

T = TypeVar("T")

WAITING_BYTES: Final = 32 * 1024 * 1024
"""Bodies that may wait; beside the number that its owner allows."""

LOOK_SECONDS: Final = 0.01
"""Between looks at whether the models have nothing to do."""


class Afterwards(Generic[T]):
    """Does `work` for what it is offered. `seconds` is all that one may take.

    `gave_up` is told of what was taken on and not done: with the error that ended it, a TimeoutError where it took too
    long; with None where `close` came first.
    """

    def __init__(
        self,
        work: Callable[[T], Awaitable[None]],
        gave_up: Callable[[T, Exception | None], None],
        count: int,
        seconds: float,
    ) -> None:
        self._work = work
        self._gave_up = gave_up
        self._count = count
        self._seconds = seconds
        self._waiting: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def offer(self, job: T, size: int) -> bool:
        """Take it on, if there is room; never waits."""
        if self._closed or len(self._waiting) >= self._count or self._bytes + size > WAITING_BYTES:
            return False
        self._waiting.append((job, size))
        self._bytes += size
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="afterwards")
        return True

    async def settled(self) -> None:
        """Return once nothing waits and nothing is done."""
        while self._task is not None and not self._task.done():
            await asyncio.wait((self._task,))

    def close(self) -> None:
        """Take nothing more, and drop what waits."""
        self._closed = True
        while self._waiting:
            self._gave_up(self._waiting.popleft()[0], None)
        self._bytes = 0
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        # Whoever is being answered just now comes first.
        await asyncio.sleep(0)
        while self._waiting:
            job, size = self._waiting.popleft()
            try:
                async with asyncio.timeout(self._seconds):
                    await self._work(job)
            except asyncio.CancelledError:
                self._gave_up(job, None)
                raise
            except Exception as error:
                # The message may quote the request; the type can't.
                logger.warning("left undone", extra={"fields": {"error_type": type(error).__name__}})
                self._gave_up(job, error)
            finally:
                self._bytes -= size
            await asyncio.sleep(0)


async def idle_within(executor: InferenceExecutor, seconds: float) -> bool:
    """Wait until the models have nothing to do, at most so long; whether that is so."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not executor.idle:
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(LOOK_SECONDS)
    return True
