"""A connection to PostgreSQL on which nothing is waited for without end, and whose errors quote nothing.

Works through poolers that hand a connection on after each transaction: locks and timeouts are the transaction's own.
Error texts are ours, since those of the driver may quote what it was given, with a password in it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

import psycopg
from psycopg import conninfo
from psycopg.abc import PQGen

from router.records.postgres_schema import FIND_TABLES, READ_VERSION, SCHEMA_VERSION
from router.records.store import StoreError

CONNECT_SECONDS: Final = 3
"""For each address of the server."""

STATEMENT_SECONDS: Final = 5.0
"""After which the server gives a statement up, so that a slow one is tried again and holds no lock for long."""

READING_SECONDS: Final = 60.0
"""The same, where somebody at a terminal waits, and for the sum of sizes."""

ANSWER_SLACK: Final = 2.0
"""How much longer the answer may take to come: a server that has gone without a word gives nothing up."""


logging.getLogger("psycopg").setLevel(logging.CRITICAL)
"""Its lines quote what servers say, and name their hosts and users; what matters of it we say ourselves."""


class Link(psycopg.Connection[tuple[Any, ...]]):
    """A connection on which no answer is waited for without end."""

    patience: float = STATEMENT_SECONDS + ANSWER_SLACK

    def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        """As the driver's, but never without an end."""
        return super().wait(gen, interval, self.patience if timeout is None else timeout)


def check_dsn(dsn: str) -> None:
    """Raises StoreError for what is no connection string; it is not quoted, since it may hold a password."""
    try:
        conninfo.conninfo_to_dict(dsn)
    except psycopg.Error:
        raise StoreError("is no connection string of PostgreSQL") from None


def connect(dsn: str) -> Link:
    """A connection whose transactions begin with `bounded`; raises StoreError."""
    check_dsn(dsn)
    with told():
        return Link.connect(
            dsn,
            autocommit=True,
            # Poolers may hand the next transaction to another session, which knows no statement of this one.
            prepare_threshold=None,
            connect_timeout=CONNECT_SECONDS,
            application_name="pointsman",
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
        )


def version_of(connection: Link) -> int:
    """The version of the tables, 0 where there are none; raises StoreError for one that is not known here."""
    # Not by `to_regclass`: a session goes on believing that there is no table, where another made it while this one
    # waited for the lock. To read the catalogue itself ends that.
    if connection.execute(FIND_TABLES).fetchone() is None:
        return 0
    row = connection.execute(READ_VERSION).fetchone()
    version = int(row[0]) if row else 0
    if version > SCHEMA_VERSION:
        raise StoreError(f"is a store of version {version}; this program knows {SCHEMA_VERSION}")
    return version


@contextlib.contextmanager
def bounded(connection: Link, seconds: float) -> Iterator[None]:
    """A transaction, each of whose statements may take so long."""
    connection.patience = seconds + ANSWER_SLACK
    with connection.transaction():
        connection.execute(
            "SELECT set_config('statement_timeout', %s, true), set_config('lock_timeout', %s, true)",
            (str(int(seconds * 1000)), str(int(seconds * 1000))),
        )
        yield


_CONNECTING: Final[Mapping[str, str]] = {
    "password authentication failed": "the server refuses the user or the password",
    "no password supplied": "the server wants a password",
    "no pg_hba.conf entry": "the server lets nobody in from here",
    "does not exist": "the server has no such user or database",
    "too many": "the server has too many connections",
    "certificate": "the server's certificate is not accepted",
    "SSL": "no TLS with the server",
}
"""What a server says of a connection, which has no code, and our words for it."""

_RETRIED: Final[tuple[type[psycopg.Error], ...]] = (
    psycopg.errors.QueryCanceled,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
    psycopg.errors.UniqueViolation,
)
_AWAY: Final[tuple[type[psycopg.Error], ...]] = (
    psycopg.errors.AdminShutdown,
    psycopg.errors.CrashShutdown,
    psycopg.errors.CannotConnectNow,
    psycopg.errors.TooManyConnections,
    psycopg.errors.ReadOnlySqlTransaction,
    psycopg.errors.IdleInTransactionSessionTimeout,
)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Whatever goes wrong as a StoreError, in words that quote neither the connection string nor a statement."""
    try:
        yield
    except psycopg.Error as error:
        raise _as_store_error(error) from None
    except OSError as error:
        raise StoreError(error.strerror or type(error).__name__, away=True) from None


def _as_store_error(error: psycopg.Error) -> StoreError:
    name, code = type(error).__name__, error.sqlstate
    if isinstance(error, _AWAY):
        return StoreError(f"the server is not there: {name}", away=True)
    if isinstance(error, _RETRIED):
        return StoreError(f"the server is slow: {name}", busy=True)
    if code is not None:
        return StoreError(f"the server refuses: {name} ({code})")
    text = str(error)
    why = next((told for part, told in _CONNECTING.items() if part in text), "the server cannot be reached")
    return StoreError(why, away=True)
