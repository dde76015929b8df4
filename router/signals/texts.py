"""Which texts of a request a signal reads, and how a long text is cut so that nothing hides in it.

Plain helpers that several families share; they judge nothing. A text of megabytes comes piece by piece, because
rewriting it takes seconds and may make it 18 times as long: who reads the pieces gives way between them.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Final, Literal, NamedTuple

from router.request.marks import normalized
from router.request.view import RequestView, TextSpan

Over = Literal["latest", "user", "all"]
"""`latest`: the last user turn; `user`: every user turn; `all`: every turn and role, tool calls and results too."""

WHICH_TEXTS: Final = (
    "Texts that are read. latest: the last user turn; user: every user turn; all: every turn and role, tool calls and "
    "tool results included."
)
"""What a policy's author is told of an `over`."""

PIECE_CHARACTERS: Final = 8_192
"""Characters that a piece of a long text has at most, where they are ASCII."""

REWRITTEN_AT_ONCE: Final = 2_048
"""Characters that it has at most elsewhere: up to four milliseconds' work where each becomes eighteen (U+FDFA)."""

_CUT_SLACK: Final = 64

_SURROGATE: Final = re.compile("[\ud800-\udfff]")

# Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties, without those of category Cf.
_IGNORABLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_BLANK_LINE: Final = re.compile(rb"\n[ \t\r]*\n\s*")
_SENTENCE_END: Final = re.compile(rb"[.!?][\"')\]]?[ \t]+|\xe3\x80\x82|\n")

_BLANK_BRAILLE: Final = "\u2800"

# Selectors 32 to 126 beyond the first sixteen, read as bytes, are ASCII. One selector behind an ideograph is in use.
_SMUGGLED: Final = re.compile("(?<![\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0110-\U000e016e]")
_FIRST_SMUGGLED: Final = 0xE0110 - 0x20


class Stretch(NamedTuple):
    """A rewritten piece of a text; `exact` says that rewriting changed nothing in it, `last` that no other follows."""

    text: str
    exact: bool
    last: bool


class Segment(NamedTuple):
    """A few words of a text. `span` is their half-open character range, None where rewriting has moved characters."""

    text: str
    span: tuple[int, int] | None


def texts_over(view: RequestView, over: Over) -> tuple[TextSpan, ...]:
    """The texts that `over` names, in the order of the conversation."""
    if over == "latest":
        return view.latest_user_texts
    if over == "user":
        return view.user_texts
    return view.texts


