"""Counts what texts are made of: lines, words, lists, code, tables, JSON, formulas, links, questions.

Each counter takes a text in pieces and costs time linear in it; others get their turn between pieces. What these are is
a matter of marks on the page, in many scripts, not of grammar.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

import re2

from router.signals.pieces import UNSPACED, legible, windows, words
from router.signals.texts import Stretch, composed, stretches

LINE_CHARACTERS: Final = 2_048
"""Characters of a line that are looked at to tell what kind of line it is."""

MATCH_CHARACTERS: Final = 4_096
"""Characters of a match that is counted in any case; a longer one only in a text of one piece."""

MATCHED_AT_ONCE: Final = 1_024
"""Bytes with matches in them, a millisecond's work where each byte is one, after which others get their turn."""

_LINE_ENDS: Final = re.compile("\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")
_NUMBERED: Final = re2.compile(
    r"^[\s>]{0,16}(?:\p{Nd}{1,3}[.)]\s|[(]\p{Nd}{1,3}[)]\s|\p{Nd}{1,3}[、．：）]|（\p{Nd}{1,3}）|[\x{2460}-\x{2473}]"
    r"|(?i:step|schritt|étape|etape|paso|passo|passaggio|шаг|krok|stap|adım|خطوة|चरण|ステップ|步骤|단계)\s{0,2}\p{Nd}"
    r"|第\s{0,2}[\p{Nd}一二三四五六七八九十]{1,3}\s{0,2}[步歩])"
)
_BULLET: Final = re2.compile(r"^[\s>]{0,16}(?:[-*+]\s+\S|[•‣◦▪●○⁃・·]\s*\S)")
_TABLE: Final = re2.compile(r"^[\s>]{0,16}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?\s*$|(?i:<table[\s>])")
_FENCE: Final = re.compile(r"[\s>]{0,16}(`{3,}|~{3,})([^`]*)$")

# A mark that ends a question, and not one inside an address or a query string. In Greek it looks like a semicolon.
_QUESTION: Final = re2.compile(
    r"(?:[?\x{FF1F}\x{61F}\x{2047}\x{2048}\x{2049}\x{FE16}\x{FE56}\x{55E}\x{1367}\x{2E2E}\x{A60F}]+[!\x{FF01}]*"
    r"|\p{Greek}\s?;)(?:[^\p{L}\p{N}=&/%_+#-]|[" + UNSPACED + r"]|\z)"
)
_URL: Final = re2.compile(r"(?i:\bhttps?://|\bftp://|\bwww\.)[^\s<>\"]+")
# Inline dollars as Pandoc reads them: something right inside both, no digit behind the second.
_MATH: Final = re2.compile(
    r"(?s)\$\$[^$]+\$\$|\\\[.+?\\\]|\\\(.+?\\\)|\\begin\{(?:equation|align|gather|multline|math|displaymath)"
    r"|\$[^\s$](?:[^$\n]*[^\s$])?\$(?:[^\p{Nd}]|\z)"
)

_JSON_OPENS: Final = re.compile(r'(?:\[\s{0,64})?\{\s{0,64}"')
_JSON_OPENING: Final = 130
_JSON_PARTIAL: Final = re.compile(r"(?:\[\s{0,64})?\{\s{0,64}\Z|\[\s{0,64}\Z")
_JSON_BLANK: Final = re.compile(r"\n[ \t\r]*\Z")
_WITHOUT_BRACKETS: Final = {ord("{"): None, ord("["): None}
_JSON_TOKEN: Final = re.compile(r'["\\{}\[\]]|\n[ \t\r]*\n')


async def lines(pieces: AsyncIterable[Stretch]) -> AsyncIterator[list[str]]:
    """The lines of each piece without their ends, each cut to `LINE_CHARACTERS`; no line is in two pieces."""
    rest = ""
    async for piece in pieces:
        parts = _LINE_ENDS.split(rest + piece.text)
        rest = "" if piece.last else parts.pop()[:LINE_CHARACTERS]
        yield [part[:LINE_CHARACTERS] for part in parts]


async def count_lines(text: str) -> int:
    """Lines that are not blank."""
    return sum([sum(not line.isspace() and line != "" for line in some) async for some in lines(_read(text))])


