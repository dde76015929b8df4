"""A worker's view of the state: the newest snapshot, looked for twice a second in a thread of its own.

The event loop only ever reads a finished snapshot. A file that is broken or cannot be read leaves the last good state
in place and is told of once.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Final

from router.selection.snapshot import EMPTY, Snapshot
from router.selection.state_file import StateFileError, load

logger = logging.getLogger(__name__)

INTERVAL: Final = 0.5
"""Seconds between two looks."""

_Mark = tuple[int, int, int]


class StateWatch:
    """`snapshot()` is the newest state; `start` and `close` begin and end the looking."""

    def __init__(self, file: Path, interval: float = INTERVAL) -> None:
        """The file need not be there yet."""
        self._file = file
        self._interval = interval
        self._snapshot = EMPTY
        self._seen: _Mark | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="selection state", daemon=True)

    def snapshot(self) -> Snapshot:
        """The newest state that could be read; the empty one before there is any."""
        return self._snapshot

    def look(self) -> None:
        """Read the file if it is another one than last time."""
        try:
            stat = self._file.stat()
            mark = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
        except OSError:
            # No file yet, or a folder that is being replaced: what was learnt is no less true.
            return
        if mark == self._seen:
            return
        self._seen = mark
        try:
            self._snapshot = load(self._file)
        except (StateFileError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            logger.warning("state not read", extra={"fields": {"file": self._file.name, "why": why}})

    def start(self) -> None:
        """Look now, and from time to time from now on."""
        self.look()
        self._thread.start()

    def close(self) -> None:
        """Stop looking; waits for a look under way."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._ending.wait(self._interval):
            self.look()
