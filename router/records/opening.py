"""Opens the store that a policy means. What gives access to a database comes from the environment or a file.

It is read whenever the store is opened, so that one that was changed counts from the next connection on.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from router.config.handling import RecordSettings
from router.records.sqlite_store import SqliteStore, StoreReader
from router.records.store import Reader, Store, StoreError

STORE, READER, LINK = (f"router.records.postgres_{name}" for name in ("store", "reader", "link"))
"""Modules that need the optional driver."""


def open_store(settings: RecordSettings) -> Store:
    """The store for appending, of settings with whole paths; raises StoreError."""
    if settings.path is not None:
        return SqliteStore(Path(settings.path))
    store: Store = _with_driver(STORE).PostgresStore(_dsn(settings))
    return store


def open_reader(settings: RecordSettings) -> Reader:
    """The store for reading, of settings with whole paths; raises StoreError."""
    if settings.path is not None:
        return StoreReader(Path(settings.path))
    return open_database(_dsn(settings))


def open_database(dsn: str) -> Reader:
    """The records of a PostgreSQL database; raises StoreError."""
    reader: Reader = _with_driver(READER).PostgresReader(dsn)
    return reader


def check_place(settings: RecordSettings) -> None:
    """Raises StoreError for a store that can never be opened, whatever its server does."""
    if settings.store == "postgres":
        _with_driver(LINK).check_dsn(_dsn(settings))


def named(settings: RecordSettings) -> str:
    """What a store is called in the log, without what gives access to it."""
    return Path(settings.path).name if settings.path is not None else settings.store


def secret_text(variable: str | None, file: str | None) -> str:
    """The text of an environment variable or of a file, stripped; raises StoreError, which names the place alone."""
    if variable is not None:
        text = os.environ.get(variable, "").strip()
        if not text:
            raise StoreError(f"the environment variable {variable} is not set")
        return text
    path = Path(file or "")
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise StoreError(f"{path.name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise StoreError(f"{path.name}: is no text") from None
    if not text:
        raise StoreError(f"{path.name}: is empty")
    return text


def _dsn(settings: RecordSettings) -> str:
    return secret_text(settings.dsn_env, settings.dsn_file)


def _with_driver(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise StoreError("`store: postgres` needs a driver: pip install 'pointsman[postgres]'") from None