async def count_words(text: str) -> int:
    """Words; in scripts without spaces, letters."""
    return sum([len(some) async for some in words(legible(text))])


async def count_code_blocks(text: str) -> int:
    """Fenced blocks of code as CommonMark has them, one that is never closed included."""
    return (await _outside_code(text, None))[1]


def outside_code(pattern: Any) -> Callable[[str], Awaitable[int]]:
    """A counter of the lines that match, in fenced code none."""

    async def count(text: str) -> int:
        return (await _outside_code(text, pattern))[0]

    return count


def matches(*patterns: Any) -> Callable[[str], Awaitable[int]]:
    """A counter of how often all the RE2 patterns match one behind the other, and then again from the first.

    With one pattern, it counts its matches that do not overlap.
    """

    async def count(text: str) -> int:
        total = step = reached = 0
        async for window in windows(_read(text), MATCH_CHARACTERS):
            data = window.text.encode()
            place, until, end = (
                _bytes_before(window.text, data, at)
                for at in (max(reached - window.place, window.begin), window.until, window.end)
            )
            begin = place
            while place <= end and (hit := patterns[step].search(data, place, end)) is not None and hit.start() < until:
                step = (step + 1) % len(patterns)
                total += step == 0
                place = max(hit.end(), hit.start() + 1)
                if place - begin > MATCHED_AT_ONCE:
                    begin = place
                    await asyncio.sleep(0)
            reached = max(reached, window.place + len(data[:place].decode(errors="ignore")))
        return total

    return count


def _bytes_before(text: str, data: bytes, place: int) -> int:
    if len(text) == len(data) or place >= len(text):
        return place + len(data) - len(text)
    return len(text[:place].encode())


async def count_json_blocks(text: str) -> int:
    """Outermost objects, or lists of objects, that are closed again; a blank line gives up on one that is not."""
    count = depth = place = 0
    in_string = False
    carry = ""
    async for piece in _read(text):
        data = carry + piece.text
        while place < len(data):
            if depth == 0:
                start = _JSON_OPENS.search(data, place)
                if start is None:
                    break
                place, in_string = start.end(), True
                depth = len(start[0]) - len(start[0].translate(_WITHOUT_BRACKETS))
            token = _JSON_TOKEN.search(data, place)
            if token is None:
                break
            place = token.end()
            if token[0] == "\\":
                place += in_string
            elif token[0] == '"':
                in_string = not in_string
            elif token[0].startswith("\n"):
                depth, in_string = 0, False
            elif not in_string:
                depth += 1 if token[0] in "{[" else -1
                count += depth == 0
        # An opening or a blank line may lie across the border.
        begin = max(place, len(data) - _JSON_OPENING)
        partial = (_JSON_BLANK if depth else _JSON_PARTIAL).search(data, begin) if begin < len(data) else None
        carry = data[partial.start() :] if partial else ""
        place = max(place - len(data), 0)
    return count


COUNTERS: Final[Mapping[str, Callable[[str], Awaitable[int]]]] = {
    "questions": matches(_QUESTION),
    "steps": outside_code(_NUMBERED),
    "bullets": outside_code(_BULLET),
    "code_blocks": count_code_blocks,
    "tables": outside_code(_TABLE),
    "json_blocks": count_json_blocks,
    "math": matches(_MATH),
    "urls": matches(_URL),
    "lines": count_lines,
    "words": count_words,
}
"""What can be counted in a text, by the name that policies use."""


def _read(text: str) -> AsyncIterator[Stretch]:
    return stretches(text, composed)


async def _outside_code(text: str, pattern: Any) -> tuple[int, int]:
    """Lines outside fenced code that match, and how many fenced blocks there are."""
    count = blocks = 0
    fence = ""
    async for some in lines(_read(text)):
        for line in some:
            mark = _FENCE.match(line) if "```" in line or "~~~" in line else None
            if fence:
                if mark and mark[1].startswith(fence) and not mark[2].strip():
                    fence = ""
            elif mark:
                fence = mark[1]
                blocks += 1
            elif pattern is not None and pattern.search(line) is not None:
                count += 1
    return count, blocks
