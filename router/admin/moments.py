"""Moments as people write them: `90m`, `12h` or `7d` back from now, or RFC 3339."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Final

_SPAN: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def since(text: str) -> float:
    """Unix time in seconds; without a zone it is UTC. Raises ValueError, whose text says what is taken."""
    if span := _SPAN.fullmatch(text):
        return time.time() - float(span[1]) * _SECONDS[span[2]]
    try:
        given = datetime.fromisoformat(text)
        return (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        message = "since takes a span, as in 90m, 12h or 7d, or a time, as in 2026-03-01T12:00:00Z"
        raise ValueError(message) from None
