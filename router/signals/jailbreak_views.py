"""Other readings of a segment whose letters were set so that a reader sees words and a program does not.

A model reads letters that stand apart, words that are cut in two, as readers of images do, or have no blanks between
them, letters of another alphabet that look alike, and lines that are written backwards for a right-to-left override. A
segment that shows none of these traits has no other reading and costs only the look. What is invisible or a
compatibility form is `texts.visible`'s business.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from router.signals.lookalikes import LATIN, LOOKALIKES

RIGHT_TO_LEFT_OVERRIDE: Final = "\u202e"

_OF_TWO_ALPHABETS: Final = re.compile(rf"[a-zA-Z][{LOOKALIKES}]|[{LOOKALIKES}][a-zA-Z]")
_IN_LATIN: Final = re.compile(rf"(?<!\w)[a-zA-Z{LOOKALIKES}]+(?!\w)")

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

# Words that are one where readers of images, or whoever fears to be read, cut them in two. Not those whose halves stand
# side by side in good English, such as `every thing`.
_LONG_WORDS: Final = frozenset({
    "ignore", "disregard", "previous", "earlier", "instruction", "instructions", "guidelines", "system", "reveal",
    "repeat", "developer", "restriction", "restrictions", "filter", "filters", "secret", "password", "answer", "prompt",
    "prompts", "unfiltered", "unrestricted", "confidential",
})  # fmt: skip
_ENDS: Final = ".,;:!?\"'"


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
    mended = _mended(segment)
    if mended != segment:
        yield mended, "words cut in two"
    parted = _RUN.sub(lambda run: _parted(run[0]), segment)
    if parted != segment:
        yield parted, "words together"
    if segment.isascii() or not _OF_TWO_ALPHABETS.search(segment):
        return
    yield _IN_LATIN.sub(lambda word: word[0].translate(LATIN), segment), "look-alike letters"


def _joined(run: str) -> str:
    """Words of letters that stand apart: what stands between most of them goes, anything else parts words."""
    gaps = _BETWEEN.findall(run)
    usual = Counter(gaps).most_common(1)[0][0]
    words = _BETWEEN.sub(lambda gap: "" if gap[0] == usual else " ", run)
    return _GLUED.sub(lambda word: _split(word[0]), words)


def _mended(segment: str) -> str:
    """Two words as one, where only together they are a long word of attacks."""
    words: list[str] = []
    for word in segment.split(" "):
        if words and word and words[-1] and _is_cut_in_two(words[-1], word):
            words[-1] += word
        else:
            words.append(word)
    return " ".join(words)


def _is_cut_in_two(first: str, second: str) -> bool:
    whole = (first + second).rstrip(_ENDS).lower()
    return whole in _LONG_WORDS and first.lower() not in _LONG_WORDS


def _parted(run: str) -> str:
    """The run's words, where several are words of attacks; else the run itself."""
    words = _GLUED.sub(lambda word: _split(word[0]), _HUMP.sub(" ", run))
    known = {word.lower() for word in words.split() if _WORD_OF_ATTACKS.fullmatch(word)}
    return words if len(known) >= _LEAST_WORDS else run


def _split(word: str) -> str:
    """Split around words of attacks, the only ones that are known here."""
    return " ".join(filter(None, _WORD_OF_ATTACKS.split(word)))
