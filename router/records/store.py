"""What every store of records is: how rows go in, how records come out, and how one says that it can't.

SQLite and PostgreSQL stand behind it (`sqlite_store.py`, `postgres_store.py`); which of them a policy means is found in
`opening.py`. Beside a record lies what is known only after it: what was captured of its content, what a shadow policy
would have done, and why the answer did not pass the checks. Each finds its record by the identifier, in whichever order
they arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from router.records.basis import StoredBasis
from router.records.stored import StoredRecord

AFTER_ALL: Final = "g"
"""Sorts after every identifier, which begins with a hex digit."""


class StoreError(Exception):
    """A store that cannot be used now; the text says why, for the operator, and quotes nothing that is stored.

    `busy`: it may well be later, so that what was to be written is worth keeping. `away`: nobody answers there, so that
    asking again at once is of no use.
    """

    def __init__(self, why: str, busy: bool = False, away: bool = False) -> None:
        super().__init__(why)
        self.busy = busy or away
        self.away = away


@dataclass(frozen=True, slots=True)
class Row:
    """A record on its way into the store: what is looked up, the digest of its basis, and the whole in JSON."""

    record: str
    decision: str
    model: str | None
    basis: str
    body: bytes


@dataclass(frozen=True, slots=True)
class ContentRow:
    """What was captured of a request: `body` as `content.py` writes it, or None and in `why` why there is none."""

    record: str
    why: str = ""
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ShadowRow:
    """What a shadow policy would have done, in JSON; `differs` says whether that is something else."""

    record: str
    differs: bool
    body: bytes


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """Why the model's answer did not pass the checks, in JSON."""

    record: str
    body: bytes


BesideRow: TypeAlias = ContentRow | ShadowRow | AnswerRow
AnyRow: TypeAlias = Row | BesideRow


@dataclass(frozen=True, slots=True)
class Keep:
    """How long and how much: seconds for records, for their content, and bytes of both."""

    seconds: float
    bytes: int
    content_seconds: float | None = None
    """None: as long as their records."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which records are read. `since` is a Unix time in seconds, `limit` how many of the newest; None: all.

    `differing`: only those for which a shadow policy would have done something else. `unpassed`: only those whose
    answer did not pass the checks.
    """

    decision: str | None = None
    model: str | None = None
    since: float | None = None
    limit: int | None = None
    differing: bool = False
    unpassed: bool = False


class Store(Protocol):
    """A store, open for appending. Belongs to one thread."""

    def append(self, rows: Sequence[AnyRow], bases: Mapping[str, bytes]) -> None:
        """Add all rows or, with StoreError, none; `bases` has the bodies of all that they name.

        Those that are there already are passed over: a commit may have succeeded and looked as if it had not.
        """
        ...

    def prune(self, keep: Keep, now: float | None = None) -> int:
        """Remove what is older than that, and the oldest of what is more; how many records. Raises StoreError."""
        ...

    def close(self) -> None:
        """Give the store up."""
        ...


class Reader(Protocol):
    """A store's records, read while others write. Use it in a `with`."""

    def __enter__(self) -> Reader: ...

    def __exit__(self, *_: object) -> None: ...

    def newest(self, chosen: Filter) -> Iterator[tuple[StoredRecord, str]]:
        """Records with the digests of their bases, newest first. Raises StoreError, RecordFormatError.

        All are of one moment, whatever is written meanwhile.
        """
        ...

    def find(self, record: str) -> list[tuple[StoredRecord, str]]:
        """The record of this identifier, or, at most three, those whose identifiers begin so. Raises as `newest`."""
        ...

    def basis(self, digest: str) -> StoredBasis:
        """The basis of this digest; raises StoreError, RecordFormatError."""
        ...

    def content(self, record: str) -> ContentRow | None:
        """What was captured of this record's request, or why nothing was; None where that was not wanted."""
        ...
