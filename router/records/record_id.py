"""Identifiers of decision records: UUID version 7 (RFC 9562), so that they sort by time."""

from __future__ import annotations

import secrets
import time
import uuid


def new_record_id() -> str:
    """A new identifier: 48 bits of Unix time in milliseconds, the version, the variant, 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    random = secrets.randbits(74)
    value = (milliseconds & (2**48 - 1)) << 80
    value |= 0x7 << 76
    value |= (random >> 62) << 64
    value |= 0b10 << 62
    value |= random & (2**62 - 1)
    return str(uuid.UUID(int=value))


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
