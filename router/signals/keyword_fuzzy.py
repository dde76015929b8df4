"""Search for phrases with misspellings: runs of whole words that are a phrase but for a few characters.

Likeness is 1 - edits / length of the longer one, where an edit inserts, deletes or replaces a character or swaps two
neighbours (optimal string alignment). Work is bounded: what is compared is counted, and too much is said to be so.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from rapidfuzz.distance import OSA
from rapidfuzz.process import cdist

from router.request.view import TextSpan
from router.signals.base import Evidence
from router.signals.keyword_tally import Tally
from router.signals.pieces import joined, legible, words, words_of

MOST_WORK: Final = 1_000_000
"""Runs of words that are made, plus comparisons by `COMPARISONS_A_RUN`, in one request: about a second's work. Enough
for three phrases of two words and a text of a megabyte that never repeats itself."""

COMPARISONS_A_RUN: Final = 4
"""Comparisons that take about the time of making one run."""

COMPARED_AT_ONCE: Final = 8_192
"""Comparisons, a millisecond or two, after which others get their turn."""


class FuzzySearch:
    """Phrases that are at least `similarity` like some run of words; a word too many or too few is allowed for."""

    def __init__(self, phrases: tuple[str, ...], similarity: float) -> None:
        """ValueError where a phrase has neither letters nor digits."""
        self._written = phrases
        self._similarity = similarity
        self._folded = []
        self._by_size: dict[int, list[int]] = {}
        for index, phrase in enumerate(phrases):
            of_phrase = words_of(phrase)
            if not of_phrase:
                raise ValueError(f"any[{index}]: no letter or digit to be like")
            self._folded.append(joined(of_phrase))
            least = min(len(of_phrase) - 1, math.ceil(len(of_phrase) * similarity))
            most = max(len(of_phrase) + 1, math.floor(len(of_phrase) / similarity))
            for size in range(max(least, 1), most + 1):
                self._by_size.setdefault(size, []).append(index)
        self._lengths = {size: self._admissible(indices) for size, indices in self._by_size.items()}

    def done(self, tally: Tally) -> bool:
        """Whether all are found, or no more may be looked at."""
        return tally.cut_short or len(tally.found) == len(self._written)

    async def read(self, text: TextSpan, tally: Tally) -> None:
        """Adds what the text has of phrases that are not found yet, each by the best run in the piece that has one."""
        kept = max(self._by_size) - 1
        tail: list[str] = []
        async for piece in words(legible(text.text)):
            run = tail + piece
            wanted = {index for index in range(len(self._written)) if index not in tally.found}
            for size, indices in self._by_size.items():
                runs = self._runs(run, max(len(tail) - size + 1, 0), size, tally)
                await self._compare(text.pointer, runs, [index for index in indices if index in wanted], tally)
                tally.cut_short = tally.cut_short or tally.work > MOST_WORK
            if self.done(tally):
                return
            tail = run[max(len(run) - kept, 0) :]

    def _admissible(self, indices: list[int]) -> tuple[float, float]:
        """Characters that a run has at least and at most that is like one of the phrases."""
        lengths = [len(self._folded[index]) for index in indices]
        return min(lengths) * self._similarity - 1e-9, max(lengths) / self._similarity + 1e-9

    def _runs(self, run: list[str], begin: int, size: int, tally: Tally) -> list[str]:
        """Every run of `size` words from `begin` on that could be long enough and is new in this request, in order."""
        least, most = self._lengths[size]
        # How long a run is without what stands between its words, or with it, is told without making it.
        ends = np.concatenate(([0], np.cumsum(np.fromiter(map(len, run), np.int64, len(run)))))
        letters = ends[size:] - ends[:-size] if len(run) >= size else ends[:0]
        starts = np.flatnonzero((letters + size >= least) & (letters - size <= most))
        starts = starts[starts >= begin]
        tally.work += len(starts)
        texts = (joined(run[start : start + size]) for start in starts.tolist())
        new = dict.fromkeys(text for text in texts if least <= len(text) <= most)
        seen = tally.seen.setdefault(size, set())
        fresh = [text for text in new if text not in seen]
        seen.update(fresh)
        return fresh

    async def _compare(self, pointer: str, runs: Sequence[str], wanted: list[int], tally: Tally) -> None:
        phrases = [self._folded[index] for index in wanted]
        at_once = max(COMPARED_AT_ONCE // max(len(wanted), 1), 1)
        for start in range(0, len(runs) if wanted else 0, at_once):
            if tally.work > MOST_WORK:
                return
            some = runs[start : start + at_once]
            tally.work += -(-len(some) * len(wanted) // COMPARISONS_A_RUN)
            likeness = cdist(
                phrases, some, scorer=OSA.normalized_similarity, score_cutoff=self._similarity, dtype=np.float32
            ).max(axis=1)
            for index, likest in zip(wanted, likeness.tolist(), strict=True):
                score = min(round(likest, 4), 1.0)
                if score > tally.best.get(index, 0.0):
                    tally.put(index, score, Evidence(pointer, label=self._written[index], score=score))
            if len(runs) > start + at_once:
                await asyncio.sleep(0)
