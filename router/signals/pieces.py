"""Texts of any length as pieces to search: as a reader sees them, in windows that overlap, or word by word.

Builds on the stretches of `texts.py`, which give others their turn between pieces. Nothing here judges.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import AsyncIterable, AsyncIterator
from typing import Final, NamedTuple

import re2

from router.signals.texts import Stretch, stretches, visible

SPACES: Final = 64
"""White space in a row that is kept where a window is asked to squeeze it, so that a phrase has a greatest length."""

LONGEST_WORD: Final = 256
"""Characters of a word that are read; the others are passed over."""

UNSPACED: Final = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}\x{30FC}\x{3005}"
)
"""Scripts, in RE2's words, that are written without spaces between words, or, like Hangul, with particles attached."""

# The same by blocks, for Python's patterns, which know no scripts; what is no letter in them is sorted out elsewhere.
UNSPACED_BLOCKS: Final = re.compile(
    "[\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3021-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u9fff"
    "\ua960-\ua97f\ua9e0-\ua9ff\uaa60-\uaa7f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_LONG_SPACE: Final = re2.compile(rf"[\s\p{{Z}}]{{{SPACES + 1},}}")
# Control characters that are no white space. Nothing shows where they stand.
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")

GLUE: Final = "\x01"
"""What a word begins with that stands right behind another one, as nothing but unspaced scripts make it."""

# Stands for what is no word. Neither it nor GLUE occurs in a text that is read, as control characters are gone.
_GAP: Final = "\x02"
_ASCII_WORDS: Final = {code: chr(code) if chr(code).isalnum() else _GAP for code in range(128)}


class Window(NamedTuple):
    """A stretch of text to search from `begin` to `end`; matches from `until` on are the next window's.

    Its first character is the one at `place` of the whole, and places up to `exact_to` of the whole are the client's.
    """

    text: str
    place: int
    begin: int
    end: int
    until: int
    exact_to: int


def has_controls(text: str) -> bool:
    """Whether there are control characters other than white space."""
    return _CONTROL.search(text) is not None


async def legible(text: str) -> AsyncIterator[Stretch]:
    """The text in pieces as a reader sees it: `visible`, and without control characters, in ASCII too."""
    async for piece in stretches(text, visible):
        if has_controls(piece.text):
            yield Stretch(_CONTROL.sub("", piece.text), False, piece.last)
        else:
            yield piece


async def windows(pieces: AsyncIterable[Stretch], reach: int, squeeze: bool = False) -> AsyncIterator[Window]:
    """One window a piece; it begins so far in the one before that every match of `reach` characters is whole in one.

    The first character of a later window and the last of all but the last one are there to be looked at only: what is a
    word's edge there, and that the text neither begins nor ends. With `squeeze`, no more than `SPACES` blanks are kept
    in a row.
    """
    text = ""
    place = read = exact_to = 0
    async for piece in pieces:
        if piece.exact and exact_to == read:
            exact_to += len(piece.text)
        read += len(piece.text)
        text += piece.text
        if squeeze and (run := _LONG_SPACE.search(text)) is not None:
            exact_to = min(exact_to, place + run.start())
            text = _LONG_SPACE.sub(lambda run: run[0][:SPACES], text)
        begin = 1 if place > 0 else 0
        if piece.last:
            yield Window(text, place, begin, len(text), len(text) + 1, exact_to)
            return
        until = max(len(text) - 1 - reach, begin)
        yield Window(text, place, begin, len(text) - 1, until, exact_to)
        done = max(until - 1, 0)
        text = text[done:]
        place += done


async def words(pieces: AsyncIterable[Stretch]) -> AsyncIterator[list[str]]:
    """The words of legible pieces, in lower case, some of them a piece; no word is cut in two.

    A word is a run of letters, marks and digits. In scripts without spaces every character is one; what stands right
    behind another word begins with `GLUE`, so that `joined` gives back what was written.
    """
    carry = _GAP
    async for piece in pieces:
        text = carry + _marked(piece.text)
        if piece.last:
            yield _split(text)
            return
        if text.endswith((_GAP, GLUE)):
            carry = _GAP if text.endswith(_GAP) else f" {GLUE}"
            yield _split(text)
            continue
        # The last word may go on in the next piece.
        begin = max(text.rfind(_GAP), text.rfind(" "))
        carry = text[begin : begin + LONGEST_WORD + 2]
        yield _split(text[:begin])


def words_of(text: str) -> list[str]:
    """The words of a text that is short, as `words` gives them."""
    return _split(_GAP + _marked(_CONTROL.sub("", visible(text))))


def joined(some: list[str]) -> str:
    """Words that follow each other as one text, with one blank where there was anything between them."""
    return " ".join(some).replace(f" {GLUE}", "").removeprefix(GLUE)


def _marked(text: str) -> str:
    """The text in lower case with `_GAP` for what is no word, and ` GLUE` on both sides of an unspaced character."""
    if text.isascii():
        return text.lower().translate(_ASCII_WORDS)
    folded = text.casefold()
    return folded.translate({ord(char): _mark(char) for char in set(folded)})


def _mark(char: str) -> str:
    if unicodedata.category(char)[0] not in "LMN":
        return _GAP
    return f" {GLUE}{char} {GLUE}" if UNSPACED_BLOCKS.match(char) else char


def _split(text: str) -> list[str]:
    if GLUE in text:
        between, gap = f" {GLUE}", " "
        text = text.replace(between + between, between).removesuffix(between)
        text = text.replace(between + _GAP, _GAP).replace(_GAP + between, gap)
    found = text.replace(_GAP, " ").split()
    return found if len(max(found, key=len, default="")) <= LONGEST_WORD else [word[:LONGEST_WORD] for word in found]
