"""From a label for each token to labelled stretches of a text: windows merged, tokens joined to words, words to spans.

Pure functions over arrays; which model the probabilities come from is `classifier.py`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.inference.tokens import Tokens
from router.packs.heads import OUTSIDE

_CHUNKED: Final = re.compile(r"^([BIELSU])[-_](.+)$")
"""Schemes of chunks: IOB, IOBES and BILOU write where a token stands in its stretch in front of the label."""
_STARTS: Final = "BSU"


_AT_ONCE: Final = 4_096
"""Tokens."""


class NoNumberError(Exception):
    """A model gave NaN or infinity for a probability; which stretches it would label, nobody knows."""


@dataclass(frozen=True, slots=True)
class TaggedSpan:
    """A stretch of text that a token classifier gave one label; `score` in 0-1."""

    start: int
    end: int
    label: str
    score: float


@dataclass(frozen=True, slots=True)
class Scheme:
    """What a token classifier's labels mean. `names` are the kinds that a stretch can be of, sorted, without `OUTSIDE`.

    `kinds[i]` is where label i's kind stands in `names`, -1 for outside; `starts[i]` that label i begins a stretch.
    """

    names: tuple[str, ...]
    kinds: NDArray[np.int64] = field(repr=False)
    starts: NDArray[np.bool_] = field(repr=False)


def scheme_of(labels: Sequence[str]) -> Scheme:
    """The scheme of a pack's labels, with chunk prefixes (`B-PER`, `I-PER`) or plain."""
    chunks = [_CHUNKED.match(label) for label in labels]
    kinds = [chunk[2] if chunk else label for chunk, label in zip(chunks, labels, strict=True)]
    names = tuple(sorted(set(kinds) - {OUTSIDE}))
    return Scheme(
        names,
        np.array([names.index(kind) if kind != OUTSIDE else -1 for kind in kinds], dtype=np.int64),
        np.array([chunk is not None and chunk[1] in _STARTS for chunk in chunks], dtype=np.bool_),
    )


def merge_windows(tokens: Tokens, bodies: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Probabilities (t, labels) of the text's tokens from those of its windows, special tokens left out.

    Where windows overlap, a token is told by the one that shows more of what stands on either side of it.
    """
    merged = np.zeros((len(tokens.ids), bodies[0].shape[1]), dtype=np.float32)
    room = np.full(len(tokens.ids), -1, dtype=np.int64)
    for start, end, body in zip(tokens.starts, tokens.ends, bodies, strict=True):
        place = np.arange(start, end)
        # The ends of the text hide nothing, so that its first and last windows are good up to there.
        before = place - start if start else np.full(end - start, len(tokens.ids))
        after = end - 1 - place if end < len(tokens.ids) else np.full(end - start, len(tokens.ids))
        here = np.minimum(before, after)
        better = here > room[start:end]
        merged[start:end][better] = body[better]
        room[start:end][better] = here[better]
    return merged


def spans_of_windows(
    text: str, tokens: Tokens, bodies: Sequence[NDArray[np.float32]], scheme: Scheme
) -> tuple[TaggedSpan, ...]:
    """Labelled stretches in order, from each window's probabilities (t, labels) of its own tokens.

    Raises NoNumberError.
    """
    merged = merge_windows(tokens, bodies)
    # Of a NaN that stands for `OUTSIDE` nothing would be left to be seen.
    if not np.isfinite(merged).all():
        raise NoNumberError
    return spans_of(text, tokens.ranges, merged, scheme)


def spans_of(
    text: str, ranges: NDArray[np.int32], probabilities: NDArray[np.float32], scheme: Scheme
) -> tuple[TaggedSpan, ...]:
    """Labelled stretches in order, for tokens with character ranges (t, 2) and probabilities (t, labels).

    A word is of the kind that is likeliest on average over its tokens, so that no word is half a name. Neighbouring
    words of one kind are one stretch, unless a label says that another begins; its score is its surest word's. Takes
    time linear in the number of tokens.
    """
    firsts, words = _words(text, ranges)
    if not len(firsts):
        return ()
    counts = np.diff(firsts, append=len(words))
    means = np.add.reduceat(probabilities[words].astype(np.float64), firsts) / counts[:, None]
    by_kind = np.zeros((len(firsts), len(scheme.names) + 1))
    for label, kind in enumerate(scheme.kinds):
        by_kind[:, kind] += means[:, label]  # the last column is -1, outside
    kinds = by_kind.argmax(axis=1)
    begins = scheme.starts[probabilities[words[firsts]].argmax(axis=1)]
    spans: list[TaggedSpan] = []
    for word in np.flatnonzero(kinds < len(scheme.names)).tolist():
        first, last = words[firsts[word]], words[firsts[word] + counts[word] - 1]
        start, end = _trimmed(text, int(ranges[first, 0]), int(ranges[last, 1]))
        label, score = scheme.names[kinds[word]], min(float(by_kind[word, kinds[word]]), 1.0)
        goes_on = word > 0 and kinds[word - 1] == kinds[word] and not begins[word]
        if goes_on and spans:
            spans[-1] = TaggedSpan(spans[-1].start, end, label, max(score, spans[-1].score))
        else:
            spans.append(TaggedSpan(start, end, label, score))
    return tuple(spans)


def _words(text: str, ranges: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices of the tokens that show characters, and where among these a new word begins.

    Tokens that touch are one word where letters or digits stand on both sides; sentencepiece's tokens hold the blank in
    front of them.
    """
    shown: list[int] = []
    firsts: list[int] = []
    end = -1
    # Not all at once: to make half a million pairs holds the interpreter's lock for half a second.
    for begin in range(0, len(ranges), _AT_ONCE):
        for token, (start, stop) in enumerate(ranges[begin : begin + _AT_ONCE].tolist(), begin):
            if not text[start:stop].strip():
                continue
            touches = start < end or (
                start == end and start > 0 and text[start - 1].isalnum() and text[start].isalnum()
            )
            if not touches:
                firsts.append(len(shown))
            shown.append(token)
            end = max(end, stop)
    return np.array(firsts, dtype=np.int64), np.array(shown, dtype=np.int64)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The range without white space at its ends."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())
