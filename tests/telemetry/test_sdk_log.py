"""What the OpenTelemetry SDK says, said again in few words."""

from __future__ import annotations

import enum
import logging
from typing import Any

import pytest

from router.telemetry.sdk_log import MOST_KINDS, PAUSE_SECONDS, Relay, without_values


class Code(enum.Enum):
    UNAVAILABLE = 14


def line(text: str, *args: Any) -> logging.LogRecord:
    return logging.LogRecord("opentelemetry.exporter", logging.ERROR, "", 0, text, args, None)


def test_texts_are_left_out_and_numbers_and_kinds_stay() -> None:
    said = without_values(
        line("failed to %s, code %s, after %.2fs: %s", "CANARY", Code.UNAVAILABLE, 1.5, OSError("CANARY"))
    )
    assert said == "failed to ..., code Code.UNAVAILABLE, after 1.50s: OSError"
    assert without_values(line("count %d", "no number")) == "count %d"
    assert without_values(line("first\nsecond")) == "first"
    assert len(without_values(line("x" * 10_000))) < 300


def test_the_same_is_said_once_a_minute_with_how_often(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    relay = Relay(lambda: now)
    for _ in range(5):
        relay.handle(line("failed to %s", "export"))
    relay.handle(line("another thing"))
    now = PAUSE_SECONDS
    relay.handle(line("failed to %s", "export"))
    fields = [record.__dict__["fields"] for record in caplog.records]
    assert [(each["why"], each["repeated"]) for each in fields] == [
        ("failed to ...", 0),
        ("another thing", 0),
        ("failed to ...", 4),
    ]


def test_what_is_remembered_is_bounded() -> None:
    relay = Relay()
    for number in range(3 * MOST_KINDS):
        relay.handle(line(f"line {number}"))
    assert len(relay._said) <= MOST_KINDS
