"""What text heads are told beside the encoder's hidden states: how tokens are written, and turns of phrase of attacks.

The starter encoder lower-cases everything, so that a name's capital letter is lost to it; `token_shapes` gives it back.
`pattern_features` says which of a few turns of phrase a window holds. Heads were trained on exactly these functions:
whoever changes what one gives must count its version up and train anew. Both take time linear in the text.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import re2
from numpy.typing import NDArray

from router.inference.head_patterns import ABOUT_YOU, INVISIBLE, ODD_JOINT, TURNS_OF_PHRASE, WORD
from router.request.marks import normalized

SHAPES_VERSION: Final = 1
SHAPES: Final = 20
"""Numbers a token: see `token_shapes`."""

PATTERNS_VERSION: Final = 1
PATTERNS: Final = len(TURNS_OF_PHRASE) + 4
"""Numbers a window: see `pattern_features`."""

_MARGIN: Final = 64
"""Characters before and behind the tokens that may belong to their words."""

# Bits of what a character is, from the least on.
_UPPER, _LOWER, _LETTER, _DIGIT, _BLANK, _BREAK, _END, _FOREIGN = range(8)
_COMMA: Final = ord(",")


def token_shapes(text: str, ranges: NDArray[np.int32]) -> NDArray[np.float32]:
    """How each token is written: (t, SHAPES) in 0-1 for the character ranges (t, 2) of tokens in order.

    By column: begins with a capital; all capitals; all small; has a digit; digits only; has a letter; marks only; has a
    letter beyond ASCII; blank in front; line break in front; goes on with a word; the word around it is capitalised,
    all capitals, of letters and digits, has a capital inside; the word's length; how many digits; begins a sentence;
    the token's length; a comma in front. A range without characters gives zeros.
    """
    if not len(ranges):
        return np.zeros((0, SHAPES), np.float32)
    low = max(int(ranges[0, 0]) - _MARGIN, 0)
    codes = _codes(text[low : int(ranges[-1, 1]) + _MARGIN])
    size = len(codes)
    if not size:
        return np.zeros((len(ranges), SHAPES), np.float32)
    kinds = _kinds(codes)
    are = np.unpackbits(kinds[:, None], axis=1, bitorder="little")
    starts = np.clip(ranges[:, 0] - low, 0, size - 1)
    ends = np.clip(ranges[:, 1] - low, starts, size)
    heads, tails = (places[starts] for places in _words(are))
    sums = np.zeros((size + 1, are.shape[1]), np.int32)
    np.cumsum(are, axis=0, out=sums[1:])
    own, word = (sums[ends] - sums[starts]).T, (sums[tails] - sums[heads]).T
    length, has, has_word = ends - starts, own > 0, word > 0
    first, before, head = are[starts].T, are[starts - 1].T, are[heads, _UPPER]
    opens = starts == 0
    # What stands in front, blanks aside; nothing is like a line break.
    behind = _last_shown(are)[starts - 1]
    nothing = opens | (behind < 0)
    ahead = are[behind].T

    shapes = np.zeros((SHAPES, len(ranges)), np.float32)
    shapes[0] = first[_UPPER]
    shapes[1] = (own[_UPPER] == own[_LETTER]) & (own[_UPPER] > 1)
    shapes[2] = (own[_LOWER] == own[_LETTER]) & has[_LOWER]
    shapes[3] = has[_DIGIT]
    shapes[4] = (own[_DIGIT] == length) & has[_DIGIT]
    shapes[5] = has[_LETTER]
    shapes[6] = ~(has[_LETTER] | has[_DIGIT])
    shapes[7] = has[_FOREIGN]
    shapes[8] = opens | before[_BLANK]
    shapes[9] = nothing | ahead[_BREAK]
    shapes[10] = ~opens & (before[_LETTER] | before[_DIGIT]) & (first[_LETTER] | first[_DIGIT])
    shapes[11] = head & (word[_UPPER] == 1) & has_word[_LOWER]
    shapes[12] = (word[_UPPER] > 1) & (word[_UPPER] == word[_LETTER])
    shapes[13] = has_word[_LETTER] & has_word[_DIGIT]
    shapes[14] = (word[_UPPER] > head) & has_word[_LOWER]
    shapes[15] = np.minimum(tails - heads, 16) / 16
    shapes[16] = np.minimum(own[_DIGIT], 8) / 8
    shapes[17] = nothing | ahead[_BREAK] | ahead[_END]
    shapes[18] = np.minimum(length, 12) / 12
    shapes[19] = ~nothing & (codes[behind] == _COMMA)
    shapes[:, length == 0] = 0.0
    return np.ascontiguousarray(shapes.T)


def pattern_features(text: str) -> NDArray[np.float32]:
    """What a window's own characters sound like: (PATTERNS,) in 0-1.

    One number for each of `TURNS_OF_PHRASE`: whether it occurs. Then: the share of words that speak to "you"; of words
    that repeat the one before; of marks joined as neither prose nor code joins them; and how many turns of phrase
    occur, of six.
    """
    plain = text if text.isascii() else INVISIBLE.sub("", normalized("NFKC", text))
    found = np.fromiter((pattern.search(plain) is not None for pattern in _COMPILED), np.float32, len(_COMPILED))
    words = [word.lower() for word in WORD.findall(plain)]
    count = max(len(words), 1)
    you = sum(word in ABOUT_YOU for word in words)
    again = sum(map(str.__eq__, words, words[1:]))
    odd = len(ODD_JOINT.findall(plain))
    attacks = found[: len(_COMPILED) - 1].sum()
    rest = (min(you / count * 5, 1.0), again / count, min(odd / count * 2, 1.0), min(attacks / 6, 1.0))
    return np.concatenate([found, np.array(rest, np.float32)])


def _codes(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _kinds(codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
    kinds = _ASCII[np.minimum(codes, 127)]
    beyond = codes > 127
    if beyond.any():
        several, places = np.unique(codes[beyond], return_inverse=True)
        kinds[beyond] = np.array([_kind(chr(code)) for code in several], np.uint8)[places]
    return kinds


def _kind(char: str) -> int:
    are = (
        char.isupper(),
        char.islower(),
        char.isalpha(),
        char.isdigit(),
        char.isspace(),
        char in "\n\r\u2028\u2029",
        char in ".!?:;\u2026\u3002",
        char.isalpha() and not char.isascii(),
    )
    return sum(yes << bit for bit, yes in enumerate(are))


def _words(are: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each character, where the run of letters and digits around it begins and ends; any other stands alone."""
    inside = are[:, _LETTER] | are[:, _DIGIT]
    size = len(are)
    places = np.arange(size)
    begins = np.ones(size, bool)
    begins[1:] = (inside[1:] & inside[:-1]) == 0
    heads = np.maximum.accumulate(np.where(begins, places, 0))
    closes = np.ones(size, bool)
    closes[:-1] = begins[1:]
    tails = np.minimum.accumulate(np.where(closes, places + 1, size)[::-1])[::-1]
    return heads, tails


def _last_shown(are: NDArray[np.uint8]) -> NDArray[np.int64]:
    """For each character, where the last one is that is no blank, or is a line break; -1 where none is."""
    passed = are[:, _BLANK] > are[:, _BREAK]
    last: NDArray[np.int64] = np.maximum.accumulate(np.where(passed, -1, np.arange(len(are))))
    return last


def _compile() -> tuple[Any, ...]:
    options = re2.Options()
    options.case_sensitive = False
    return tuple(re2.compile(pattern, options) for pattern in TURNS_OF_PHRASE.values())


_ASCII: Final = np.array([_kind(chr(code)) for code in range(128)], np.uint8)
_COMPILED: Final = _compile()
