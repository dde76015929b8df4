"""How much each segment of a text sounds like an attack: by what it is like, by its turns of phrase, by a head.

The scorer of the `jailbreak` signal. It knows neither requests nor thresholds; constants are fitted, and a new anchor
or pattern needs a re-measurement (`tests/signals/test_jailbreak_figures.py`).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
import re2
from numpy.typing import NDArray

from router.inference.classifier import NoNumberError
from router.inference.text import TextEncoder
from router.signals.jailbreak_anchors import ATTACKS, CONTRASTS
from router.signals.jailbreak_patterns import PATTERNS
from router.signals.jailbreak_views import RIGHT_TO_LEFT_OVERRIDE, other_readings
from router.signals.texts import Segment, parts, seam, segments, stretches, visible

SEGMENT_BYTES: Final = 400

SEGMENTS_AT_ONCE: Final = 8
"""Patterns are matched on the event loop, about an eighth of a millisecond a segment."""

LOOK_AGAIN: Final = 0.5
"""Score of a segment from which on the borders to its neighbours are looked at by themselves, as about one in a hundred
of harmless documents is. Of 240 public attacks put near a border this finds 55 %, overlapping segments found 49 %, in
one and a half times as many passes. 0.2 finds 60 %, but raises false alarms in long documents."""

PART_BYTES: Final = 240
"""A doubtful segment is read in parts of so many bytes, too: a sentence of attack weighs little among harmless ones."""

DOUBTFUL: Final = (0.1, 0.9)
"""Scores between which a segment is read in parts, as about one in fifty of harmless documents is. Only where a head
judges, too: likeness and turns of phrase alone find more attacks in parts, but not at the same rate of false alarms."""

NEAREST: Final = 3
"""A segment's likeness to a list of anchors is the mean cosine of this many that are nearest."""


@dataclass(frozen=True, slots=True)
class Weighing:
    """A segment's score: sigmoid(`likeness` * (attacks - `contrast` * contrasts) + the `groups` found + `head` * the
    head's log-odds + `bias`)."""

    likeness: float
    contrast: float
    groups: Mapping[str, float]
    head: float
    bias: float


# Fitted by logistic regression on each text's best segment, then rounded; the weights of groups that the fitted sets
# hardly contain are set by hand. Attacks: in-the-wild jailbreak prompts and GPTFuzzer's templates. Harmless:
# self-instruct instructions, GPTeacher, CLINC150, Banking77, maths and code questions. The bias is set for about
# 0.5 % false alarms on those at a score of 0.7, and for at most 2 % on long pages of documentation that are held out.
WITHOUT_HEAD: Final = Weighing(
    likeness=31.0,
    contrast=0.75,
    groups={
        "override": 4.5,
        "override_translated": 9.0,
        "extraction": 2.15,
        "persona": 3.5,
        "mode": 2.0,
        "no_refusal": 3.0,
        "no_caveats": 0.75,
        "no_limits": 4.0,
        "delimiter": 1.5,
        "planted": 3.0,
        "staging": 4.0,
    },
    head=0.0,
    bias=-4.2,
)

# Fitted by `python -m models.text.jailbreak_weighing`, then rounded. `override_translated`, `extraction` and
# `no_caveats` are set by hand: the fitted sets hardly contain the first, and a few plain sentences need the other two.
# The bias is set for 1 % false alarms at a score of 0.7 on requests that took part in no training of a head.
WITH_HEAD: Final = Weighing(
    likeness=13.2,
    contrast=0.7,
    groups={
        "override": 2.3,
        "override_translated": 13.0,
        "extraction": 2.5,
        "persona": 1.35,
        "mode": 1.2,
        "no_refusal": 2.2,
        "no_caveats": 0.75,
        "no_limits": 3.1,
        "delimiter": 2.0,
        "planted": 2.85,
        "staging": 2.65,
    },
    head=0.865,
    bias=-2.75,
)

SURELY: Final = 1e-5
"""A head is taken to be no surer than this: log-odds of 11.5 outweigh most else."""


