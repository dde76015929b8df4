"""A worker's sign of life: a byte a second over a pipe, written by its event loop.

A process that hangs (a blocked loop, a stopped process) answers nobody and never ends by itself; silence on this pipe
is how its supervisor knows. Nothing is said before the loop runs, so that a slow start is no silence.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator

VARIABLE = "POINTSMAN_HEARTBEAT_FD"
"""The environment variable that tells a worker which of its descriptors is the write end."""

BEAT_SECONDS = 1.0


async def beat() -> None:
    """In a worker: beat until cancelled. Returns at once in a worker that was started by hand."""
    descriptor = os.environ.get(VARIABLE)
    if descriptor is None:
        return
    pipe = int(descriptor)
    os.set_blocking(pipe, False)
    while True:
        # A full pipe has signs of life enough, and a closed one has nobody who looks.
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(pipe, b".")
        await asyncio.sleep(BEAT_SECONDS)


class Pulse:
    """In the supervisor: the read end of one worker's pipe."""

    def __init__(self, read_end: int) -> None:
        self._read_end = read_end
        self._last: float | None = None
        self._at_first: Callable[[], None] | None = None
        os.set_blocking(read_end, False)
        asyncio.get_running_loop().add_reader(read_end, self._hear)

    def _hear(self) -> None:
        if os.read(self._read_end, 4096):
            self._last = time.monotonic()
            if self._at_first is not None:
                told, self._at_first = self._at_first, None
                told()
        else:
            self.close()

    def once(self, told: Callable[[], None]) -> None:
        """Call this with the first beat, when the worker's loop runs and its signals are handled."""
        self._at_first = told

    def close(self) -> None:
        """Listen no more; the descriptor stays open."""
        asyncio.get_running_loop().remove_reader(self._read_end)

    async def stopped(self, silence: float) -> None:
        """Return when nothing was heard for `silence` seconds, counted from the first beat."""
        # Silence is no event that could be waited for.
        while self._last is None or time.monotonic() - self._last < silence:  # noqa: ASYNC110
            await asyncio.sleep(min(BEAT_SECONDS, silence / 4))


@contextlib.contextmanager
def pulse() -> Iterator[tuple[Pulse, int]]:
    """A pulse and the write end for the worker; both ends are closed with the block."""
    read_end, write_end = os.pipe()
    heard = Pulse(read_end)
    try:
        yield heard, write_end
    finally:
        heard.close()
        os.close(read_end)
        os.close(write_end)
