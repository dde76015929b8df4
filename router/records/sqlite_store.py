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
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from router.records.basis import StoredBasis, read_basis
from router.records.record_id import first_id
from router.records.stored import RecordFormatError, StoredRecord, decode

APPLICATION_ID: Final = 0x504D5243
"""`PMRC`, by which a file says that it holds records."""

SCHEMA_VERSION: Final = 1

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
"""


class StoreError(Exception):
    """A store that cannot be used now; the text says why, for the operator. `busy`: it may well be later."""

    def __init__(self, why: str, busy: bool = False) -> None:
        super().__init__(why)
        self.busy = busy


@dataclass(frozen=True, slots=True)
class Row:
    """A record on its way into the store: what is looked up, the digest of its basis, and the whole in JSON."""

    record: str
    decision: str
    model: str | None
    basis: str
    body: bytes


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

    def append(self, rows: Sequence[Row], bases: Mapping[str, bytes]) -> None:
        """Add all rows or, with StoreError, none; `bases` has the bodies of all that they name.

        Those that are there already are passed over: a commit may have succeeded and looked as if it had not.
        """
        with _told(), self._transaction():
            ids = {digest: self._id_of(digest, body) for digest, body in bases.items()}
            self._connection.executemany(
                "INSERT OR IGNORE INTO records (record, decision, model, basis, body) VALUES (?, ?, ?, ?, ?)",
                [(row.record, row.decision, row.model, ids[row.basis], row.body) for row in rows],
            )

    def prune(self, keep_seconds: float, keep_bytes: int, now: float | None = None) -> int:
        """Remove records older than that, and the oldest of a file that is larger; how many. Raises StoreError."""
        now = time.time() if now is None else now
        removed = 0
        with _told():
            removed += self._remove_before(first_id(now - keep_seconds))
            if self.used_bytes() > keep_bytes:
                while self.used_bytes() > keep_bytes * SLACK and (gone := self._remove_oldest()):
                    removed += gone
            if removed:
                with self._transaction():
                    self._connection.execute(
                        "DELETE FROM bases WHERE NOT EXISTS (SELECT 1 FROM records WHERE basis = bases.id)"
                    )
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

    def _remove_before(self, record: str) -> int:
        removed = 0
        while True:
            with self._transaction():
                gone = self._connection.execute(
                    "DELETE FROM records WHERE seq IN (SELECT seq FROM records WHERE record < ? LIMIT ?)",
                    (record, PRUNED_AT_ONCE),
                ).rowcount
            removed += gone
            if gone < PRUNED_AT_ONCE:
                return removed

    def _remove_oldest(self) -> int:
        """Remove a tenth of what there is, by time; at least one, at most as many as go at once."""
        with self._transaction():
            low, high = self._connection.execute("SELECT min(seq), max(seq) FROM records").fetchone()
            if low is None:
                return 0
            share = min(PRUNED_AT_ONCE, max(1, (high - low + 1) // 10))
            return self._connection.execute(
                "DELETE FROM records WHERE seq IN (SELECT seq FROM records ORDER BY record LIMIT ?)", (share,)
            ).rowcount

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


@dataclass(frozen=True, slots=True)
class Filter:
    """Which records are read. `since` is a Unix time in seconds, `limit` how many of the newest; None: all."""

    decision: str | None = None
    model: str | None = None
    since: float | None = None
    limit: int | None = None


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
                pair = (run(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
                _check_kind(*pair, empty=False)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> StoreReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def newest(self, chosen: Filter) -> Iterator[tuple[StoredRecord, str]]:
        """Records with the digests of their bases, newest first. Raises StoreError, RecordFormatError.

        All are of one moment, whatever is written meanwhile.
        """
        conditions: list[tuple[str, object]] = []
        if chosen.decision is not None:
            conditions.append(("decision = ?", chosen.decision))
        if chosen.model is not None:
            conditions.append(("model = ?", chosen.model))
        if chosen.since is not None:
            conditions.append(("record >= ?", first_id(chosen.since)))
        where = f"WHERE {' AND '.join(text for text, _ in conditions)}" if conditions else ""
        values = [value for _, value in conditions]
        sql = (
            f"SELECT records.body, bases.digest FROM records JOIN bases ON bases.id = basis {where} "  # noqa: S608
            "ORDER BY record DESC LIMIT ?"
        )
        with _told():
            rows: Iterable[tuple[bytes, str]] = self._connection.execute(
                sql, [*values, -1 if chosen.limit is None else chosen.limit]
            )
            for body, digest in rows:
                yield decode(body), digest

    def find(self, record: str) -> list[tuple[StoredRecord, str]]:
        """The record of this identifier, or, at most three, those whose identifiers begin so. Raises as `newest`."""
        end = f"{record}g"  # after every digit of an identifier
        with _told():
            rows = self._connection.execute(
                "SELECT records.body, bases.digest FROM records JOIN bases ON bases.id = basis "
                "WHERE record >= ? AND record < ? ORDER BY record LIMIT 3",
                (record, end),
            ).fetchall()
        return [(decode(body), digest) for body, digest in rows]

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