class Reads(Protocol):
    """A head of the encoder that judges a text by its first window."""

    async def read_first(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """The encoder's unit vectors (n, d), and probabilities (n, 1) of an attack, from the same pass."""
        ...


@dataclass(frozen=True, slots=True)
class Seen:
    """A segment, the groups of patterns found in it, and which reading of it was meant; "" is the plain one."""

    segment: Segment = field(repr=False)
    score: float
    groups: tuple[str, ...]
    reading: str
    by_head: bool = False
    """Whether the head, too, takes it for an attack."""

    @property
    def label(self) -> str:
        """What the score rests on."""
        return ", ".join([*self.groups, *(["head"] if self.by_head else [])]) or "likeness"


class SegmentScorer:
    """Compares segments with anchors and patterns, and asks a head. Methods that ask the encoder raise Overloaded."""

    def __init__(self, encoder: TextEncoder, head: Reads | None = None) -> None:
        """`head` is the same encoder's."""
        self.pack = encoder.pack
        self._encoder = encoder
        self._head = head
        self._attacks: NDArray[np.float32] = np.zeros((0, encoder.dimension), np.float32)
        self._contrasts = self._attacks

    async def prepare(self) -> None:
        """Embed the anchors."""
        self._attacks = await self._encoder.embed(ATTACKS)
        self._contrasts = await self._encoder.embed(CONTRASTS)

    async def score(self, text: str, by_head: bool = True) -> AsyncIterator[list[Seen]]:
        """A few segments at a time: others want their turn, and a long text must not be there twice.

        Without `by_head` the head is not asked, if there is one.
        """
        head = self._head if by_head else None
        mirrored = RIGHT_TO_LEFT_OVERRIDE in text
        last: list[Seen] = []
        async for some in _batches(segments(stretches(text, visible), SEGMENT_BYTES)):
            seen = await self._see(some, mirrored, head)
            again = list(self._doubtful_seams([*last, *seen], mirrored))
            if head is not None:
                again += _doubtful_parts(seen)
            yield [*seen, *await self._see(again, mirrored, head)]
            last = seen[-1:]
            await asyncio.sleep(0)

    def has_turn_of_phrase(self, text: str) -> bool:
        """Whether a pattern of attacks occurs in a text of a few lines."""
        return bool(groups_in(text))

    async def _see(self, some: Sequence[Segment], mirrored: bool, head: Reads | None) -> list[Seen]:
        """Each segment in its most suspicious reading."""
        readings = [
            (index, text, reading)
            for index, segment in enumerate(some)
            for text, reading in _readings(segment, mirrored)
        ]
        if not readings:
            return []
        texts = [text for _, text, _ in readings]
        groups = [groups_in(text) for text in texts]
        told: NDArray[np.float64] | None = None
        if head is None:
            embeddings = await self._encoder.embed(texts)
        else:
            embeddings, answers = await head.read_first(texts)
            told = log_odds(answers[:, 0])
        scores = self._scores(embeddings, groups, told)
        if not np.isfinite(scores).all():
            raise NoNumberError
        best: dict[int, Seen] = {}
        for at, ((index, _, reading), names, score) in enumerate(zip(readings, groups, scores, strict=True)):
            if index not in best or score > best[index].score:
                by_head = told is not None and bool(told[at] >= 0)
                best[index] = Seen(some[index], float(score), tuple(names), reading, by_head)
        return [best[index] for index in range(len(some))]

    def _doubtful_seams(self, seen: Sequence[Seen], mirrored: bool) -> Iterator[Segment]:
        """Borders where an attack may have been cut in two: a neighbour is suspicious, or a turn of phrase stands over
        the border."""
        for left, right in itertools.pairwise(seen):
            border = seam(left.segment, right.segment)
            groups = {name for text, _ in _readings(border, mirrored) for name in groups_in(text)}
            if max(left.score, right.score) >= LOOK_AGAIN or not groups <= {*left.groups, *right.groups}:
                yield border

    def _scores(
        self, embeddings: NDArray[np.float32], groups: Sequence[Sequence[str]], told: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Scores (n,) in 0-1 of segments with embeddings (n, d); `told` (n,) are the head's log-odds."""
        by = WITHOUT_HEAD if told is None else WITH_HEAD
        likeness = nearest(embeddings, self._attacks) - by.contrast * nearest(embeddings, self._contrasts)
        odds = by.likeness * likeness + [sum(by.groups[name] for name in names) for names in groups] + by.bias
        if told is not None:
            odds = odds + by.head * told
        scores: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-odds))
        return scores


def _doubtful_parts(seen: Sequence[Seen]) -> Iterator[Segment]:
    least, most = DOUBTFUL
    for each in seen:
        if least <= each.score < most:
            yield from parts(each.segment, PART_BYTES)


def groups_in(piece: str) -> list[str]:
    """The groups of turns of phrase that occur in it."""
    return [name for name, patterns in _COMPILED.items() if any(pattern.search(piece) for pattern in patterns)]


def log_odds(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of probabilities, bounded by `SURELY`."""
    bounded = np.clip(probabilities, SURELY, 1.0 - SURELY)
    odds: NDArray[np.float64] = np.log(bounded / (1.0 - bounded))
    return odds


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


def nearest(embeddings: NDArray[np.float32], anchors: NDArray[np.float32]) -> NDArray[np.float64]:
    """(n,): likeness of unit vectors (n, d) to the anchors (m, d), see `NEAREST`."""
    cosines = np.sort(embeddings @ anchors.T, axis=1)
    likeness: NDArray[np.float64] = cosines[:, -NEAREST:].mean(axis=1, dtype=np.float64)
    return likeness


def _compile(groups: Mapping[str, Sequence[str]]) -> dict[str, tuple[Any, ...]]:
    options = re2.Options()
    options.case_sensitive = False
    return {name: tuple(re2.compile(pattern, options) for pattern in patterns) for name, patterns in groups.items()}


_COMPILED: Final = _compile(PATTERNS)
