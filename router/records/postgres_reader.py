"""Records of a PostgreSQL database, read while others write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import psycopg
from psycopg.pq import TransactionStatus

from router.records.basis import StoredBasis, read_basis
from router.records.postgres_link import READING_SECONDS, bounded, connect, told, version_of
from router.records.record_id import first_id
from router.records.store import AFTER_ALL, ContentRow, Filter, StoreError
from router.records.stored import RecordFormatError, StoredRecord, decode_with

_READ: Final = (
    "SELECT r.body, b.digest, c.why, s.body, a.body FROM pointsman_records r JOIN pointsman_bases b ON b.id = r.basis "
    "LEFT JOIN pointsman_contents c USING (record) LEFT JOIN pointsman_shadows s USING (record) "
    "LEFT JOIN {answers} a USING (record)"
)
_NO_ANSWERS: Final = "(SELECT NULL::text AS record, NULL::bytea AS body WHERE false)"
"""In place of the table, for tables of the first version, which a reader leaves as they are."""


class PostgresReader:
    """The records of a database. Use it in a `with`."""

    def __init__(self, dsn: str) -> None:
        """Raises StoreError where no records are kept there."""
        self._connection = connect(dsn)
        try:
            with told(), bounded(self._connection, READING_SECONDS):
                version = version_of(self._connection)
            if version == 0:
                raise StoreError("the database holds no records")
            self._read = _READ.format(answers="pointsman_answers" if version > 1 else _NO_ANSWERS)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> PostgresReader:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(psycopg.Error, OSError):
            self._connection.close()

    def newest(self, chosen: Filter) -> Iterator[tuple[StoredRecord, str]]:
        """As `Reader` says."""
        conditions: list[tuple[str, object]] = [
            (text, value)
            for text, value in (
                ("r.decision = %s", chosen.decision),
                ("r.model = %s", chosen.model),
                ("r.record >= %s", None if chosen.since is None else first_id(chosen.since)),
                ("s.differs = %s", chosen.differing or None),
                ("(a.body IS NOT NULL) = %s", chosen.unpassed or None),
            )
            if value is not None
        ]
        where = f"WHERE {' AND '.join(text for text, _ in conditions)}" if conditions else ""
        statement = f"{self._read} {where} ORDER BY r.record DESC LIMIT %s"
        values = (*(value for _, value in conditions), chosen.limit)
        with (
            told(),
            bounded(self._connection, READING_SECONDS),
            # At the server, so that a month of records need not fit into memory.
            self._connection.cursor(name="pointsman_newest") as cursor,
        ):
            cursor.execute(statement, values)
            for body, digest, why, shadow, answer in cursor:
                yield decode_with(body, why, shadow, answer), digest

    def find(self, record: str) -> list[tuple[StoredRecord, str]]:
        """As `Reader` says."""
        rows = self._all(
            f"{self._read} WHERE r.record >= %s AND r.record < %s ORDER BY r.record LIMIT 3",
            record,
            f"{record}{AFTER_ALL}",
        )
        return [(decode_with(body, why, shadow, answer), digest) for body, digest, why, shadow, answer in rows]

    def basis(self, digest: str) -> StoredBasis:
        """As `Reader` says."""
        rows = self._all("SELECT body FROM pointsman_bases WHERE digest = %s", digest)
        if not rows:
            raise RecordFormatError("has records without the policy that they rest on")
        return read_basis(rows[0][0])

    def content(self, record: str) -> ContentRow | None:
        """As `Reader` says."""
        rows = self._all("SELECT why, body FROM pointsman_contents WHERE record = %s", record)
        return ContentRow(record, *rows[0]) if rows else None

    def _all(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with told():
            if self._connection.info.transaction_status != TransactionStatus.IDLE:
                # Within a reading of many: the answer is of that moment too.
                return self._connection.execute(statement, values).fetchall()
            with bounded(self._connection, READING_SECONDS):
                return self._connection.execute(statement, values).fetchall()
