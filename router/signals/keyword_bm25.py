"""Search for phrases by BM25: how much of a phrase's words, the rarer the more, stand close together in a text.

Texts are cut into passages of `PASSAGE` words, each beginning half a passage behind the one before, so that a long text
hides nothing; a phrase's score is that of its best passage. With N phrases, n(t) of them with the word t, f(t) times t
in the passage, and the passage's length dl in words:

    idf(t)  = ln(1 + (N - n(t) + 0.5) / (n(t) + 0.5))
    bm25    = sum over t of idf(t) * f(t) * (k1 + 1) / (f(t) + k1 * (1 - b + b * dl / PASSAGE))
    score   = bm25 / (sum over t of idf(t) * (k1 + 1))

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the idf of Lucene's
BM25Similarity, which is never negative. The score is the share of what endless repetition of all its words would give.
In scripts without spaces, a word is a pair of characters.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from typing import Final

from router.request.view import TextSpan
from router.signals.base import Evidence
from router.signals.keyword_tally import Tally
from router.signals.pieces import GLUE, legible, words, words_of

K1: Final = 0.5
"""Less than the usual 1.2, with which a word's third and fourth time still say much about a document. In a passage
they say little, and so half of a phrase's words, repeated without end, score 0.5, and all of them, once, 0.67."""

B: Final = 0.75
"""The usual one; Robertson and Zaragoza report 0.5 to 0.8 as good."""

PASSAGE: Final = 128
"""Words of a passage; also the length at which a passage counts as of average length."""

MOST_WORK: Final = 500_000
"""Phrases scored, each once a passage, in one request: about a second's work."""

SCORED_AT_ONCE: Final = 1_000
"""Phrases scored, about two milliseconds' work, after which others get their turn."""

_HALF: Final = PASSAGE // 2


class Bm25Search:
    """Phrases whose best passage scores at least `threshold`."""

    def __init__(self, phrases: tuple[str, ...], threshold: float) -> None:
        """ValueError where a phrase has neither letters nor digits."""
        self._written = phrases
        self._threshold = threshold
        self._terms = [_terms_of_phrase(words_of(phrase)) for phrase in phrases]
        for index, terms in enumerate(self._terms):
            if not terms:
                raise ValueError(f"any[{index}]: no letter or digit to look for")
        self._with_term: dict[str, list[int]] = {}
        for index, terms in enumerate(self._terms):
            for term in terms:
                self._with_term.setdefault(term, []).append(index)
        count = len(phrases)
        self._idf = {
            term: math.log(1 + (count - len(having) + 0.5) / (len(having) + 0.5))
            for term, having in self._with_term.items()
        }
        self._most = [math.fsum(self._idf[term] for term in terms) * (K1 + 1) for terms in self._terms]

    def done(self, tally: Tally) -> bool:
        """Whether no more may be looked at. Else a later text may always score better."""
        return tally.cut_short

    async def read(self, text: TextSpan, tally: Tally) -> None:
        """Scores every passage of the text that has a word of some phrase."""
        before: Counter[str] = Counter()
        block: Counter[str] = Counter()
        number = place = scored = 0
        last = ""
        async for piece in words(legible(text.text)):
            for found, term in self._hits(piece, last):
                at = (place + found) // _HALF
                if at != number:
                    # A block of half a passage is full; what stands more than a block before it is out of reach.
                    scored = await self._score(text.pointer, before + block, PASSAGE, tally, scored)
                    before, block = (block, Counter()) if at == number + 1 else (Counter(), Counter())
                    number = at
                if tally.cut_short:
                    return
                block[term] += 1
            place += len(piece)
            last = piece[-1].removeprefix(GLUE) if piece else last
        length = place - max(number - 1, 0) * _HALF
        await self._score(text.pointer, before + block, min(length, PASSAGE), tally, scored)

    def _hits(self, piece: list[str], last: str) -> list[tuple[int, str]]:
        """Places in the piece, and what stands there of the phrases' words and pairs of characters."""
        if not self._with_term.keys().isdisjoint(piece) or GLUE in "".join(piece):
            hits = []
            for index, word in enumerate(piece):
                bare = word.removeprefix(GLUE)
                if bare in self._idf:
                    hits.append((index, bare))
                if word.startswith(GLUE) and (pair := last + bare) in self._idf:
                    hits.append((index, pair))
                last = bare
            return hits
        return []

    async def _score(self, pointer: str, counts: Counter[str], length: int, tally: Tally, scored: int) -> int:
        norm = K1 * (1 - B + B * length / PASSAGE)
        weights = {term: self._idf[term] * n * (K1 + 1) / (n + norm) for term, n in counts.items()}
        for index in sorted({index for term in counts for index in self._with_term[term]}):
            share = math.fsum(weights.get(term, 0.0) for term in self._terms[index]) / self._most[index]
            tally.work += 1
            scored += 1
            if share > tally.best.get(index, 0.0):
                share = min(round(share, 4), 1.0)
                tally.best[index] = share
                if share >= self._threshold:
                    tally.put(index, share, Evidence(pointer, label=self._written[index], score=share))
        if tally.work > MOST_WORK:
            tally.cut_short = True
        if scored > SCORED_AT_ONCE:
            await asyncio.sleep(0)
            return 0
        return scored


def _terms_of_phrase(of_phrase: list[str]) -> tuple[str, ...]:
    """The distinct words of a phrase in their order; of what is glued together, the pairs."""
    terms: dict[str, None] = {}
    for index, word in enumerate(of_phrase):
        glued_on = index + 1 < len(of_phrase) and of_phrase[index + 1].startswith(GLUE)
        if word.startswith(GLUE):
            terms[of_phrase[index - 1].removeprefix(GLUE) + word.removeprefix(GLUE)] = None
        elif not glued_on:
            terms[word] = None
    return tuple(terms)
