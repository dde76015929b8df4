"""What the OpenTelemetry SDK says in the log, in few words: one line a minute for each thing it says, and no values.

A collector that is down is told of with every batch, and the values in such lines may be headers or answers of others.
Numbers and kinds stay, every text in them is replaced.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from enum import Enum
from typing import Final

logger = logging.getLogger(__name__)

SPOKEN_FOR: Final = "opentelemetry"
"""The logger whose lines go through here."""

PAUSE_SECONDS: Final = 60.0

MOST_KINDS: Final = 256
"""Kinds of lines that are remembered; the SDK has some dozens."""

LONGEST: Final = 200


class Relay(logging.Handler):
    """Says again, as ours, what the SDK says; `repeated` tells how often it was said since the last line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(logging.WARNING)
        self._clock = clock
        self._said: dict[tuple[str, str], tuple[float, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Called under the handler's lock."""
        kind = (record.name, str(record.msg))
        when, repeated = self._said.get(kind, (float("-inf"), 0))
        now = self._clock()
        if now - when < PAUSE_SECONDS:
            self._said[kind] = (when, repeated + 1)
            return
        if len(self._said) >= MOST_KINDS:
            self._said.clear()
        self._said[kind] = (now, 0)
        fields = {"by": record.name, "why": without_values(record), "repeated": repeated}
        logger.log(record.levelno, "telemetry", extra={"fields": fields})


def speak_for_the_sdk() -> None:
    """Let the relay have what the SDK says; once more does nothing."""
    spoken_for = logging.getLogger(SPOKEN_FOR)
    if not any(isinstance(handler, Relay) for handler in spoken_for.handlers):
        spoken_for.addHandler(Relay())
    spoken_for.propagate = False


def without_values(record: logging.LogRecord) -> str:
    """The line with `...` for every text that was put into it, and the type of an error."""
    args = record.args if isinstance(record.args, tuple) else ()
    try:
        text = str(record.msg) % tuple(map(_plain, args)) if args else str(record.msg)
    except (TypeError, ValueError):
        text = str(record.msg)
    kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
    return " ".join(filter(None, (text.partition("\n")[0][:LONGEST], kind)))


def _plain(value: object) -> object:
    match value:
        case bool() | int() | float() | Enum():
            return value
        case BaseException():
            return type(value).__name__
        case _:
            return "..."
