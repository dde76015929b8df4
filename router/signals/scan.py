"""Searches a whole text for things that have a shape, window by window, so that nothing hides in a long one.

A text is read as it was written and, where that differs, as a model reads it: without invisible characters, with
compatibility forms replaced. In both, digits, dashes and blanks of any script count as the ASCII ones. What has which
shape is for the families to say. Linear in the text's length, and gives way on the event loop.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, NamedTuple

from router.signals.texts import composed, stretches, visible

AROUND: Final = 512
"""Characters on either side of where something begins that are seen with it; what is longer may be missed."""

AT_ONCE: Final = 4_096
"""Characters that are searched before others get their turn: a fraction of a millisecond, and at the worst, in a text
that was made of what almost is something, about ten."""


class Finding(NamedTuple):
    """Something in a text: its half-open character range, what it is, and how sure that is, 0-1."""

    start: int
    end: int
    label: str
    score: float


class Found(NamedTuple):
    """A finding in a whole text. `span` is None where rewriting has moved characters; `key` tells values apart."""

    span: tuple[int, int] | None
    label: str
    score: float
    key: int


# The minus sign; quotation marks, which readers of images see in the fillers of a travel document.
_ALIKE: Final = {"\u2212": "-", "\u00ab": "<", "\u2039": "<"}

Finder = Callable[[str, bytes], Iterable[Finding]]
"""What there is in a window of text; pure, linear in its length, and may not take more than a few milliseconds.

The second argument is the text in ASCII with a question mark for every other character, so that a place in it is the
same place in the text: patterns run on it without being told where characters begin."""


class Claims:
    """Which characters of a window have been taken."""

    def __init__(self, length: int) -> None:
        self._taken = bytearray(length)

    def free(self, start: int, end: int) -> bool:
        """Whether none of the half-open range is taken."""
        return not any(self._taken[start:end])

    def take(self, start: int, end: int) -> None:
        """Take the half-open range."""
        self._taken[start:end] = b"\1" * (end - start)


class _Window(NamedTuple):
    """Text whose first character is the one at `place` of the whole; what begins in [begin, until) is this window's."""

    text: str
    place: int
    begin: int
    until: int
    exact_to: int
    rewritten: bool


async def scan(text: str, find: Finder) -> AsyncIterator[Found]:
    """Every finding; the same value may come more than once."""
    async for window in _windows(text, composed):
        for found in _found(window, find):
            yield found
        await asyncio.sleep(0)
    if text.isascii():
        return
    async for window in _windows(text, visible):
        if window.rewritten:
            for found in _found(window, find):
                yield found
        await asyncio.sleep(0)


def _found(window: _Window, find: Finder) -> Iterable[Found]:
    text = plain(window.text)
    for start, end, label, score in find(text, text.encode("ascii", "replace")):
        if window.begin <= start < window.until:
            span = (window.place + start, window.place + end)
            key = hash((label, text[start:end].casefold()))
            yield Found(span if span[1] <= window.exact_to else None, label, score, key)


async def _windows(text: str, rewritten: Callable[[str], str]) -> AsyncIterator[_Window]:
    seen = ""
    place = begin = read = exact_to = changed_to = 0
    async for piece in stretches(text, rewritten):
        for start in range(0, max(len(piece.text), 1), AT_ONCE):
            more = piece.text[start : start + AT_ONCE]
            if piece.exact and exact_to == read:
                exact_to += len(more)
            read += len(more)
            changed_to = changed_to if piece.exact else read
            seen += more
            last = piece.last and start + AT_ONCE >= len(piece.text)
            until = len(seen) + 1 if last else max(len(seen) - AROUND, begin)
            # Where all was deleted too, what is left and right of it has moved together.
            yield _Window(seen, place, begin, until, exact_to, changed_to > 0 and place <= changed_to)
            done = max(until - AROUND, 0)
            seen = seen[done:]
            place += done
            begin = until - done


def plain(text: str) -> str:
    """The same characters with digits, dashes and blanks as ASCII has them; the length stays the same."""
    if text.isascii():
        return text
    table = {ord(char): like for char in set(text) if (like := _like(char)) is not None}
    return text.translate(table) if table else text


def _like(char: str) -> str | None:
    if char.isascii():
        return None
    match unicodedata.category(char):
        case "Nd":
            return str(unicodedata.decimal(char))
        case "Pd":
            return "-"
        case "Zs":
            return " "
    return _ALIKE.get(char)
