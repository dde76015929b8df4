"""How many bytes of request bodies a worker has in hand, and whether there is room for more.

A body costs several times its size while it is judged. Past the bound requests are shed, before their bodies are sent
here where their length is known; what has come of messages that are still on their way is in hand, too. Once a crowd
has gone, `memory.py` is told. Belongs to one event loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

QUIET_SHARE: Final = 8
"""The crowd has gone when no more than one part in so many of its bytes is left."""


class Room:
    """At most `limit` bytes, without bound by default; one body always finds room when it is alone.

    `cleared` is called with the largest number of bytes that were in hand, whenever most of them are gone.
    """

    def __init__(self, limit: float = math.inf, cleared: Callable[[int], None] | None = None) -> None:
        self.limit = limit
        self.held = 0
        self._most = 0
        self._cleared = cleared

    def fits(self, size: int, own: int = 0) -> bool:
        """Whether so many bytes more can be taken in hand now, by whoever has `own` bytes of a body in hand already."""
        return self.held == own or self.held + size <= self.limit

    def hold(self, size: int) -> None:
        """Take so many bytes in hand, whether there is room or not: whoever asks first asks `fits`."""
        self.held += size
        self._most = max(self._most, self.held)

    def let_go(self, size: int) -> None:
        """So many bytes are not needed any more."""
        self.held -= size
        if self._cleared is not None and self.held <= self._most // QUIET_SHARE:
            most, self._most = self._most, self.held
            self._cleared(most)