def encodable(text: str) -> str:
    """The text with lone surrogates, which JSON can carry and UTF-8 cannot, as U+FFFD; its length stays the same."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


async def stretches(text: str, rewritten: Callable[[str], str]) -> AsyncIterator[Stretch]:
    """The text in pieces, each rewritten by itself; ASCII stays as it is.

    `rewritten` is `composed` or `visible`. Others get their turn on the event loop after every piece but the last, also
    where nothing is left of it. Pieces are cut where normalising does not look across, so that they join to
    what the whole text would give; only where there is no such place near are they cut blindly.
    """
    begin = 0
    while True:
        raw = text[begin : begin + PIECE_CHARACTERS]
        end = begin + len(raw)
        made = raw
        if not raw.isascii():
            end = _independent(text, begin, begin + REWRITTEN_AT_ONCE)
            raw = text[begin:end]
            made = rewritten(raw)
        last = end >= len(text)
        yield Stretch(made, made == raw, last)
        if last:
            return
        begin = end
        await asyncio.sleep(0)


def composed(text: str) -> str:
    """The text in NFC, encodable, with at most `marks.MARKS` combining marks in a row. Takes linear time."""
    return normalized("NFC", encodable(text), set(text))


def visible(text: str) -> str:
    """The text as a model is likely to read it: compatibility forms replaced (NFKC), invisible characters gone.

    Tag characters (U+E0020 to U+E007E) and variation selectors, which can spell ASCII that nobody sees, become what
    they spell. The result is encodable and has at most `marks.MARKS` combining marks in a row.
    """
    if text.isascii():
        return text
    told = _SMUGGLED.sub(lambda hit: chr(ord(hit[0]) - _FIRST_SMUGGLED), text)
    characters = set(told)
    hidden: dict[int, str | None] = {}
    for char in characters:
        code = ord(char)
        if 0xE0020 <= code <= 0xE007E:
            hidden[code] = chr(code - 0xE0000)
        elif char == _BLANK_BRAILLE:
            hidden[code] = " "
        elif unicodedata.category(char) == "Cf" or _IGNORABLE.match(char):
            hidden[code] = None
    shown = told.translate(hidden) if hidden else told
    return normalized("NFKC", encodable(shown), characters)


async def segments(pieces: AsyncIterable[Stretch], size: int) -> AsyncIterator[Segment]:
    """Segments that follow each other and together are the text, each of at most `size` bytes of UTF-8.

    Cuts fall where the text parts by itself, if it does: see `_cut`. Bytes, because scripts that say more with a
    character also take more bytes for it, and because no tokenizer of ours makes more tokens than bytes. The pieces
    must be encodable; they are taken one at a time, as they are needed.
    """
    data = b""
    place = exact_to = read = 0
    async for piece in pieces:
        if piece.exact and exact_to == read:
            exact_to += len(piece.text)
        read += len(piece.text)
        data += piece.text.encode()
        begin = 0
        while len(data) - begin > size or (piece.last and begin < len(data)):
            end = _cut(data, begin, size)
            text = data[begin:end].decode()
            yield Segment(text, (place, place + len(text)) if place + len(text) <= exact_to else None)
            place += len(text)
            begin = end
        data = data[begin:]


def parts(segment: Segment, size: int) -> list[Segment]:
    """A segment cut as a text is, into smaller ones; none if it is small enough to stay whole."""
    data = segment.text.encode()
    found: list[Segment] = []
    begin = place = 0
    while begin < len(data):
        end = _cut(data, begin, size)
        text = data[begin:end].decode()
        start = None if segment.span is None else segment.span[0] + place
        found.append(Segment(text, None if start is None else (start, start + len(text))))
        place += len(text)
        begin = end
    return found if len(found) > 1 else []


def seam(left: Segment, right: Segment) -> Segment:
    """What stands around the border of two segments that follow each other, in whole words.

    Three eighths of the left one's length on either side: what is cut in two stands in less harmless text than before.
    """
    reach = len(left.text) * 3 // 8
    before, after = left.text[-reach:], right.text[:reach]
    before = before[before.find(" ") + 1 :]
    if len(after) < len(right.text):
        after = after[: after.rfind(" ") + 1] or after
    if left.span is None or right.span is None:
        return Segment(before + after, None)
    return Segment(before + after, (left.span[1] - len(before), right.span[0] + len(after)))


def _independent(text: str, begin: int, limit: int) -> int:
    """The last place at or before `limit` that normalising does not look across, else `limit` itself."""
    if limit >= len(text):
        return len(text)
    for place in range(limit, max(limit - _CUT_SLACK, begin), -1):
        if text[place].isascii():
            return place
        # A starter may still be composed with what stands right before it, such as Hangul's vowels.
        if not unicodedata.combining(text[place]) and _apart(text[max(place - 3, 0) : place], text[place]):
            return place
    return limit


def _apart(before: str, char: str) -> bool:
    together = unicodedata.normalize("NFKC", before + char)
    return together == unicodedata.normalize("NFKC", before) + unicodedata.normalize("NFKC", char)


def _cut(data: bytes, begin: int, size: int) -> int:
    """Where the segment ends that begins at `begin`: at most `size` bytes on, and the data's end if that is nearer.

    What fills no more than half a segment stays whole. Else it ends behind a paragraph, or behind several that fill no
    more than half, so that what stands by itself is read by itself; else, in the second half, behind a sentence or a
    line; else, in the last quarter, behind white space; else between characters.
    """
    limit, half = min(begin + size, len(data)), begin + size // 2
    if len(data) <= half:
        return len(data)
    paragraphs = [end.end() for end in _BLANK_LINE.finditer(data, begin, limit) if data[begin : end.start()].strip()]
    if paragraphs:
        return max((end for end in paragraphs if end <= half), default=paragraphs[0])
    if limit == len(data):
        return limit
    end = max((end.end() for end in _SENTENCE_END.finditer(data, half, limit)), default=0)
    if end:
        return end
    for place in range(limit, limit - size // 4, -1):
        if data[place - 1] in b" \n\t\r":
            return place
    while data[limit] & 0xC0 == 0x80:
        limit -= 1
    return limit
