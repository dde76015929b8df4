"""The state of selection as a file: written whole by one process, read by many.

A reader sees the old state or the new one, never a part; what was written survives a power cut. JSON, so that an
operator can look at it.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final

import msgspec

from router.selection.learning import RATING_SPREAD, TIMES_KEPT
from router.selection.snapshot import EMPTY, START_RATING, Arm, Snapshot, Speed

FILE_NAME: Final = "selection.json"

MAX_BYTES: Final = 64 * 2**20
"""A state of 4,096 models with all times kept is about 16 MB."""

_FORMAT: Final = 1

_Sum = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Time = Annotated[float, msgspec.Meta(ge=0)]
_Times = Annotated[tuple[_Time, ...], msgspec.Meta(max_length=TIMES_KEPT)]


class StateFileError(Exception):
    """A file that is no state. The text is for the operator."""


class _Arm(msgspec.Struct, forbid_unknown_fields=True):
    gained: _Sum
    missed: _Sum
    rating: Annotated[float, msgspec.Meta(ge=START_RATING - RATING_SPREAD, le=START_RATING + RATING_SPREAD)]
    rewards: _Count
    comparisons: _Count


class _Speed(msgspec.Struct, forbid_unknown_fields=True):
    ttft: _Times
    latency: _Times
    load: Annotated[float, msgspec.Meta(ge=0, le=1)] | None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    version: _Count
    decisions: dict[str, dict[str, _Arm]]
    models: dict[str, _Speed]


def encode(snapshot: Snapshot) -> bytes:
    """The file's bytes; equal states have equal ones."""
    decisions: dict[str, dict[str, Any]] = {
        decision: {model: _fields(arm) for model, arm in arms.items()} for decision, arms in snapshot.arms.items()
    }
    models = {model: _fields(speed) for model, speed in snapshot.speeds.items()}
    whole = {"format": _FORMAT, "version": snapshot.version, "decisions": decisions, "models": models}
    return msgspec.json.encode(whole, order="sorted")


def decode(data: bytes) -> Snapshot:
    """The state that the bytes hold; raises StateFileError for anything else."""
    try:
        file = msgspec.json.decode(data, type=_File)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StateFileError("is not a state of selection") from error
    if file.format != _FORMAT:
        raise StateFileError(f"is a state of format {file.format}; this version reads {_FORMAT}")
    arms = {
        decision: MappingProxyType(
            {model: Arm(a.gained, a.missed, a.rating, a.rewards, a.comparisons) for model, a in rows.items()}
        )
        for decision, rows in file.decisions.items()
    }
    speeds = {model: Speed(s.ttft, s.latency, s.load) for model, s in file.models.items()}
    return Snapshot(file.version, MappingProxyType(arms), MappingProxyType(speeds), hashlib.sha256(data).hexdigest())


def save(file: Path, snapshot: Snapshot) -> None:
    """Replace the file and wait until it is on the disk; raises OSError. For one writer at a time."""
    fresh = file.with_suffix(".tmp")
    with fresh.open("wb") as out:
        out.write(encode(snapshot))
        out.flush()
        os.fsync(out.fileno())
    fresh.rename(file)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def load(file: Path) -> Snapshot:
    """What the file holds, the empty state where there is none; raises StateFileError and OSError."""
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return EMPTY
    if len(data) > MAX_BYTES:
        raise StateFileError(f"is longer than {MAX_BYTES} bytes")
    return decode(data)


def _fields(row: Arm | Speed) -> dict[str, Any]:
    result: dict[str, Any] = msgspec.to_builtins(row)
    return result
