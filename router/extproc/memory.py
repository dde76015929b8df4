"""Gives memory back to the system after large bodies: soon after a crowd of them, later after a few.

The allocator is set up to keep what it has had (see the supervisor's `ALLOCATOR`), which makes large bodies cheap one
after the other, and would keep what they took for good.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
from collections.abc import Callable
from typing import Any, Final

logger = logging.getLogger(__name__)

WORTHWHILE_BYTES: Final = 64 * 1024 * 1024
"""Bytes of bodies at a time from which on trimming is worth its pause soon; what fewer took is kept for the next."""

QUIET_SECONDS: Final = 1.0
"""How long to wait for the crowd to come back, which would need the memory again."""

FEW_BYTES: Final = 1024 * 1024
"""Bytes of bodies at a time from which on it is noticed what they took: several times as much."""

IDLE_SECONDS: Final = 10.0
"""Without any so large, after which nobody is kept waiting by giving up what was kept for the next."""


class Trimmer:
    """Asks the C library to give back what it does not use, a moment after the last crowd, or once large bodies have
    ceased to come. Belongs to one event loop.

    `trim` blocks and runs in a thread.
    """

    def __init__(
        self,
        trim: Callable[[], object] | None = None,
        quiet: float = QUIET_SECONDS,
        idle: float = IDLE_SECONDS,
    ) -> None:
        """`quiet` and `idle` are in seconds."""
        self._trim = trim or _library_trim()
        self._quiet = quiet
        self._idle = idle
        self._waiting: asyncio.Task[None] | None = None
        self._soon = False
        self._due = 0.0

    def after(self, most: int) -> None:
        """Bodies that had so many bytes at most have gone."""
        if self._trim is None or most < FEW_BYTES:
            return
        crowd = most >= WORTHWHILE_BYTES
        waits = self._waiting is not None and not self._waiting.done()
        if waits and self._soon and not crowd:
            # A few do not put off what a crowd has asked for.
            return
        self._due = asyncio.get_running_loop().time() + (self._quiet if crowd else self._idle)
        if not waits or crowd != self._soon:
            # Where one waits for the same it sees by itself that it is put off, which costs a body nothing.
            self.close()
            self._soon = crowd
            self._waiting = asyncio.create_task(self._wait_and_trim(self._trim))

    async def _wait_and_trim(self, trim: Callable[[], object]) -> None:
        done = 0.0
        while done != self._due:
            while (left := self._due - asyncio.get_running_loop().time()) > 0:  # noqa: ASYNC110  a moment, not a state
                await asyncio.sleep(left)
            # It may be put off once more while it goes on.
            done = self._due
            await asyncio.to_thread(trim)
            logger.debug("memory trimmed")

    async def done(self) -> None:
        """Wait until nothing is going to be trimmed any more."""
        if self._waiting is not None:
            await asyncio.wait([self._waiting])

    def close(self) -> None:
        """Trim no more, unless a trimming runs already."""
        if self._waiting is not None:
            self._waiting.cancel()


def _library_trim() -> Callable[[], object] | None:
    """glibc's malloc_trim; None with a C library that has none."""
    trim: Any = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return None if trim is None else lambda: trim(0)
