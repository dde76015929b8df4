"""Phone numbers, by how they are written and by the words around them.

There is no checksum, and national formats are many: digits in groups are a phone number where something says so, and an
international or North American number speaks for itself. Numbering plans' own rules are not consulted: their tables
are large, change monthly, and would leave out numbers that a person would call one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import re2

from router.signals.scan import Claims, Finding

_PHONE: Final = (
    r"(?:\+|\(\+?)?\d{1,4}\)?(?:[ .\-/]{0,2}\(?\d{1,6}\)?){1,7}(?:[ ,]{0,2}(?:x|ext\.?|extension)[ .]?\d{1,6})?"
)
_INTERNATIONAL: Final = r"\(?\+[1-9]\d{0,2}\)?"
_NORTH_AMERICAN: Final = r"(?:(?:\+|00)?1[ .-]?)?(?:\(([2-9])\d{2}\)[ .-]?|([2-9])\d{2}[ .-])[2-9]\d{2}[ .-]\d{4}"
_LOOSELY_NORTH_AMERICAN: Final = r"(?:(?:\+|00)?1[ .-])?(?:\(\d{3}\)[ .-]?|\d{3}[ .-])\d{3}[ .-]\d{4}"
_FAR: Final = r"00[1-9]\d{0,2}[ .-].*"
_TRUNK: Final = r"\(?0\d.*"
_DATE: Final = (
    r"(?:19|20)\d\d[ ./-]\d{1,2}[ ./-]\d{1,2}(?:[ T].*)?|\d{1,2}[ ./-]\d{1,2}[ ./-](?:19|20)\d\d(?: .*)?"
    r"|(?:1\d|20)\d\d ?[-/] ?(?:1\d|20)\d\d|97[89][ -].*"
)

_WORDS: Final = (
    r"(?i)(?:^|[^a-z])(?:phone|telephone|tel|mobile|cell|cellphone|fax|call(?:ed|ing)?|dial(?:ing)?|reach|whatsapp|sms"
    r"|texted|text me|contact|desk|office|hotline|answering|ring|voicemail|telefon|telefono|tel[eé]fono|t[eé]l"
    r"|t[eé]l[eé]phone|handy|mobil|m[oó]vil|celular|registered)(?:[^a-z]|$)|电话|電話|手机|전화|телефон"
)

_NEAR: Final = 40
_BEHIND: Final = 12
"""Characters before and behind a number in which words about it count: a word behind it is right behind it."""

_FEWEST: Final = 6
_MOST: Final = 15
"""Digits: E.164 allows fifteen."""


class PhoneFinder:
    """Finds what may be phone numbers; made once, because patterns are compiled."""

    def __init__(self) -> None:
        self._phone = re2.compile(_PHONE)
        self._shapes = tuple(
            (re2.compile(pattern), score)
            for pattern, score in (
                (rf"{_INTERNATIONAL}.*", 0.75),
                (_NORTH_AMERICAN, 0.7),
                (_LOOSELY_NORTH_AMERICAN, 0.5),
                (_FAR, 0.5),
                (_TRUNK, 0.35),
            )
        )
        self._extension = re2.compile(r"[ ,]*(?:x|e).*")
        self._date = re2.compile(_DATE)
        self._words = re2.compile(_WORDS)

    def find(self, text: str, data: bytes, claims: Claims) -> Iterator[Finding]:
        """Candidates with scores, among what is not taken; see `scan.Finder`."""
        for hit in self._phone.finditer(data):
            start, end = hit.span()
            if not (_at_edges(data, start, end) and claims.free(start, end)):
                continue
            score = self._score(hit.group().decode())
            if not score:
                continue
            if self._words.search(text[max(start - _NEAR, 0) : start]) or self._words.search(text[end : end + _BEHIND]):
                score = min(score + 0.4, 0.95)
            yield Finding(start, end, "PHONE_NUMBER", score)

    def _score(self, written: str) -> float:
        if written.count(")") > written.count("("):
            return 0.0
        number = self._extension.sub("", written)
        extended = 0.15 if len(number) < len(written) else 0.0
        groups = re.findall("[0-9]+", number)
        digits = sum(map(len, groups))
        if not _FEWEST <= digits <= _MOST + 2 * number.startswith("00") or digits < 2 * len(groups) - 1:
            return 0.0
        if self._date.fullmatch(number) is not None:
            return 0.0
        for pattern, score in self._shapes:
            if pattern.fullmatch(number) is not None and digits >= 8:
                return min(score + extended, 0.95)
        # Digits without a gap may be anything; ten of them are what a North American number has.
        if len(groups) == 1:
            return 0.15 if digits >= 10 else 0.0
        return 0.15 + extended


def _at_edges(data: bytes, start: int, end: int) -> bool:
    before, after = data[max(start - 1, 0) : start], data[end : end + 2]
    if before.isalnum() or (before and before in b"_.-+=%#$/\\"):
        return False
    if after[:1].isalnum() or after[:1] in (b"_", b"%"):
        return False
    return not (after[:1] in (b".", b"-", b"/", b":") and after[1:2].isdigit())
