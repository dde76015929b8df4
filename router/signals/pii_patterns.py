"""Personal data that has a shape: cards, IBANs, US social security numbers, travel documents, e-mail and IP addresses.

Each is held against its rules, a checksum where there is one, and against words nearby. Scores are set by hand: from
0.9 on little else looks like it, around 0.5 the words nearby decide. What an earlier recogniser claimed is not looked
at again, so that a card is no phone number. Phone numbers are in `pii_phones.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import re2

from router.signals.mrz import TRAVEL_DOCUMENT, MrzFinder
from router.signals.pii_numbers import (
    IBAN_LENGTHS,
    SPECIMEN_SSNS,
    holds_luhn,
    holds_mod_97,
    ipv4_score,
    ipv6_score,
    issued,
    never_given,
    of_nobody,
)
from router.signals.pii_phones import PhoneFinder
from router.signals.scan import Claims, Finding

BEFORE: Final = 64
AFTER: Final = 24
"""Characters before and behind something in which words about it count."""

CLAIM: Final = 0.4
"""Score from which on something is taken and not read as anything else."""

_RAISED: Final = 0.4
_LOWERED: Final = 0.35

_CARD_WORDS: Final = (
    "card", "credit", "debit", "visa", "mastercard", "amex", "maestro", "discover", "diners", "cvv", "cvc", "expir",
    "karte", "carte", "tarjeta", "carta", "cartão", "карт", "卡", "カード", "카드",
)  # fmt: skip
_NO_CARD_WORDS: Final = (
    "order",
    "tracking",
    "isbn",
    "imei",
    "serial",
    "timestamp",
    "invoice",
    "uuid",
    "commit",
    "gtin",
)
_SSN_WORDS: Final = ("ssn", "social security", "soc sec", "social-security", "taxpayer", "ss#", "ss #")
_IP_WORDS: Final = ("ip", "address", "host", "server", "client", "remote", "login", "logged in", "ping")
_NO_IP_WORDS: Final = ("version", "release", "section", "chapter", "clause", " v", "upgrade", "build", "firmware")

_NOBODYS_ADDRESS: Final = 0.4
"""The highest score of an IP address that belongs to no one machine in the world: it counts where a policy says so."""

_NOBODYS_DOMAINS: Final = ("example.com", "example.org", "example.net", "example.edu", "localhost")
_LOCAL_PART: Final = re.compile(r"[\w.!#$%&'*+/=^`{|}~-]+")

# The group is what may belong to a number of 19 digits, or be the card's expiry or check value behind one of 16.
_CARD: Final = (
    r"\d{12,19}|\d{4}(?:[ ._/-]{1,2}\d{4}){2}[ ._/-]{1,2}\d{1,4}([ ._/-]\d{1,3})?"
    r"|\d{4}[ ._-]{1,2}\d{6}[ ._-]{1,2}\d{4,5}|\d(?:[ ._-]\d){11,18}|\d{4}(?:\n\d{4}){3}"
)
_SSN: Final = r"\d{3}([ .-]?)\d{2}([ .-]?)\d{4}"
_DOMAIN: Final = r"@(?:[A-Za-z0-9?](?:[A-Za-z0-9?-]{0,62})\.){1,8}[A-Za-z?]{2,24}"
_IPV4: Final = r"\d{1,3}(?:\.\d{1,3}){3}"
_IPV6: Final = r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,8}(?:\.\d{1,3}){0,3}"


class PatternFinder:
    """Finds all types that have a shape; those in `types` are told."""

    def __init__(self, types: Sequence[str]) -> None:
        self._types = frozenset(types)
        self._mrz = MrzFinder()
        self._phones = PhoneFinder()
        self._anything = re2.compile(r"@|[0-9]|:[0-9A-Fa-f]{0,4}:")
        self._card = re2.compile(_CARD)
        self._iban = re2.compile(rf"(?i)(?:{'|'.join(IBAN_LENGTHS)})\d{{2}}")
        self._ssn = re2.compile(_SSN)
        self._domain = re2.compile(_DOMAIN)
        self._ipv4 = re2.compile(_IPV4)
        self._ipv6 = re2.compile(_IPV6)

    def find(self, text: str, data: bytes) -> Iterator[Finding]:
        """Findings of a window, the surest kind first; see `scan.Finder`."""
        if self._anything.search(data) is None:
            return
        claims = Claims(len(data))
        for recognise in (self._zones, self._ibans, self._emails, self._cards, self._ssns, self._addresses):
            for finding in recognise(text, data):
                if not claims.free(finding.start, finding.end):
                    continue
                if finding.score >= CLAIM:
                    claims.take(finding.start, finding.end)
                if finding.label in self._types:
                    yield finding
        if "PHONE_NUMBER" in self._types:
            yield from self._phones.find(text, data, claims)

    def _zones(self, text: str, data: bytes) -> Iterator[Finding]:
        for start, end, score in self._mrz.find(data):
            yield Finding(start, end, TRAVEL_DOCUMENT, score)

    def _ibans(self, text: str, data: bytes) -> Iterator[Finding]:
        for hit in self._iban.finditer(data):
            start = hit.start()
            if data[max(start - 1, 0) : start].isalnum():
                continue
            count = IBAN_LENGTHS[hit.group()[:2].decode().upper()]
            # Most candidates fail here, at little cost.
            kept = data[start : start + 2 * count].translate(None, b" -")[:count]
            if len(kept) < count or not kept.isalnum() or not holds_mod_97(kept.decode()):
                continue
            end, number = _characters(data, start, count)
            if number and stands_alone(data, start, end):
                yield Finding(start, end, "IBAN_CODE", 0.95 if number.isupper() else 0.85)

    def _emails(self, text: str, data: bytes) -> Iterator[Finding]:
        for hit in self._domain.finditer(data):
            at, end = hit.span()
            # A question mark is a letter of another script there only if it is none in the text.
            domain = text[at + 1 : end].lower().partition("?")[0]
            end = at + 1 + len(domain)
            local = _LOCAL_PART.match(text[max(at - 64, 0) : at][::-1])
            if (
                local is None
                or not _top_level(domain)
                or (data[end : end + 1] == b"." and data[end + 1 : end + 2].isalnum())
            ):
                continue
            name = local[0][::-1].lstrip("./'=`|{")
            start = at - len(name)
            # `git@host:path` and `scheme://user:word@host` are no one's mail box.
            if not name or (name == "git" and data[end : end + 1] == b":") or _in_authority(text, start):
                continue
            nobody = domain in _NOBODYS_DOMAINS or domain.endswith((".example", ".test", ".invalid"))
            yield Finding(start, end, "EMAIL_ADDRESS", 0.6 if nobody else 0.95)

    def _cards(self, text: str, data: bytes) -> Iterator[Finding]:
        for hit in self._card.finditer(data):
            start, end = hit.span()
            if data[max(start - 1, 0) : start] == b"+":
                continue
            rest = len(hit.group(1) or b"")
            for last in (end, end - rest) if rest else (end,):
                number = "".join(filter(str.isdigit, data[start:last].decode()))
                # What follows a shorter reading is a group of its own.
                alone = stands_alone(data, start, last) if last == end else stands_alone(data[:last], start, last)
                if not (alone and issued(number) and holds_luhn(number)):
                    continue
                # Every tenth number of twelve or thirteen digits holds Luhn's check, and such numbers are common.
                base = 0.9 if len(number) > 13 else 0.45
                yield Finding(start, last, "CREDIT_CARD", weighed(base, text, start, last, _CARD_WORDS, _NO_CARD_WORDS))
                break

    def _ssns(self, text: str, data: bytes) -> Iterator[Finding]:
        for hit in self._ssn.finditer(data):
            start, end = hit.span()
            separators = hit.group(1), hit.group(2)
            if separators[0] != separators[1] or not stands_alone(data, start, end):
                continue
            number = "".join(filter(str.isdigit, hit.group().decode()))
            if never_given(number):
                continue
            base = {b"-": 0.8, b"": 0.15}.get(separators[0], 0.4)
            if number in SPECIMEN_SSNS:
                base = min(base, 0.4)
            yield Finding(start, end, "US_SSN", weighed(base, text, start, end, _SSN_WORDS))

    def _addresses(self, text: str, data: bytes) -> Iterator[Finding]:
        for pattern, judge in ((self._ipv4, ipv4_score), (self._ipv6, ipv6_score)):
            for hit in pattern.finditer(data):
                start, end = hit.span()
                if not stands_alone(data, start, end):
                    continue
                address = hit.group().decode().rstrip(".")
                if score := judge(address):
                    score = weighed(score, text, start, end, _IP_WORDS, _NO_IP_WORDS)
                    score = min(score, _NOBODYS_ADDRESS) if of_nobody(address) else score
                    yield Finding(start, end, "IP_ADDRESS", score)


def stands_alone(data: bytes, start: int, end: int) -> bool:
    """Whether no letter, digit or part of a longer number or name touches the half-open range."""
    before, after = data[max(start - 2, 0) : start], data[end : end + 2]
    if before[-1:].isalnum() or after[:1].isalnum() or before[-1:] == b"_" or after[:1] == b"_":
        return False
    if len(before) == 2 and before[-1:] in b".-+=%" and before[:1].isdigit():
        return False
    return not (len(after) == 2 and after[:1] in b".-" and after[1:].isdigit())


def weighed(score: float, text: str, start: int, end: int, words: Sequence[str], against: Sequence[str] = ()) -> float:
    """The score raised where one of the words stands near, lowered where one of those against does; within 0-0.99."""
    before, after = text[max(start - BEFORE, 0) : start].lower(), text[end : end + AFTER].lower()
    if has_word(before, words) or has_word(after, words):
        return min(score + _RAISED, 0.99)
    return max(score - _LOWERED, 0.0) if has_word(before, against) else score


def has_word(near: str, words: Sequence[str]) -> bool:
    """Whether one of the words begins somewhere in the text; of up to three letters, it must stand there whole."""
    for word in words:
        place = near.find(word)
        while place >= 0:
            rest = near[place + len(word) : place + len(word) + 1]
            whole = len(word) > 3 or not (rest.isascii() and rest.isalpha())
            if whole and not (word[0].isascii() and word[0].isalpha() and near[:place][-1:].isalpha()):
                return True
            place = near.find(word, place + 1)
    return False


def _characters(data: bytes, start: int, count: int) -> tuple[int, str]:
    """The end and the text of `count` letters and digits from `start`, single blanks and dashes between them left out.

    "" where there are not as many.
    """
    kept = bytearray()
    place = start
    while len(kept) < count and place < len(data):
        char = data[place : place + 1]
        if char.isalnum():
            kept += char
        elif char not in b" -" or not data[place - 1 : place].isalnum():
            return place, ""
        place += 1
    return place, kept.decode() if len(kept) == count else ""


def _top_level(domain: str) -> bool:
    last = domain.rpartition(".")[2]
    return last != domain and len(last) > 1 and last.isalpha()


def _in_authority(text: str, start: int) -> bool:
    before = text[max(start - 128, 0) : start]
    scheme = before.rfind("://")
    return scheme >= 0 and not any(char.isspace() or char in "/\"'" for char in before[scheme + 3 :])


PATTERN_TYPES: Final = (
    "CREDIT_CARD",
    "IBAN_CODE",
    "US_SSN",
    TRAVEL_DOCUMENT,
    "EMAIL_ADDRESS",
    "PHONE_NUMBER",
    "IP_ADDRESS",
)
"""What patterns find, the gravest first."""
