"""Answers as JSON or as server-sent events (WHATWG HTML, section 9.2), already complete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from router.request.reply import Reply

DONE = b"data: [DONE]\n\n"
"""What ends OpenAI's older streams."""


def json_reply(document: Mapping[str, Any], status: int = 200) -> Reply:
    """A JSON document as an answer."""
    return Reply(status, "application/json", msgspec.json.encode(document))


def stream_reply(events: Iterable[Mapping[str, Any]], named: bool, end: bytes = b"") -> Reply:
    """Events as an answer. `named`: each also bears its `type` as the name of the event."""
    body = b"".join(map(_named if named else _data, events))
    return Reply(200, "text/event-stream; charset=utf-8", body + end, (("cache-control", "no-cache"),))


def _data(event: Mapping[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(event) + b"\n\n"


def _named(event: Mapping[str, Any]) -> bytes:
    return f"event: {event['type']}\n".encode() + _data(event)
