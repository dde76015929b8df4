"""Records in one SQLite file: appended to in batches, pruned by age and size, read while it is written.

Write-ahead log with `synchronous=NORMAL`: a killed process loses nothing that was committed and leaves no broken file;
a power cut may lose the latest commits. Several processes may append to one file; it must lie on a disk of the machine,
since the log needs shared memory. Who batches, and when, is `writer.py`'s matter.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from router.records.basis import StoredBasis, read_basis
from router.records.record_id import first_id
from router.records.store import AFTER_ALL, AnswerRow, AnyRow, ContentRow, Filter, Keep, Row, ShadowRow, StoreError
from router.records.stored import RecordFormatError, StoredRecord, decode_with

APPLICATION_ID: Final = 0x504D5243
"""`PMRC`, by which a file says that it holds records."""

SCHEMA_VERSION: Final = 3
"""1 had no tables beside those of records, 2 none of answers; whoever opens such a file for writing adds them."""

BUSY_SECONDS: Final = 1.0
"""How long an append waits for whoever else writes, before it is tried again later."""

LOG_BYTES: Final = 16 * 2**20
"""To this size the write-ahead log is cut back once it was read."""

PRUNED_AT_ONCE: Final = 2000
"""Records that one transaction removes, so that nobody waits long for it."""

SLACK: Final = 0.9
"""Share of `keep_bytes` that is left after records had to go for it, so that this is not needed with every batch."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS bases (id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS records (
    seq INTEGER PRIMARY KEY,
    record TEXT NOT NULL UNIQUE,
    decision TEXT NOT NULL,
    model TEXT,
    basis INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS records_by_decision ON records (decision, record);
