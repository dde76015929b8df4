"""Where `pointsman records` finds the store and the keys of what was captured: by a policy, or by flags."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from router.cli.output import DOES_NOT_HOLD, WRONG_USE, Stop, complain, note, policy_or_stop
from router.config.handling import RecordSettings
from router.records.capture import keys_of
from router.records.opening import open_reader, secret_text
from router.records.sealing import Keys, SealError, read_keys
from router.records.store import Reader, StoreError
from router.records.stored import RecordFormatError


@dataclass(frozen=True, slots=True)
class Where:
    """What the flags say. `config` is the policy that keeps the records."""

    store: Path | None = None
    config: Path | None = None
    dsn_env: str | None = None
    key_env: str | None = None
    key_file: Path | None = None


@contextlib.contextmanager
def open_or_stop(where: Where) -> Iterator[Reader]:
    """The store; raises Stop after saying what is wrong with it."""
    settings = _settings_or_stop(where)
    try:
        with open_reader(settings) as reader:
            yield reader
    except (StoreError, RecordFormatError) as error:
        complain(f"{settings.path or 'PostgreSQL'}: {error}")
        raise Stop(DOES_NOT_HOLD) from None


def keys_or_stop(where: Where) -> Keys:
    """The keys; none where none are named. Raises Stop after saying what is wrong with them."""
    try:
        if where.key_env is not None or where.key_file is not None:
            file = None if where.key_file is None else str(where.key_file)
            return read_keys(secret_text(where.key_env, file))
        if where.config is None:
            return Keys()
        loaded = policy_or_stop(where.config)
        return keys_of(loaded.records.placed(loaded.base).capture if loaded.records else None)
    except (StoreError, SealError) as error:
        complain(f"the keys of captured content: {error}")
        raise Stop(DOES_NOT_HOLD) from None


def keys_if_there(where: Where) -> Keys:
    """The keys that a flag names, as `keys_or_stop`; those of a policy, if they are there, else a note and none."""
    if where.key_env is not None or where.key_file is not None or where.config is None:
        return keys_or_stop(where)
    loaded = policy_or_stop(where.config)
    try:
        return keys_of(loaded.records.placed(loaded.base).capture if loaded.records else None)
    except (StoreError, SealError) as error:
        note(f"captured content that is encrypted stays closed: {error}")
        return Keys()


def _settings_or_stop(where: Where) -> RecordSettings:
    if where.store is not None and where.dsn_env is not None:
        complain("--store names a file and --dsn-env a database; take one of them away")
        raise Stop(WRONG_USE)
    if where.store is not None:
        return RecordSettings(path=str(where.store))
    if where.dsn_env is not None:
        return RecordSettings(store="postgres", dsn_env=where.dsn_env)
    if where.config is None:
        complain(
            "name the store with --store FILE or --dsn-env NAME, or the policy that says where it is with "
            "--config POLICY"
        )
        raise Stop(WRONG_USE)
    loaded = policy_or_stop(where.config)
    if loaded.records is None:
        complain(f"{where.config} keeps no records: it has no `records`; name the store with --store or --dsn-env")
        raise Stop(WRONG_USE)
    return loaded.records.placed(loaded.base)
