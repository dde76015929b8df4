"""Gives memory back to the system after a crowd of large bodies.

The allocator is set up to keep what it has had (see the supervisor's `ALLOCATOR`), which makes large bodies cheap one
after the other, and would keep what many of them took at once for good.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
from collections.abc import Callable
from typing import Any, Final

logger = logging.getLogger(__name__)

WORTHWHILE_BYTES: Final = 64 * 1024 * 1024
"""Bytes of bodies at a time from which on trimming is worth its pause; fewer are kept for the next bodies."""

QUIET_SECONDS: Final = 1.0
"""How long to wait for the crowd to come back, which would need the memory again."""


class Trimmer:
    """Asks the C library to give back what it does not use, a moment after the last crowd. Belongs to one event loop.

    `trim` blocks and runs in a thread.
    """

    def __init__(self, trim: Callable[[], object] | None = None, quiet: float = QUIET_SECONDS) -> None:
        self._trim = trim or _library_trim()
        self._quiet = quiet
        self._waiting: asyncio.Task[None] | None = None

    def after(self, most: int) -> None:
        """A crowd that had so many bytes at most has gone."""
        if self._trim is None or most < WORTHWHILE_BYTES:
            return
        self.close()
        self._waiting = asyncio.create_task(self._wait_and_trim(self._trim))

    async def _wait_and_trim(self, trim: Callable[[], object]) -> None:
        await asyncio.sleep(self._quiet)
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
