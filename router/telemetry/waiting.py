"""How long the work for one question has waited for its turn: counted where it waits, read by whoever asked.

A question may have several jobs, side by side too. It waits while at least one of them does and none is being done, so
that waiting is never longer than the question took. Belongs to one event loop, and to the tasks that the asker starts:
of work that is shared with others, only he who began it has waited for it.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import Final


class Waiting:
    """The time that one question's jobs wait. Each job says `queued`, then `begun` or `given_up`, then `done`."""

    __slots__ = ("_running", "_seconds", "_since", "_waiting")

    def __init__(self) -> None:
        self._waiting = 0
        self._running = 0
        self._since = 0.0
        self._seconds = 0.0

    @property
    def seconds(self) -> float:
        """Waited until now."""
        return self._seconds + (time.perf_counter() - self._since if self._waits else 0.0)

    def queued(self) -> None:
        """A job wants its turn."""
        self._change(1, 0)

    def begun(self) -> None:
        """A job that waited has its turn."""
        self._change(-1, 1)

    def given_up(self) -> None:
        """A job that waited will not be done."""
        self._change(-1, 0)

    def done(self) -> None:
        """A job that had its turn is done, or nobody waits for its end any more."""
        self._change(0, -1)

    @property
    def _waits(self) -> bool:
        return self._waiting > 0 and self._running == 0

    def _change(self, waiting: int, running: int) -> None:
        now = time.perf_counter()
        if self._waits:
            self._seconds += now - self._since
        self._since = now
        self._waiting += waiting
        self._running += running


WAITING: Final[ContextVar[Waiting | None]] = ContextVar("waiting", default=None)
"""Of the question that the current task works for."""
