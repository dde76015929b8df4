"""Work that gives way to requests: a step at a time, and none before there has been a moment without any.

A step is what runs between two awaits. What it computes cannot be interrupted, so that a request that comes meanwhile
waits for the rest of that step, and for no other. Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final, Generic, TypeVar

from router.inference.executor import giving_way

T = TypeVar("T")

QUIET_SECONDS: Final = 0.02
"""Without any request. Whoever asks again as soon as there is an answer is back by then."""

LOOK_SECONDS: Final = 0.001
"""Between looks. The first follows a pause as well, in which the loop sees what has come."""


class Courtesy:
    """`attend` says whom to give way to; nobody before that."""

    def __init__(self) -> None:
        self._quiet_for: Callable[[], float] = lambda: math.inf

    def attend(self, quiet_for: Callable[[], float]) -> None:
        """To those whom this knows of: seconds since the last of them was there, 0 while there are any."""
        self._quiet_for = quiet_for

    async def turn(self, seconds: float = math.inf) -> bool:
        """Wait until it is quiet, at most so long; whether it is."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        await asyncio.sleep(LOOK_SECONDS)
        while self._quiet_for() < QUIET_SECONDS:
            if loop.time() >= until:
                return False
            await asyncio.sleep(LOOK_SECONDS)
        return True

    async def step_by_step(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work. Its jobs wait behind all others for a thread."""
        with giving_way():
            return await _Steps(work, self.turn)


class _Steps(Awaitable[T], Generic[T]):
    """Awaits `work`, and `turn` before each of its steps."""

    def __init__(self, work: Coroutine[Any, Any, T], turn: Callable[[], Coroutine[Any, Any, bool]]) -> None:
        self._work = work
        self._turn = turn

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._work.__await__()
        try:
            yield from self._turn().__await__()
            awaited = next(steps)
            while True:
                try:
                    yield awaited
                    yield from self._turn().__await__()
                except BaseException as error:
                    # Cancelled: the work hears of it at once.
                    awaited = steps.throw(error)
                else:
                    awaited = next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            self._work.close()
