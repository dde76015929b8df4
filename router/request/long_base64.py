"""JSON with pictures in it, read without going through every character of them.

Nearly all of a body of megabytes is base64 in a few strings, and a parser looks at each byte of it, to find nothing. So
the base64 is decoded where it stands, which is faster by far and says as well that no quote, no backslash and no other
character is in it. The parser then reads the rest, with a mark in place of each, and the strings are put back.

What is read is what the parser would have read of the whole body: a run of such characters right behind a quote, or
behind the comma of a `data:` URI, and right before a quote is nothing but a part of a string, whatever its length, or
it is in the way of valid JSON as much as its mark is. Where anything is unusual, nothing is answered, and the whole
body has to be read.
"""

from __future__ import annotations

import binascii
import contextlib
import re
import secrets
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
import pybase64

LEAST: Final = 65_536
"""Characters of the shortest string that is taken out: for less it does not pay."""

MOST_VALUES: Final = 200_000
"""Values that a body may have: long chats with large tool schemas have some thousands, and a body of nothing but tiny
ones would keep a worker busy for seconds."""

_MOST_RUNS: Final = 1_000
_HEAD: Final = re.compile(rb"data:[ !#-+\--\[\]-~]{0,4096},", re.IGNORECASE)
# Nobody who writes a body knows it, so that nothing else in there is taken for a mark.
_SECRET: Final = secrets.token_hex(16).encode()


class _Known(NamedTuple):
    """What the base64 of `text` from `start` on decodes to."""

    text: str
    start: int
    data: bytes


@dataclass(slots=True)
class _Memory:
    """What is known of the body that is being read."""

    strings: dict[int, _Known] = field(default_factory=dict)
    hollow: Hollow | None = None


_MEMORY: Final[ContextVar[_Memory | None]] = ContextVar("memory", default=None)


@contextlib.contextmanager
def remembering() -> Iterator[None]:
    """While this is entered, what was found on the way to the strings of a body is known to who reads it on."""
    before = _MEMORY.set(_Memory())
    try:
        yield
    finally:
        _MEMORY.reset(before)


def known_base64(text: str, start: int) -> bytes | None:
    """What the base64 in this very string decodes to, from this place to its end; None where that is not known."""
    memory = _MEMORY.get()
    known = memory.strings.get(id(text)) if memory is not None else None
    return known.data if known is not None and known.text is text and known.start == start else None


def known_hollow(body: bytes) -> Hollow | None:
    """This very body without its long base64; None where it was not read like that."""
    memory = _MEMORY.get()
    hollow = memory.hollow if memory is not None else None
    return hollow if hollow is not None and hollow.body is body else None


class _Run(NamedTuple):
    """Base64 from `start` to `end` of a body, in what may be a string whose first character is at `begin`."""

    begin: int
    start: int
    end: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Hollow:
    """A `body` without its long base64: `text` is JSON, `document` what it reads as."""

    body: bytes = field(repr=False)
    text: bytes = field(repr=False)
    document: Any = field(repr=False)
    _places: tuple[tuple[Any, Any, _Run], ...] = field(repr=False)
    _runs: tuple[_Run, ...] = field(repr=False)

    def fill(self) -> None:
        """Make the document that of the whole body."""
        view, memory = memoryview(self.body), _MEMORY.get()
        if memory is not None:
            memory.hollow = self
        for container, key, run in self._places:
            text = str(view[run.begin : run.end], "ascii")
            container[key] = text
            if memory is not None:
                memory.strings[id(text)] = _Known(text, run.start - run.begin, run.data)

    def place(self, at: int) -> int:
        """The place in the body of one in `text` that is in none of the marks."""
        for index, run in enumerate(self._runs):
            if run.start >= at:
                break
            at += run.end - run.start - len(_mark(index))
        return at


def hollowed(body: bytes) -> Hollow | None:
    """The body without its long base64; None where it has none, is no JSON, or has some elsewhere than in values."""
    if len(body) <= LEAST:
        return None
    runs = tuple(_runs(body))
    if not runs or len(runs) > _MOST_RUNS:
        return None
    pieces: list[bytes] = []
    wanted: dict[str, _Run] = {}
    place = 0
    for index, run in enumerate(runs):
        mark = _mark(index)
        pieces += (body[place : run.start], mark)
        wanted[(body[run.begin : run.start] + mark).decode("ascii")] = run
        place = run.end
    text = b"".join((*pieces, body[place:]))
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    places = tuple(_places(document, wanted))
    return Hollow(body, text, document, places, runs) if len(places) == len(runs) else None


def _mark(index: int) -> bytes:
    return b"%b%06x" % (_SECRET, index)


def _runs(body: bytes) -> Iterator[_Run]:
    """Long base64 between two quotes, whether or not it is in a string."""
    view = memoryview(body)
    place, at = 0, LEAST
    while at < len(body):
        # A string as long as this has one of these places in it.
        begin, end = body.rfind(b'"', place, at) + 1, body.find(b'"', at)
        if end < 0:
            return
        if begin > 0 and end - begin >= LEAST:
            head = _HEAD.match(body, begin, end)
            start = head.end() if head is not None else begin
            with contextlib.suppress(binascii.Error, ValueError):
                yield _Run(begin, start, end, pybase64.b64decode(view[start:end], validate=True))
        place, at = end, end + LEAST


def _places(document: object, wanted: dict[str, _Run]) -> Iterator[tuple[Any, Any, _Run]]:
    """Where in the document these strings are values: containers, and keys in them; none of a document too large."""
    longest = max(map(len, wanted))
    values = 0
    stack = [document]
    while stack:
        container = stack.pop()
        members: Any
        if isinstance(container, dict):
            members = container.items()
        elif isinstance(container, list):
            members = enumerate(container)
        else:
            continue
        values += len(container)
        if values > MOST_VALUES:
            return
        for key, value in members:
            if isinstance(value, str):
                if len(value) <= longest and value in wanted:
                    yield container, key, wanted[value]
            elif isinstance(value, dict | list):
                stack.append(value)
