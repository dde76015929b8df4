"""The one that keeps the state: takes events in, and saves what changed once a second.

One for each state file, in the supervisor's process; workers only read the file (`watch.py`). What is killed loses
the events since the last save, about a second's.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from router.selection.learning import Measurement, Reward, learn
from router.selection.snapshot import EMPTY, Snapshot
from router.selection.state_file import StateFileError, load, save

logger = logging.getLogger(__name__)

SAVE_SECONDS: Final = 1.0

REMEMBERED: Final = 10_000
"""Latest rewards by what they are about: a feed that repeats itself after a timeout is not counted twice. Forgotten
with the process."""

MAX_ARMS: Final = 4096
"""Pairs of decision and model, and models, that a state holds at most; what comes beyond is refused."""


class FullError(Exception):
    """An event about a decision or a model for which there is no room any more."""


class Keeper:
    """Holds the state of one file. Any thread may use it."""

    def __init__(self, file: Path, save_seconds: float = SAVE_SECONDS) -> None:
        """Nothing is read before `running`."""
        self._file = file
        self._save_seconds = save_seconds
        self._lock = threading.Lock()
        self._snapshot = EMPTY
        self._saved = EMPTY
        self._known: OrderedDict[tuple[str, ...], None] = OrderedDict()
        self._ending = threading.Event()

    @property
    def snapshot(self) -> Snapshot:
        """The state now, saved or not."""
        return self._snapshot

    @contextlib.contextmanager
    def running(self) -> Iterator[Keeper]:
        """Restore the state, then save what changes while the block runs, and at its end. Raises OSError.

        A file that is no state is kept aside, and the state starts empty.
        """
        self._snapshot = self._saved = self._restored()
        thread = threading.Thread(target=self._run, name="selection keeper", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._ending.set()
            thread.join()
            self._save()

    def take(self, events: Iterable[Reward | Measurement]) -> int:
        """Learn from all of them or, with FullError, from none; how many were new."""
        with self._lock:
            snapshot, fresh = self._snapshot, list[tuple[str, ...]]()
            for event in events:
                about = _about(event)
                if about and (about in self._known or about in fresh):
                    continue
                snapshot = learn(snapshot, event)
                fresh.append(about)
            if sum(map(len, snapshot.arms.values())) > MAX_ARMS or len(snapshot.speeds) > MAX_ARMS:
                raise FullError
            self._snapshot = snapshot
            self._known.update((about, None) for about in fresh if about)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
            return len(fresh)

    def _restored(self) -> Snapshot:
        try:
            return load(self._file)
        except StateFileError as error:
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
            aside = self._file.with_name(f"{self._file.stem}.broken-{stamp}.json")
            self._file.rename(aside)
            fields = {"file": self._file.name, "why": str(error), "kept_as": aside.name}
            logger.warning("state is broken, starting without", extra={"fields": fields})
            return EMPTY

    def _run(self) -> None:
        while not self._ending.wait(self._save_seconds):
            self._save()

    def _save(self) -> None:
        snapshot = self._snapshot
        if snapshot is self._saved:
            return
        try:
            save(self._file, snapshot)
        except OSError as error:
            # It stays in memory and is tried again.
            fields = {"file": self._file.name, "why": error.strerror}
            logger.warning("state not saved", extra={"fields": fields})
            return
        self._saved = snapshot


def _about(event: Reward | Measurement) -> tuple[str, ...]:
    if isinstance(event, Measurement):
        return ()
    return event.record, event.decision, event.model, event.against
