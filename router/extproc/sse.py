"""Splits a stream of server-sent events, as it comes in pieces, into the data of each event, or into events whole.

By the WHATWG's rules for event streams, without names, identifiers and retry times, which nobody needs who reads LLM
APIs. An event larger than is held is dropped, and reading goes on with the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

EVENT_BYTES: Final = 1024 * 1024
"""Held of one event at most: the last one of OpenAI's Responses repeats the whole answer."""

_LINE_END = re.compile(rb"[\r\n]")
_ANY_LINE_END = re.compile(rb"\r\n|\n|\r")
_MARK = b"\xef\xbb\xbf"


class EventSplitter:
    """The state between two pieces; at most `limit` bytes of an event are held."""

    def __init__(self, limit: int = EVENT_BYTES) -> None:
        self._limit = limit
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._held = 0
        self._after_return = False
        self._began = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The data of each event that ends in this piece, its lines joined by newlines; none is empty."""
        start = 0
        for found in _LINE_END.finditer(piece):
            end = found.start()
            if self._after_return and end == start and piece[end : end + 1] == b"\n":
                # The second half of a line end, which may have come in two pieces.
                self._after_return = False
                start = end + 1
                continue
            self._hold(piece[start:end])
            event = self._end_line()
            if event:
                yield event
            self._after_return = piece[end : end + 1] == b"\r"
            start = end + 1
        if start < len(piece):
            self._after_return = False
            self._hold(piece[start:])

    def _hold(self, part: bytes) -> None:
        self._held += len(part)
        if part and self._held <= self._limit:
            self._line.append(part)
        elif part and not self._line:
            # Past the limit only what tells the line from an empty one is kept.
            self._line.append(b":")

    def _end_line(self) -> bytes:
        """The event that this line ends, empty for none."""
        if self._held > self._limit:
            self._data.clear()
        line = b"".join(self._line)
        self._line.clear()
        if not self._began:
            self._began = True
            line = line.removeprefix(_MARK)
        if line:
            if line.startswith(b"data:") and self._held <= self._limit:
                self._data.append(line[5:].removeprefix(b" "))
            return b""
        event = b"\n".join(self._data)
        self._data.clear()
        self._held = 0
        return event


class RawEvent(NamedTuple):
    """One event as it was sent, with the empty line that ends it, and its data; empty where it has none."""

    raw: bytes
    data: bytes


class EventTooLargeError(Exception):
    """An event of more bytes than are held."""


class RawEventSplitter:
    """Splits a stream so that the events, one after the other, are the bytes that came; none of more than `limit`."""

    def __init__(self, limit: int = EVENT_BYTES) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._line = 0
        self._scanned = 0
        self._after_return = False
        self._data = EventSplitter(limit)

    @property
    def held(self) -> int:
        """Bytes of an event that has not ended."""
        return len(self._buffer)

    def feed(self, piece: bytes) -> Iterator[RawEvent]:
        """The events that end in this piece; raises EventTooLargeError, and then nothing more can be fed."""
        self._buffer += piece
        while (end := self._find_end()) is not None:
            raw = bytes(self._buffer[:end])
            if end > self._limit:
                raise EventTooLargeError
            del self._buffer[:end]
            self._line = self._scanned = 0
            self._after_return = raw.endswith(b"\r")
            yield RawEvent(raw, b"\n".join(self._data.feed(raw)))
        if len(self._buffer) > self._limit:
            raise EventTooLargeError

    def end(self) -> RawEvent | None:
        """What came behind the last event that ended, as if an empty line had followed: some clients read it so."""
        raw = bytes(self._buffer)
        self._buffer.clear()
        return RawEvent(raw, b"\n".join(self._data.feed(raw + b"\n\n"))) if raw else None

    def _find_end(self) -> int | None:
        """The place behind the first empty line."""
        while found := _ANY_LINE_END.search(self._buffer, self._scanned):
            start, self._scanned = found.span()
            if start == self._line and not (found[0] == b"\n" and self._second_half(start)):
                return self._scanned
            self._line = self._scanned
        self._scanned = len(self._buffer)
        return None

    def _second_half(self, newline: int) -> bool:
        """Whether this newline belongs to a return that came in an earlier piece."""
        return self._buffer[newline - 1] == 0x0D if newline else self._after_return
