"""Identifiers of decision records: UUID version 7 (RFC 9562), so that they sort by time."""

from __future__ import annotations

import os
import time
import uuid
from collections import deque
from typing import Final

AT_ONCE: Final = 64
"""Identifiers whose random bits are asked of the system together: each question lets go of the interpreter."""

_BYTES: Final = 10
_ahead: deque[bytes] = deque()
# Nobody may have the same.
os.register_at_fork(after_in_child=_ahead.clear)


def new_record_id() -> str:
    """A new identifier: 48 bits of Unix time in milliseconds, the version, the variant, 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(_random_bytes(), "big")
    value = (milliseconds & (2**48 - 1)) << 80
    value |= 0x7 << 76
    value |= (random >> 62 & 0xFFF) << 64
    value |= 0b10 << 62
    value |= random & (2**62 - 1)
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _random_bytes() -> bytes:
    try:
        return _ahead.pop()
    except IndexError:
        data = os.urandom(AT_ONCE * _BYTES)
        _ahead.extend(data[place : place + _BYTES] for place in range(_BYTES, len(data), _BYTES))
        return data[:_BYTES]


def first_id(seconds: float) -> str:
    """The identifier that sorts before all of this Unix time and later, and after all of earlier milliseconds."""
    return str(uuid.UUID(int=(max(0, int(seconds * 1000)) & (2**48 - 1)) << 80))


def time_of(record: str) -> float | None:
    """The Unix time in seconds that an identifier begins with; None for what is no such identifier."""
    try:
        value = uuid.UUID(record)
    except ValueError:
        return None
    return (value.int >> 80) / 1000 if value.version == 7 else None
