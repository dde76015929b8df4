"""Near-duplicates: texts that share most of their 8-grams of words, or whose embeddings nearly coincide."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

GRAM = 8
OVERLAP = 0.2
"""Share of a text's 8-grams that also occur in what measures, from which on it is a near-duplicate."""
COSINE = 0.93

_WORD = re.compile(r"\w+")


def grams(text: str) -> set[int]:
    """Hashes of a text's 8-grams of words; a shorter text is one gram."""
    words = _WORD.findall(text.lower())
    if len(words) <= GRAM:
        return {hash(tuple(words))}
    return {hash(tuple(words[start : start + GRAM])) for start in range(len(words) - GRAM + 1)}


def by_grams(texts: Sequence[str], measuring: Iterable[str]) -> NDArray[np.bool_]:
    """Which texts are near-duplicates of any that measure."""
    known: set[int] = set()
    for text in measuring:
        known |= grams(text)
    shares = (_share(grams(text), known) for text in texts)
    return np.fromiter((share >= OVERLAP for share in shares), bool, len(texts))


def _share(found: set[int], known: set[int]) -> float:
    return len(found & known) / max(len(found), 1)


def by_cosine(vectors: NDArray[np.float32], measuring: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which unit vectors (n, d) lie within `COSINE` of any of (m, d)."""
    near = np.zeros(len(vectors), bool)
    if len(measuring):
        for start in range(0, len(vectors), 1024):
            near[start : start + 1024] = (vectors[start : start + 1024] @ measuring.T).max(axis=1) >= COSINE
    return near
