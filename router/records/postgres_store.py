"""Records of many pods in one PostgreSQL database: appended to in batches, pruned by one at a time, read meanwhile.

How the server is spoken to is `postgres_link.py`'s matter, who batches, and when, `writer.py`'s.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import psycopg
from psycopg import sql

from router.records.postgres_link import READING_SECONDS, STATEMENT_SECONDS, bounded, connect, told, version_of
from router.records.postgres_schema import MIGRATIONS, SCHEMA_LOCK, SCHEMA_VERSION
from router.records.record_id import first_id
from router.records.store import AFTER_ALL, AnswerRow, AnyRow, ContentRow, Keep, Row, ShadowRow

PRUNED_AT_ONCE: Final = 2000
PRUNE_SECONDS: Final = 60.0
"""Between two looks at what is too old or too much, by whichever pod comes first."""

REST: Final = 50
"""How many times as long as a look at the size took nobody looks again: of many millions of rows it takes seconds."""

SLACK: Final = 0.9
"""Share of `keep.bytes` that is left after records had to go for it, so that this is not needed with every look."""

LONGEST_REST: Final = 3600.0

BASES_LOCK: Final = 0x504D5243_00000002
"""Held shared by whoever appends, and alone by whoever removes policies that no record rests on any more."""

PRUNE_LOCK: Final = 0x504D5243_00000003


class PostgresStore:
    """The database, open for appending. Belongs to one thread."""

    _seconds = STATEMENT_SECONDS

    def __init__(self, dsn: str) -> None:
        """Make the tables where they are missing; raises StoreError."""
        self._connection = connect(dsn)
        try:
            with told():
                self._migrate()
        except BaseException:
            self.close()
            raise

    def append(self, rows: Sequence[AnyRow], bases: Mapping[str, bytes]) -> None:
        """As `Store` says."""
        records = [row for row in rows if isinstance(row, Row)]
        contents = [row for row in rows if isinstance(row, ContentRow)]
        shadows = [row for row in rows if isinstance(row, ShadowRow)]
        answers = [row for row in rows if isinstance(row, AnswerRow)]
        with told(), self._transaction():
            if records:
                self._append_records(records, bases)
            if contents:
                self._run(
                    "INSERT INTO pointsman_contents (record, why, body, size) "
                    "SELECT r, w, b, coalesce(octet_length(b), 0) "
                    "FROM unnest(%s::text[], %s::text[], %s::bytea[]) AS t (r, w, b) ON CONFLICT DO NOTHING",
                    [one.record for one in contents],
                    [one.why for one in contents],
                    [one.body for one in contents],
                )
            if shadows:
                self._run(
                    "INSERT INTO pointsman_shadows (record, differs, body) "
                    "SELECT * FROM unnest(%s::text[], %s::bool[], %s::bytea[]) ON CONFLICT DO NOTHING",
                    [one.record for one in shadows],
                    [one.differs for one in shadows],
                    [one.body for one in shadows],
                )
            if answers:
                self._run(
                    "INSERT INTO pointsman_answers (record, body) SELECT * FROM unnest(%s::text[], %s::bytea[]) "
                    "ON CONFLICT DO NOTHING",
                    [one.record for one in answers],
                    [one.body for one in answers],
                )

    def prune(self, keep: Keep, now: float | None = None) -> int:
        """As `Store` says; the size is that of records and content as they were written, without indexes.

        Does nothing where another pod has just looked.
        """
        now = time.time() if now is None else now
        with told():
            if not self._turn(now):
                return 0
            if keep.content_seconds is not None:
                self._remove_before("pointsman_contents", first_id(now - keep.content_seconds))
            removed = self._remove_records(first_id(now - keep.seconds))
            if (bound := self._bound_of_size(keep.bytes, now)) is not None:
                removed += self._remove_records(bound)
            if removed:
                self._remove_bases()
        return removed

    def close(self) -> None:
        """Give the connection up."""
        with contextlib.suppress(psycopg.Error, OSError):
            self._connection.close()

    def _migrate(self) -> None:
        """Bring the tables to this version; where they are there, no right to make any is needed."""
        with self._transaction():
            if version_of(self._connection) == SCHEMA_VERSION:
                return
        with self._transaction():
            self._run("SELECT pg_advisory_xact_lock(%s)", SCHEMA_LOCK)
            version = version_of(self._connection)
            for step in MIGRATIONS[version:]:
                self._connection.execute(step)
            self._run("UPDATE pointsman_meta SET version = %s", SCHEMA_VERSION)

    def _append_records(self, records: Sequence[Row], bases: Mapping[str, bytes]) -> None:
        self._run("SELECT pg_advisory_xact_lock_shared(%s)", BASES_LOCK)
        # In one order, so that two pods with the same policies never wait for each other.
        digests = sorted({row.basis for row in records})
        self._run(
            "INSERT INTO pointsman_bases (digest, body) SELECT * FROM unnest(%s::text[], %s::bytea[]) "
            "ON CONFLICT (digest) DO NOTHING",
            digests,
            [bases[digest] for digest in digests],
        )
        self._run(
            "INSERT INTO pointsman_records (record, decision, model, basis, body, size) "
            "SELECT r, d, m, p.id, b, octet_length(b) "
            "FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bytea[]) AS t (r, d, m, p, b) "
            "JOIN pointsman_bases p ON p.digest = t.p ON CONFLICT DO NOTHING",
            [row.record for row in records],
            [row.decision for row in records],
            [row.model for row in records],
            [row.basis for row in records],
            [row.body for row in records],
        )

    def _turn(self, now: float) -> bool:
        """Whether it is this pod's turn to prune; it is nobody's for a while then."""
        with self._transaction():
            return (
                self._run(
                    "UPDATE pointsman_meta SET pruned = %s WHERE pruned <= %s OR pruned > %s RETURNING 1",
                    now,
                    now - PRUNE_SECONDS,
                    # Of a clock that was set back.
                    now + PRUNE_SECONDS,
                ).fetchone()
                is not None
            )

    def _remove_records(self, bound: str) -> int:
        for table in ("pointsman_contents", "pointsman_shadows", "pointsman_answers"):
            self._remove_before(table, bound)
        return self._remove_before("pointsman_records", bound)

    def _remove_before(self, table: str, bound: str) -> int:
        removed = 0
        statement = sql.SQL(
            "DELETE FROM {table} WHERE record IN "
            "(SELECT record FROM {table} WHERE record < %s ORDER BY record LIMIT %s)"
        ).format(table=sql.Identifier(table))
        while True:
            with self._transaction():
                if not self._alone(PRUNE_LOCK):
                    return removed
                gone = self._connection.execute(statement, (bound, PRUNED_AT_ONCE)).rowcount
            removed += gone
            if gone < PRUNED_AT_ONCE:
                return removed

    def _bound_of_size(self, most: int, now: float) -> str | None:
        """The identifier before which all must go, so that what is left is `SLACK` of `most`.

        None where there is room, and for a while after the last look.
        """
        began = time.monotonic()
        with self._transaction():
            # For as long as that, if it cannot be told how much there is.
            claimed = self._run(
                "UPDATE pointsman_meta SET sized = %s WHERE sized NOT BETWEEN %s AND %s RETURNING 1",
                now + LONGEST_REST,
                now,
                now + LONGEST_REST,
            ).fetchone()
        if claimed is None:
            return None
        with self._transaction(READING_SECONDS):
            total = self._run(
                "SELECT (SELECT coalesce(sum(size), 0) FROM pointsman_records) + "
                "(SELECT coalesce(sum(size), 0) FROM pointsman_contents)"
            ).fetchone()
            self._run(
                "UPDATE pointsman_meta SET sized = %s",
                now + min(LONGEST_REST, REST * (time.monotonic() - began)),
            )
            if total is None or total[0] <= most:
                return None
            row = self._run(
                "SELECT record FROM (SELECT record, sum(size + beside) OVER (ORDER BY record DESC) AS total FROM "
                "(SELECT r.record, r.size, coalesce(c.size, 0) AS beside FROM pointsman_records r "
                "LEFT JOIN pointsman_contents c USING (record)) AS sizes) AS sums WHERE total <= %s "
                "ORDER BY record LIMIT 1",
                int(most * SLACK),
            ).fetchone()
        return AFTER_ALL if row is None else str(row[0])

    def _remove_bases(self) -> None:
        with self._transaction():
            # Whoever appends just now counts on the policies that it has seen; another look will come.
            if self._alone(BASES_LOCK):
                self._run(
                    "DELETE FROM pointsman_bases b WHERE NOT EXISTS "
                    "(SELECT 1 FROM pointsman_records r WHERE r.basis = b.id)"
                )

    def _alone(self, lock: int) -> bool:
        row = self._run("SELECT pg_try_advisory_xact_lock(%s)", lock).fetchone()
        return bool(row and row[0])

    def _run(self, statement: str, *values: object) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._connection.execute(statement, values)

    @contextlib.contextmanager
    def _transaction(self, seconds: float | None = None) -> Iterator[None]:
        with bounded(self._connection, self._seconds if seconds is None else seconds):
            yield
