"""Machine-readable zones of travel documents (ICAO 9303): passports, identity cards, visas.

Parts 4 to 7 of ICAO Doc 9303 define the layouts: TD1 (three lines of 30 characters), TD2 and MRV-B (two of 36), TD3 and
MRV-A (two of 44). All of them have a number, a date of birth and a date of expiry, each with a check digit, so that
those three alone leave one chance in a thousand. Letters that readers of images take for digits are put right only
where all check digits hold then. Names are not looked at: they have no check digit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import Any, Final, NamedTuple

import re2

TRAVEL_DOCUMENT: Final = "TRAVEL_DOCUMENT"

_WEIGHTS: Final = (7, 3, 1)
_VALUES: Final = {char: index for index, char in enumerate("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")} | {"<": 0}

# What readers confuse in OCR-B, in either direction. A zone has no small letters: readers take digits for them.
_TO_DIGIT: Final = str.maketrans("OQDILZSBGoqilzsbg", "00011258609112566")
_TO_LETTER: Final = str.maketrans("012568", "OIZSGB")
_TWINS: Final = {
    "O": "0", "0": "O", "I": "1", "1": "I", "S": "5", "5": "S", "B": "86", "8": "B", "Z": "2", "2": "Z", "G": "6",
    "6": "G",
}  # fmt: skip
_MOST_TWINS: Final = 2
"""Characters of a document number that may have been confused at once: more would soon fit any check digit."""

_DIGIT: Final = "[0-9OQDILZSBG]"
_DATE: Final = "[0-9OQDILZSBG<]{6}"
_ANY: Final = "[0-9A-Z<]"
_STATE: Final = "[A-Z012568<]{3}"

# A zone's line stands by itself or behind fillers. Patterns are for bytes, one a character.
_LINE_START: Final = r"(?:\A|[^A-Za-z0-9]|\\[nrt])"
_LINE_BREAK: Final = r"(?:\s|\\[rnt]|[\"',|]){0,12}"

# Second line of TD2, TD3 and visas: number, digit, state, birth, digit, sex, expiry, digit, what is up to the state.
_FIELDS: Final = (
    rf"([A-Z0-9]{_ANY}{{8}})({_DIGIT}|<)({_STATE})({_DATE})({_DIGIT})[A-Z<]({_DATE})({_DIGIT})({_ANY}{{0,16}})"
)
_SECOND: Final = rf"(?i:{_LINE_START}{_FIELDS})"

# The same where a reader joined it to what stands left of it, as it does with a sticker on a page.
_JOINED: Final = rf"(?i:[A-Z0-9?]{_FIELDS})"

# What a reader joined to the end of one line of a card and to the beginning of the next, with a blank or without.
_BESIDE: Final = rf"(?:(?: [^<\n]{{0,60}})?\s{{0,3}}\n[^<\n]{{0,60}}?|{_LINE_BREAK})"

# First and second line of TD1; readers miscount fillers, take the I of an identity card for a stroke, and may join the
# line to what stands left of it, which a filler behind the I tells apart.
_CARD: Final = (
    rf"(?i:(?:{_LINE_START}[AICL1|!]{_ANY}|[AICL1|!]<){_STATE}([A-Z0-9]{_ANY}{{8}})({_DIGIT}|<)({_ANY}{{12,17}}){_BESIDE}"
    rf"({_DATE})({_DIGIT})[A-Z<]({_DATE})({_DIGIT})({_STATE})({_ANY}{{8,13}})({_DIGIT}))"
)

_WITH_BLANKS: Final = r"(?i:[A-Z0-9<](?: ?[A-Z0-9<]){26,60})"


class Zone(NamedTuple):
    """A zone's part that has the check digits, as a half-open range, and how sure it is, 0-1."""

    start: int
    end: int
    score: float


def check_digit(field: str) -> str:
    """The check digit over a field of upper-case letters, digits and fillers (Doc 9303-3, section 4.9)."""
    return str(sum(_VALUES[char] * _WEIGHTS[place % 3] for place, char in enumerate(field)) % 10)


