"""Splits a stream of server-sent events, as it comes in pieces, into the data of each event.

By the WHATWG's rules for event streams, without names, identifiers and retry times, which nobody needs who reads LLM
APIs. An event larger than is held is dropped, and reading goes on with the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

EVENT_BYTES: Final = 1024 * 1024
"""Held of one event at most: the last one of OpenAI's Responses repeats the whole answer."""

_LINE_END = re.compile(rb"[\r\n]")
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
