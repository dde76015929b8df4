"""Puts records into their store, in a thread of its own behind a bounded queue: no request ever waits for a disk.

What finds the queue full, or a store that cannot be written, is dropped and counted. A store that is only busy is tried
again, one that nobody answers for after ever longer pauses. Of a process that is killed, records of about the last
second are lost.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from importlib.metadata import version
from typing import Final, Literal

from opentelemetry import metrics

from router.config.handling import CaptureSettings, RecordSettings
from router.records.basis import Basis
from router.records.opening import named, open_store
from router.records.record import DecisionRecord
from router.records.store import AnswerRow, AnyRow, BesideRow, ContentRow, Keep, Row, ShadowRow, Store, StoreError
from router.records.stored import encode, to_stored

logger = logging.getLogger(__name__)

QUEUED_RECORDS: Final = 8192
"""Records that may wait; one takes a few kB, most of it evidence."""

BATCH: Final = 1000
"""Records of one transaction at most."""

PAUSE_SECONDS: Final = 0.5
"""Between two looks at the queue."""

PRUNE_SECONDS: Final = 30.0
"""Between two looks at what has become too old or too much."""

CLOSE_SECONDS: Final = 5.0
"""How long the end of the process waits for records that are still queued."""

QUEUED_BYTES: Final = 32 * 1024 * 1024
"""Captured content that may wait."""

BATCH_BYTES: Final = 8 * 1024 * 1024
"""Captured content of one transaction from which on nothing is added to it."""

AWAY_SECONDS: Final = 30.0
"""The longest pause between two tries to reach a store that nobody answers for."""

Item = DecisionRecord | BesideRow
"""What is queued: a record, or what lies beside one."""

Kind = Literal["record", "content", "shadow", "answer"]


class RecordWriter:
    """Takes records from any thread; `dropped` counts what was lost, by `kind`: `record`, or what lay beside it, and by
    `reason`: `queue_full`, `store`, `unreadable`.

    One for each worker, for all its policies: where and how long records are kept stands in their basis.
    """

    def __init__(
        self,
        dropped: metrics.Counter,
        limit: int = QUEUED_RECORDS,
        pause: float = PAUSE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing runs before `start`; `limit` records may wait, `pause` is in seconds."""
        self._dropped = dropped
        self._limit = limit
        self._pause = pause
        self._clock = clock
        self._version = version("pointsman")
        self._queue: deque[tuple[Basis, Item]] = deque()
        self._queued_bytes = 0
        self._counting = threading.Lock()
        self._refused: Counter[Kind] = Counter()
        self._batch: list[AnyRow] = []
        self._bases: dict[str, bytes] = {}
        self._settings: RecordSettings | None = None
        self._store: Store | None = None
        self._away = 0.0
        self._not_before = float("-inf")
        self._pruned = float("-inf")
        self._failing = False
        self._lost = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="records", daemon=True)

    def start(self) -> None:
        """Begin to write; once more does nothing."""
        if not self._thread.is_alive() and not self._closing.is_set():
            self._thread.start()

    def put(self, basis: Basis, record: DecisionRecord) -> None:
        """Queue a record; never waits."""
        if len(self._queue) < self._limit:
            self._queue.append((basis, record))
        else:
            self._refuse("record")

    def put_beside(self, basis: Basis, row: BesideRow) -> None:
        """Queue what lies beside a record, before it or after it; never waits."""
        size = _size(row)
        with self._counting:
            fits = len(self._queue) < self._limit and self._queued_bytes + size <= QUEUED_BYTES
            self._queued_bytes += size if fits else 0
        if fits:
            self._queue.append((basis, row))
        else:
            self._refuse(_kind(row))

    def close(self) -> None:
        """Write what is queued, for at most CLOSE_SECONDS."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while not self._closing.wait(self._pause):
            self._work()
        self._work()
        self._drop(self._batch_lost() + Counter(_kind(item) for _, item in self._queue), "store")
        self._give_up()

    def _work(self) -> None:
        """Write what is queued; whatever goes wrong ends no thread."""
        try:
            while self._fill() and self._clock() >= self._not_before and self._append():
                pass
            self._prune()
        except Exception as error:
            # The message may quote a record; the type can't.
            self._failed(type(error).__name__)
            self._drop(self._batch_lost(), "store")
        with self._counting:
            refused, self._refused = self._refused, Counter()
        self._drop(refused, "queue_full")

    def _fill(self) -> bool:
        """Encode what is queued, up to a batch of one place; whether there is anything to write."""
        held = sum(map(_size, self._batch))
        while self._queue and len(self._batch) < BATCH and held < BATCH_BYTES:
            basis, item = self._queue[0]
            if self._batch and basis.settings != self._settings:
                break
            self._queue.popleft()
            self._settle(basis.settings)
            if isinstance(item, DecisionRecord):
                self._encode(basis, item)
            else:
                held += _size(item)
                with self._counting:
                    self._queued_bytes -= _size(item)
                self._batch.append(item)
            # Let go of the interpreter: whoever serves requests should not wait for a whole batch.
            time.sleep(0)
        return bool(self._batch)

    def _encode(self, basis: Basis, record: DecisionRecord) -> None:
        try:
            body = encode(to_stored(record, self._version))
        except (UnicodeEncodeError, TypeError, ValueError) as error:
            logger.warning("record not kept", extra={"fields": {"error_type": type(error).__name__}})
            self._drop(Counter({"record": 1}), "unreadable")
            return
        self._batch.append(Row(record.record, record.decision, record.model, basis.digest, body))
        self._bases[basis.digest] = basis.body

    def _settle(self, settings: RecordSettings) -> None:
        """Write to another place from now on, if it is another one."""
        if settings == self._settings:
            return
        if self._store is not None and (self._settings is None or _place(settings) != _place(self._settings)):
            self._give_up()
            self._not_before = float("-inf")
        self._settings = settings
        self._pruned = float("-inf")

    def _append(self) -> bool:
        """Write the batch; whether to go on with the next. One that finds the store busy stays for later."""
        try:
            store = self._opened()
            store.append(self._batch, self._bases)
        except StoreError as error:
            self._failed(str(error))
            if error.away:
                self._stay_away()
            if not error.busy:
                self._give_up()
                self._drop(self._batch_lost(), "store")
                # What is queued by now would find the same.
            return False
        self._away = 0.0
        self._batch_lost()
        if self._failing:
            self._failing = False
            logger.info("records are kept again", extra={"fields": {"lost": self._lost}})
            self._lost = 0
        return True

    def _stay_away(self) -> None:
        """Leave the store alone for twice as long as the last time, and not when everybody else comes back to it."""
        self._give_up()
        self._away = min(AWAY_SECONDS, max(self._pause, 2 * self._away))
        self._not_before = self._clock() + self._away * random.uniform(0.5, 1.0)  # noqa: S311 - no secret

    def _opened(self) -> Store:
        if self._settings is None:
            raise StoreError("nothing to write")
        if self._store is None:
            self._store = open_store(self._settings)
        return self._store

    def _prune(self) -> None:
        settings = self._settings
        if self._store is None or settings is None or self._clock() - self._pruned < PRUNE_SECONDS:
            return
        self._pruned = self._clock()
        try:
            self._store.prune(_keep(settings))
        except StoreError as error:
            fields = {"file": named(settings), "why": str(error)}
            logger.warning("old records are not removed", extra={"fields": fields})
            if error.away or not error.busy:
                self._give_up()

    def _give_up(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def _refuse(self, kind: Kind) -> None:
        with self._counting:
            self._refused[kind] += 1

    def _batch_lost(self) -> Counter[Kind]:
        lost = Counter(map(_kind, self._batch))
        self._batch, self._bases = [], {}
        return lost

    def _drop(self, lost: Counter[Kind], reason: str) -> None:
        for kind, count in lost.items():
            self._lost += count
            self._dropped.add(count, {"kind": kind, "reason": reason})

    def _failed(self, why: str) -> None:
        """One line when it begins; `records are kept again` ends it."""
        if not self._failing:
            self._failing = True
            name = named(self._settings) if self._settings else ""
            logger.error("records are not kept", extra={"fields": {"file": name, "why": why}})


def _kind(item: Item | AnyRow) -> Kind:
    match item:
        case ContentRow():
            return "content"
        case ShadowRow():
            return "shadow"
        case AnswerRow():
            return "answer"
    return "record"


def _size(row: AnyRow) -> int:
    return len(row.body or b"")


def _place(settings: RecordSettings) -> tuple[str | None, ...]:
    return settings.path, settings.dsn_env, settings.dsn_file


def _keep(settings: RecordSettings) -> Keep:
    return Keep(settings.keep_days * 86_400, settings.keep_bytes, _content_seconds(settings.capture))


def _content_seconds(capture: CaptureSettings | None) -> float | None:
    return None if capture is None or capture.keep_hours is None else capture.keep_hours * 3600
