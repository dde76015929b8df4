"""How much each segment of a text sounds like an attack: by what it is like, and by its turns of phrase.

The scorer of the `jailbreak` signal. It knows neither requests nor thresholds; constants are fitted, and a new anchor
or pattern needs a re-measurement (`tests/signals/test_jailbreak_figures.py`).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import re2
from numpy.typing import NDArray

from router.inference.text import TextEncoder
from router.signals.jailbreak_anchors import ATTACKS, CONTRASTS
from router.signals.jailbreak_patterns import PATTERNS
from router.signals.jailbreak_views import RIGHT_TO_LEFT_OVERRIDE, other_readings
from router.signals.texts import Segment, seam, segments, stretches, visible

SEGMENT_BYTES: Final = 400

SEGMENTS_AT_ONCE: Final = 8
"""Patterns are matched on the event loop, about an eighth of a millisecond a segment."""

LOOK_AGAIN: Final = 0.5
"""Score of a segment from which on the borders to its neighbours are looked at by themselves, as about one in a hundred
of harmless documents is. Of 240 public attacks put near a border this finds 55 %, overlapping segments found 49 %, in
one and a half times as many passes. 0.2 finds 60 %, but raises false alarms in long documents."""

NEAREST: Final = 3
"""A segment's likeness to a list of anchors is the mean cosine of this many that are nearest."""

# A segment's score is sigmoid(LIKENESS * (attacks - CONTRAST * contrasts) + the weights of the groups found + BIAS).
# Fitted by logistic regression on each text's best segment, then rounded; the weights of groups that the fitted sets
# hardly contain are set by hand. Attacks: in-the-wild jailbreak prompts and GPTFuzzer's templates. Harmless:
# self-instruct instructions, GPTeacher, CLINC150, Banking77, maths and code questions. BIAS is set for about
# 0.5 % false alarms on those at a score of 0.7.
LIKENESS: Final = 31.0
CONTRAST: Final = 0.75
WEIGHTS: Final[Mapping[str, float]] = {
    "override": 4.5,
    "override_translated": 9.0,
    "extraction": 2.5,
    "persona": 3.5,
    "mode": 2.0,
    "no_refusal": 3.0,
    "no_caveats": 0.75,
    "no_limits": 4.0,
    "delimiter": 1.5,
    "planted": 3.0,
    "staging": 4.0,
}
BIAS: Final = -3.7


@dataclass(frozen=True, slots=True)
class Seen:
    """A segment, the groups of patterns found in it, and which reading of it was meant; "" is the plain one."""

    segment: Segment = field(repr=False)
    score: float
    groups: tuple[str, ...]
    reading: str

    @property
    def label(self) -> str:
        """What the score rests on."""
        return ", ".join(self.groups) or "likeness"


class SegmentScorer:
    """Compares segments with anchors and patterns. Methods that ask the encoder raise Overloaded."""

    def __init__(self, encoder: TextEncoder) -> None:
        self.pack = encoder.pack
        self._encoder = encoder
        self._patterns = _compile(PATTERNS)
        self._attacks: NDArray[np.float32] = np.zeros((0, encoder.dimension), np.float32)
        self._contrasts = self._attacks

    async def prepare(self) -> None:
        """Embed the anchors."""
        self._attacks = await self._encoder.embed(ATTACKS)
        self._contrasts = await self._encoder.embed(CONTRASTS)

    async def score(self, text: str) -> AsyncIterator[list[Seen]]:
        """A few segments at a time: others want their turn, and a long text must not be there twice."""
        mirrored = RIGHT_TO_LEFT_OVERRIDE in text
        last: list[Seen] = []
        async for some in _batches(segments(stretches(text, visible), SEGMENT_BYTES)):
            seen = await self._see(some, mirrored)
            seams = list(self._doubtful_seams([*last, *seen], mirrored))
            yield [*seen, *await self._see(seams, mirrored)]
            last = seen[-1:]
            await asyncio.sleep(0)

    async def _see(self, some: Sequence[Segment], mirrored: bool) -> list[Seen]:
        """Each segment in its most suspicious reading."""
        readings = [
            (index, text, reading)
            for index, segment in enumerate(some)
            for text, reading in _readings(segment, mirrored)
        ]
        if not readings:
            return []
        texts = [text for _, text, _ in readings]
        groups = [self._groups(text) for text in texts]
        scores = self._scores(await self._encoder.embed(texts), groups)
        best: dict[int, Seen] = {}
        for (index, _, reading), names, score in zip(readings, groups, scores, strict=True):
            if index not in best or score > best[index].score:
                best[index] = Seen(some[index], float(score), tuple(names), reading)
        return [best[index] for index in range(len(some))]

    def _doubtful_seams(self, seen: Sequence[Seen], mirrored: bool) -> Iterator[Segment]:
        """Borders where an attack may have been cut in two: a neighbour is suspicious, or a turn of phrase stands over
        the border."""
        for left, right in itertools.pairwise(seen):
            border = seam(left.segment, right.segment)
            groups = {name for text, _ in _readings(border, mirrored) for name in self._groups(text)}
            if max(left.score, right.score) >= LOOK_AGAIN or not groups <= {*left.groups, *right.groups}:
                yield border

    def _scores(self, embeddings: NDArray[np.float32], groups: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Scores (n,) in 0-1 of segments with embeddings (n, d)."""
        likeness = _nearest(embeddings, self._attacks) - CONTRAST * _nearest(embeddings, self._contrasts)
        weights = np.array([sum(WEIGHTS[name] for name in names) for names in groups])
        scores: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-(LIKENESS * likeness + weights + BIAS)))
        return scores

    def _groups(self, piece: str) -> list[str]:
        return [name for name, patterns in self._patterns.items() if any(p.search(piece) for p in patterns)]


def _readings(segment: Segment, mirrored: bool) -> list[tuple[str, str]]:
    return [(segment.text, ""), *other_readings(segment.text, mirrored)]


async def _batches(items: AsyncIterable[Segment]) -> AsyncIterator[list[Segment]]:
    batch: list[Segment] = []
    async for item in items:
        batch.append(item)
        if len(batch) == SEGMENTS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _nearest(embeddings: NDArray[np.float32], anchors: NDArray[np.float32]) -> NDArray[np.float64]:
    cosines = np.sort(embeddings @ anchors.T, axis=1)
    nearest: NDArray[np.float64] = cosines[:, -NEAREST:].mean(axis=1, dtype=np.float64)
    return nearest


def _compile(groups: Mapping[str, Sequence[str]]) -> dict[str, tuple[Any, ...]]:
    options = re2.Options()
    options.case_sensitive = False
    return {name: tuple(re2.compile(pattern, options) for pattern in patterns) for name, patterns in groups.items()}
