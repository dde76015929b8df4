"""Scoring against anchors: what the families share that compare a request's embeddings with examples.

Reading a text's windows, pooling cosines over anchors, shares among classes. It knows no family and decides no match.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from router.inference.activation import softmax
from router.inference.text import TextEncoder
from router.request.view import TextSpan
from router.signals.texts import encodable

Floats = NDArray[np.float32]
Pooling = Literal["max", "mean", "top_k"]

END_CHARACTERS: Final = 4_000
"""Characters at each end of a long text that are read where the question is what kind of request it is: about 900 words
of English at either end. What a request is about shows there, and a megabyte would take minutes."""

NOT_A_NUMBER: Final = "no number"
"""Why there is no answer where an encoder gave NaN or infinity."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window of a text; `span` is a half-open character range in the part's text, `embedding` (d,) float32."""

    pointer: str
    span: tuple[int, int]
    embedding: Floats = field(repr=False)


@dataclass(frozen=True, slots=True)
class Judged:
    """How a stretch of text is shared among classes: `shares` (c,) float64, in 0-1, with the sum 1."""

    pointer: str
    span: tuple[int, int]
    shares: NDArray[np.float64] = field(repr=False)


class Classes(Protocol):
    """Tells classes of text apart, by whatever means. `pack` is the digest of what was asked."""

    labels: tuple[str, ...]

    @property
    def pack(self) -> str:
        """Digest of the pack that judges."""
        ...

    async def prepare(self) -> None:
        """Compute what no request changes."""
        ...

    async def judge(self, texts: Iterable[TextSpan]) -> list[Judged]:
        """Both ends of each text, window by window; raises Overloaded."""
        ...


class AnchorClasses:
    """Classes that are described by example texts.

    A class's likeness is the mean cosine of the `nearest` examples of it; shares are a softmax over likenesses.
    """

    def __init__(
        self, encoder: TextEncoder, examples: Mapping[str, Sequence[str]], nearest: int, temperature: float
    ) -> None:
        """`temperature` is in units of cosine."""
        self.labels = tuple(examples)
        self._encoder = encoder
        self._examples = tuple(tuple(texts) for texts in examples.values())
        self._nearest = nearest
        self._temperature = temperature
        self._anchors: tuple[Floats, ...] = ()

    @property
    def pack(self) -> str:
        """Digest of the text encoder's pack."""
        return self._encoder.pack

    async def prepare(self) -> None:
        """Embed the examples."""
        self._anchors = tuple([await self._encoder.embed(texts) for texts in self._examples])

    def likeness(self, embeddings: Floats) -> NDArray[np.float64]:
        """(w, c) in -1 to 1, of embeddings (w, d)."""
        columns = [pooled(embeddings @ anchors.T, "top_k", self._nearest) for anchors in self._anchors]
        return np.stack(columns, axis=1)

    async def judge(self, texts: Iterable[TextSpan]) -> list[Judged]:
        """See `Classes`."""
        windows = await read_ends(self._encoder, texts)
        if not windows:
            return []
        likeness = self.likeness(np.stack([window.embedding for window in windows]))
        shares = softmax(likeness / self._temperature)
        return [Judged(window.pointer, window.span, row) for window, row in zip(windows, shares, strict=True)]


async def read_windows(encoder: TextEncoder, text: TextSpan) -> list[Window]:
    """Every window of the whole text; raises Overloaded."""
    windows = await encoder.embed_windows(encodable(text.text))
    return [Window(text.pointer, s, e) for s, e in zip(windows.spans, windows.embeddings, strict=True)]


async def read_ends(encoder: TextEncoder, texts: Iterable[TextSpan]) -> list[Window]:
    """The windows of each text, of a long one those of its two ends; raises Overloaded."""
    found: list[Window] = []
    for text in texts:
        for offset, piece in ends(text.text):
            windows = await read_windows(encoder, TextSpan(text.pointer, text.role, piece))
            found += [Window(w.pointer, (w.span[0] + offset, w.span[1] + offset), w.embedding) for w in windows]
    return found


def ends(text: str) -> list[tuple[int, str]]:
    """The text, or the first and the last END_CHARACTERS of a longer one, each with the place where it begins."""
    if len(text) <= 2 * END_CHARACTERS:
        return [(0, text)] if text else []
    last = len(text) - END_CHARACTERS
    return [(0, text[:END_CHARACTERS]), (last, text[last:])]


def pooled(cosines: Floats, how: Pooling, k: int = 1) -> NDArray[np.float64]:
    """(w,) of cosines (w, n): the greatest, the mean of all, or the mean of the `k` greatest."""
    if how == "max":
        greatest: NDArray[np.float64] = cosines.max(axis=1).astype(np.float64)
        return greatest
    if how == "top_k" and k < cosines.shape[1]:
        cosines = np.partition(cosines, -k, axis=1)[:, -k:]
    mean: NDArray[np.float64] = cosines.mean(axis=1, dtype=np.float64)
    return mean


def logistic(x: float) -> float:
    """1 / (1 + exp(-x)), for any finite x."""
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else 1.0 - 1.0 / (1.0 + math.exp(x))


def unit_interval(cosine: float) -> float:
    """A cosine as a score: negative ones as 0, rounding above 1 as 1."""
    return min(max(cosine, 0.0), 1.0)