CREATE INDEX IF NOT EXISTS records_by_model ON records (model, record);
CREATE INDEX IF NOT EXISTS records_by_basis ON records (basis);
CREATE TABLE IF NOT EXISTS contents (record TEXT PRIMARY KEY, why TEXT NOT NULL, body BLOB);
CREATE TABLE IF NOT EXISTS shadows (record TEXT PRIMARY KEY, differs INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS answers (record TEXT PRIMARY KEY, body BLOB NOT NULL);
"""

_BESIDE: Final = ("contents", "shadows", "answers")


_SELECT: Final = (
    "SELECT records.body, bases.digest, contents.why, shadows.body, answers.body AS answer FROM records "
    "JOIN bases ON bases.id = basis "
    "LEFT JOIN contents USING (record) LEFT JOIN shadows USING (record) LEFT JOIN answers USING (record)"
)
_SELECT_OF: Final = {
    1: (
        "SELECT records.body, bases.digest, NULL, NULL, NULL AS answer FROM "
        "(SELECT *, 0 AS differs FROM records) AS records JOIN bases ON bases.id = basis"
    ),
    2: _SELECT.replace("answers.body AS", "NULL AS").removesuffix(" LEFT JOIN answers USING (record)"),
}
"""Of files of earlier versions, which a reader leaves as they are."""


class SqliteStore:
    """The file, open for appending. Belongs to one thread."""

    def __init__(self, path: Path) -> None:
        """Make the file where there is none, readable by its owner alone; raises StoreError."""
        self._path = path
        with _told():
            # The log beside it gets the same permissions from SQLite.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            with _told():
                self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def append(self, rows: Sequence[AnyRow], bases: Mapping[str, bytes]) -> None:
        """As `Store` says."""
        with _told(), self._transaction():
            ids = {digest: self._id_of(digest, body) for digest, body in bases.items()}
            self._connection.executemany(
                "INSERT OR IGNORE INTO records (record, decision, model, basis, body) VALUES (?, ?, ?, ?, ?)",
                [(r.record, r.decision, r.model, ids[r.basis], r.body) for r in rows if isinstance(r, Row)],
            )
            self._connection.executemany(
                "INSERT OR IGNORE INTO contents (record, why, body) VALUES (?, ?, ?)",
                [(r.record, r.why, r.body) for r in rows if isinstance(r, ContentRow)],
            )
            self._connection.executemany(
                "INSERT OR IGNORE INTO shadows (record, differs, body) VALUES (?, ?, ?)",
                [(r.record, r.differs, r.body) for r in rows if isinstance(r, ShadowRow)],
            )
            self._connection.executemany(
                "INSERT OR IGNORE INTO answers (record, body) VALUES (?, ?)",
                [(r.record, r.body) for r in rows if isinstance(r, AnswerRow)],
            )

    def prune(self, keep: Keep, now: float | None = None) -> int:
        """As `Store` says; the size is that of the file."""
        now = time.time() if now is None else now
        removed = gone = 0
        with _told():
            if keep.content_seconds is not None:
                gone += self._remove_before("contents", first_id(now - keep.content_seconds))
            removed += self._remove_records(first_id(now - keep.seconds))
            if self.used_bytes() > keep.bytes:
                while self.used_bytes() > keep.bytes * SLACK and (bound := self._oldest()):
                    removed += self._remove_records(bound)
            if removed:
                with self._transaction():
                    self._connection.execute(
                        "DELETE FROM bases WHERE NOT EXISTS (SELECT 1 FROM records WHERE basis = bases.id)"
                    )
            if removed or gone:
                # It frees a page a step, and of a statement without rows `execute` takes one step only.
                self._connection.executescript("PRAGMA incremental_vacuum")
        return removed

    def used_bytes(self) -> int:
        """Bytes of the file that hold something; the log beside it is not counted."""
        pages, free, size = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def close(self) -> None:
        """Give the file up."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def _prepare(self) -> None:
        run = self._connection.execute
        application = run("PRAGMA application_id").fetchone()[0]
        version = run("PRAGMA user_version").fetchone()[0]
        tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        _check_kind(application, version, empty=not tables)
        run("PRAGMA auto_vacuum = INCREMENTAL")
        run("PRAGMA journal_mode = WAL").fetchone()
        run("PRAGMA synchronous = NORMAL")
        run(f"PRAGMA journal_size_limit = {LOG_BYTES}").fetchone()
        with self._transaction():
            for statement in filter(str.strip, _SCHEMA.split(";")):
                run(statement)
            run(f"PRAGMA application_id = {APPLICATION_ID}")
            run(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _id_of(self, digest: str, body: bytes) -> int:
        self._connection.execute("INSERT OR IGNORE INTO bases (digest, body) VALUES (?, ?)", (digest, body))
        row = self._connection.execute("SELECT id FROM bases WHERE digest = ?", (digest,)).fetchone()
        return int(row[0])

    def _remove_records(self, bound: str) -> int:
        """Remove all records before the identifier and what lies beside them; how many records."""
        for table in _BESIDE:
            self._remove_before(table, bound)
        return self._remove_before("records", bound)

    def _remove_before(self, table: str, bound: str) -> int:
        removed = 0
        while True:
            with self._transaction():
                gone = self._connection.execute(
                    f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE record < ? LIMIT ?)",  # noqa: S608
                    (bound, PRUNED_AT_ONCE),
                ).rowcount
            removed += gone
            if gone < PRUNED_AT_ONCE:
                return removed

    def _oldest(self) -> str | None:
        """The identifier before which lies a tenth of all records; at least one, at most as many as go at once."""
        low, high = self._connection.execute("SELECT min(seq), max(seq) FROM records").fetchone()
        if low is None:
            return None
        share = min(PRUNED_AT_ONCE, max(1, (high - low + 1) // 10))
        row = self._connection.execute(
            "SELECT record FROM records ORDER BY record LIMIT 1 OFFSET ?", (share,)
        ).fetchone()
        # Behind the last one is what sorts after every identifier.
        return AFTER_ALL if row is None else str(row[0])

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        # IMMEDIATE: one that read first and then wants to write can only fail when another wrote meanwhile.
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise


class StoreReader:
    """A store's records, read while others write. Use it in a `with`."""

    def __init__(self, path: Path) -> None:
        """Raises StoreError where there is no store at the path."""
        if not path.is_file():
            raise StoreError("no such file")
        with _told():
            # Opened for writing, since a reader has to take part in the log's bookkeeping, and then held to reading.
            mode = "rw" if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else "ro"
            uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
            self._connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            with _told():
                run = self._connection.execute
                run("PRAGMA query_only = ON")
                application, version = (
                    run(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
                )
                _check_kind(application, version, empty=False)
                self._select = _SELECT_OF.get(version, _SELECT)
                self._beside = version > 1
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> StoreReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def newest(self, chosen: Filter) -> Iterator[tuple[StoredRecord, str]]:
        """As `Reader` says."""
        conditions: list[tuple[str, object]] = []
        if chosen.decision is not None:
            conditions.append(("decision = ?", chosen.decision))
        if chosen.model is not None:
            conditions.append(("model = ?", chosen.model))
        if chosen.since is not None:
            conditions.append(("records.record >= ?", first_id(chosen.since)))
        if chosen.differing:
            conditions.append(("differs = ?", 1))
        if chosen.unpassed:
            conditions.append(("(answer IS NOT NULL) = ?", 1))
        where = f"WHERE {' AND '.join(text for text, _ in conditions)}" if conditions else ""
        values = [value for _, value in conditions]
        sql = f"{self._select} {where} ORDER BY records.record DESC LIMIT ?"
        with _told():
            rows: Iterable[tuple[bytes, str, str | None, bytes | None, bytes | None]] = self._connection.execute(
                sql, [*values, -1 if chosen.limit is None else chosen.limit]
            )
            for body, digest, why, shadow, answer in rows:
                yield decode_with(body, why, shadow, answer), digest

    def find(self, record: str) -> list[tuple[StoredRecord, str]]:
        """As `Reader` says."""
        end = f"{record}{AFTER_ALL}"
        with _told():
            rows = self._connection.execute(
                f"{self._select} WHERE records.record >= ? AND records.record < ? ORDER BY records.record LIMIT 3",
                (record, end),
            ).fetchall()
        return [(decode_with(body, why, shadow, answer), digest) for body, digest, why, shadow, answer in rows]

    def content(self, record: str) -> ContentRow | None:
        """As `Reader` says."""
        if not self._beside:
            return None
        with _told():
            row = self._connection.execute("SELECT why, body FROM contents WHERE record = ?", (record,)).fetchone()
        return None if row is None else ContentRow(record, *row)

    def basis(self, digest: str) -> StoredBasis:
        """The basis of this digest; raises StoreError, RecordFormatError."""
        with _told():
            row = self._connection.execute("SELECT body FROM bases WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            raise RecordFormatError("has records without the policy that they rest on")
        return read_basis(row[0])


def _check_kind(application: int, version: int, *, empty: bool) -> None:
    if not (application == APPLICATION_ID or (empty and application == 0)):
        raise StoreError("is a database of something else")
    if version > SCHEMA_VERSION:
        raise StoreError(f"is a store of version {version}; this program knows {SCHEMA_VERSION}")


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Whatever goes wrong with the file as a StoreError, in words of SQLite or of the system."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        # The low byte is the kind, what is above tells details of it.
        busy = code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        raise StoreError(str(error), busy) from error
    except OSError as error:
        raise StoreError(error.strerror or type(error).__name__) from error