class MrzFinder:
    """Finds zones in running text and in what was read from an image; made once, because patterns are compiled."""

    def __init__(self) -> None:
        # Pattern, judge, and how many characters of the zone stand before the number.
        self._layouts: tuple[tuple[Any, Callable[[list[str]], float], int], ...] = (
            (re2.compile(_CARD), _judge_card, 5),
            (re2.compile(_SECOND), _judge_second, 0),
            (re2.compile(_JOINED), _judge_joined, 0),
        )
        self._with_blanks = re2.compile(_WITH_BLANKS)

    def find(self, data: bytes) -> Iterator[Zone]:
        """Zones in a text of one byte a character; lines may have single blanks inside, as readers of images leave.

        The same zone may come twice.
        """
        yield from self._in(data)
        if b"<" not in data or b" " not in data:
            return
        joined, places = self._without_blanks(data)
        if len(joined) < len(data):
            for start, end, score in self._in(joined):
                yield Zone(places[start], places[end - 1] + 1, score)

    def _in(self, data: bytes) -> Iterator[Zone]:
        for pattern, judge, before in self._layouts:
            place = 0
            while (hit := pattern.search(data, place)) is not None:
                score = judge([group.decode() for group in hit.groups()])
                if score:
                    yield Zone(hit.start(1) - before, hit.end(), score)
                place = hit.end() if score else hit.start() + 1

    def _without_blanks(self, data: bytes) -> tuple[bytes, list[int]]:
        """The text with the blanks inside lines that may be a zone's gone, and where each of its bytes stood."""
        pieces: list[bytes] = []
        places: list[int] = []
        done = 0
        for hit in self._with_blanks.finditer(data):
            start, end = hit.span()
            if b"<" not in hit.group():
                continue
            kept = [place for place in range(start, end) if data[place] != ord(" ")]
            pieces += (data[done:start], bytes(data[place] for place in kept))
            places += (*range(done, start), *kept)
            done = end
        places += range(done, len(data))
        return b"".join((*pieces, data[done:])), places


def _judge_second(fields: list[str]) -> float:
    number, check, state, birth, birth_check, expiry, expiry_check, rest = fields
    if not (_is_state(state) and _holds_date(birth, birth_check) and _holds_date(expiry, expiry_check)):
        return 0.0
    # The last character of a passport's line checks all of it; a visa has a filler there.
    composite, check = _digits(rest[-1:]), _digits(check)
    dates = _digits(f"{birth}{birth_check}{expiry}{expiry_check}")
    for held in _numbers(number, check):
        if check_digit(f"{held}{check}{dates}{rest[:-1].upper()}") == composite:
            return 0.99
        if held == number.upper() or not composite.isdigit():
            return 0.95
    return 0.0


def _judge_joined(fields: list[str]) -> float:
    """Where the line begins is not known, so that all of its check digits must hold."""
    return score if (score := _judge_second(fields)) == 0.99 else 0.0


def _judge_card(fields: list[str]) -> float:
    number, check, optional, birth, birth_check, expiry, expiry_check, state, more, last = fields
    if not (_is_state(state) and _holds_date(birth, birth_check) and _holds_date(expiry, expiry_check)):
        return 0.0
    composite, check = _digits(last), _digits(check)
    dates = _digits(f"{birth}{birth_check}{expiry}{expiry_check}")
    optional, more = optional.upper().rstrip("<").ljust(15, "<"), more.upper()
    # A number of more than nine characters runs on into the optional data, with its check digit behind it.
    if check == "<":
        return 0.99 if check_digit(f"{number.upper()}<{optional}{dates}{more}") == composite else 0.0
    for held in _numbers(number, check):
        if check_digit(f"{held}{check}{optional}{dates}{more}") == composite:
            return 0.99
        if held == number.upper():
            return 0.95
    return 0.0


def _is_state(state: str) -> bool:
    letters = state.upper().translate(_TO_LETTER).rstrip("<")
    return letters.isalpha() and (len(letters) == 3 or letters == "D")


def _digits(field: str) -> str:
    """The field with what readers take digits for put right."""
    return field.translate(_TO_DIGIT)


def _holds_date(date: str, check: str) -> bool:
    """Whether the check digit holds for a date (YYMMDD; unknown parts are fillers) or for one that readers confused."""
    digits = _digits(date)
    month, day = digits[2:4], digits[4:6]
    if month != "<<" and not (month.isdigit() and 1 <= int(month) <= 12):
        return False
    if day != "<<" and not (day.isdigit() and 1 <= int(day) <= 31):
        return False
    return check_digit(digits) == _digits(check)


def _numbers(number: str, want: str) -> Iterator[str]:
    """The document's number, if the check digit holds for it, and those with a confused character or two put right."""
    if not any(map(str.isdigit, _digits(number))):
        return
    upper = number.upper()
    places = [place for place, char in enumerate(upper) if char in _TWINS]
    for count in range(_MOST_TWINS + 1):
        for some in combinations(places, count):
            for letters in product(*(_TWINS[upper[place]] for place in some)):
                twins = dict(zip(some, letters, strict=True))
                changed = "".join(twins.get(place, char) for place, char in enumerate(upper))
                if check_digit(changed) == want:
                    yield changed
