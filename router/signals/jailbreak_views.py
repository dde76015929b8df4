"""Other readings of a segment whose letters were set so that a reader sees words and a program does not.

A model reads letters that stand apart, words without blanks between them, letters of another alphabet that look alike,
and lines that are written backwards for a right-to-left override. A segment that shows none of these traits has no
other reading and costs only the look. What is invisible or a compatibility form is `texts.visible`'s business.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

RIGHT_TO_LEFT_OVERRIDE: Final = "\u202e"

# Letters of Cyrillic and Greek that most fonts draw like a Latin one: a choice from Unicode's confusables (UTS #39).
_DRAWN_ALIKE: Final = {
    "a": "\u0430\u03b1",
    "b": "\u0432\u044c",
    "c": "\u0441",
    "d": "\u0501",
    "e": "\u0435\u0454",
    "g": "\u0261",
    "h": "\u04bb\u043d",
    "i": "\u0456\u03b9\u0131",
    "j": "\u0458\u03f3",
    "k": "\u043a\u03ba",
    "l": "\u04cf",
    "m": "\u043c",
    "n": "\u043f\u03b7",
    "o": "\u043e\u03bf\u03c3",
    "p": "\u0440\u03c1",
    "q": "\u051b",
    "r": "\u0433",
    "s": "\u0455",
    "t": "\u0442\u03c4",
    "u": "\u03c5",
    "v": "\u0475\u03bd",
    "w": "\u051d\u03c9",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3",
    "A": "\u0410\u0391",
    "B": "\u0412\u0392",
    "C": "\u0421",
    "E": "\u0415\u0395",
    "H": "\u041d\u0397",
    "I": "\u0406\u0399\u04c0",
    "J": "\u0408",
    "K": "\u041a\u039a",
    "M": "\u041c\u039c",
    "N": "\u039d",
    "O": "\u041e\u039f",
    "P": "\u0420\u03a1",
    "S": "\u0405",
    "T": "\u0422\u03a4",
    "V": "\u0474",
    "W": "\u051c",
    "X": "\u0425\u03a7",
    "Y": "\u0423\u03a5",
    "Z": "\u0396",
}
_LATIN: Final = {ord(alike): letter for letter, several in _DRAWN_ALIKE.items() for alike in several}
_ALIKE: Final = "".join(map(chr, _LATIN))
_OF_TWO_ALPHABETS: Final = re.compile(rf"[a-zA-Z][{_ALIKE}]|[{_ALIKE}][a-zA-Z]")
_IN_LATIN: Final = re.compile(rf"(?<!\w)[a-zA-Z{_ALIKE}]+(?!\w)")

# Eight single letters from which on they are read together: lists, sums and abbreviations have fewer.
# What stands between is never a letter, so that there is one way to match and no way to make it slow.
_APART: Final = re.compile(r"(?<![^\W_])[^\W_](?:[\s._*|/\\,~+-]{1,6}[^\W_]){7,}(?![^\W_])")
_BETWEEN: Final = re.compile(r"[\W_]+")


# Where even the gaps between words are no wider, nothing shows their edges but words that attacks are made of.
_GLUED: Final = re.compile(r"[^\W_]{16,}")
_WORD_OF_ATTACKS: Final = re.compile(
    r"(ignore|disregard|forget|override|bypass|previous|prior|above|earlier|instructions?|rules|guidelines|prompt|system"
    r"|reveal|print|repeat|show|tell|your|every|everything|any|all|the|and|with|without|from|now|you|are|developer|mode"
    r"|never|refuse|answer|restrictions?|filters?|secret|password)",
    re.IGNORECASE,
)

# Words without blanks, as identifiers are written. They are read apart only where at least three are words that attacks
# are made of, so that program code mostly costs no second look.
_RUN: Final = re.compile(r"\w{16,}")
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|_+")
_LEAST_WORDS: Final = 3


def other_readings(segment: str, mirrored: bool) -> Iterator[tuple[str, str]]:
    """Other readings, each as its text and the name of its trait; none for most segments.

    `mirrored` says that the text, not necessarily this segment, holds a right-to-left override; the override itself is
    invisible and no longer there.
    """
    if mirrored:
        yield segment[::-1], "written backwards"
    joined = _APART.sub(lambda run: _joined(run[0]), segment)
    if joined != segment:
        yield joined, "letters apart"
    parted = _RUN.sub(lambda run: _parted(run[0]), segment)
    if parted != segment:
        yield parted, "words together"
    if segment.isascii() or not _OF_TWO_ALPHABETS.search(segment):
        return
    yield _IN_LATIN.sub(lambda word: word[0].translate(_LATIN), segment), "look-alike letters"


def _joined(run: str) -> str:
    """Words of letters that stand apart: what stands between most of them goes, anything else parts words."""
    gaps = _BETWEEN.findall(run)
    usual = Counter(gaps).most_common(1)[0][0]
    words = _BETWEEN.sub(lambda gap: "" if gap[0] == usual else " ", run)
    return _GLUED.sub(lambda word: _split(word[0]), words)


def _parted(run: str) -> str:
    """The run's words, where several are words of attacks; else the run itself."""
    words = _GLUED.sub(lambda word: _split(word[0]), _HUMP.sub(" ", run))
    known = {word.lower() for word in words.split() if _WORD_OF_ATTACKS.fullmatch(word)}
    return words if len(known) >= _LEAST_WORDS else run


def _split(word: str) -> str:
    """Split around words of attacks, the only ones that are known here."""
    return " ".join(filter(None, _WORD_OF_ATTACKS.split(word)))
