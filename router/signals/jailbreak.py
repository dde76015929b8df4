"""`jailbreak`: attempts to talk a model out of its instructions, or to make it tell them.

    jailbreak:
      attack: {threshold: 0.7}

Every text of every turn and role is read whole, tool calls and tool results included, in short segments, and the best
one decides: a long harmless text around an attack neither hides nor thins it. What stands around the border of two
segments is looked at once more where there is a hint of an attack. A segment is compared with anchors of attacks and of
what merely resembles them (`jailbreak_anchors.py`), and searched for turns of phrase (`jailbreak_patterns.py`), in
whatever way its letters are set (`jailbreak_views.py`). Costs a text encoder's pass for each segment of about 65 words
that is not cached.

What it can't see: requests that are harmful but no attack on the instructions; instructions planted in a document that
are phrased like any other; paraphrases by a patient attacker; text that is encoded, or inside an image. Outside English
it knows turns of phrase of some languages only. Documents about attacks that quote them raise a false alarm, every
eighth in a measured set (`tests/signals/test_jailbreak_figures.py`). An operator's own system prompt and tools are read
too, because whoever holds an API key may write them, but they must look more like an attack than a user's words to
match (`OPERATOR_DISCOUNT`); a policy for clients that it trusts can leave `system` and `developer` out of `roles`.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import re2
from numpy.typing import NDArray
from pydantic import Field

from router.inference.executor import Overloaded
from router.inference.text import TextEncoder
from router.request.view import RequestView, Role, TextSpan
from router.signals.base import Cost, Evidence, Observation, SignalName, observed, shed
from router.signals.jailbreak_anchors import ATTACKS, CONTRASTS
from router.signals.jailbreak_patterns import PATTERNS
from router.signals.jailbreak_views import RIGHT_TO_LEFT_OVERRIDE, other_readings
from router.signals.settings import SignalSettings, Threshold
from router.signals.texts import Segment, seam, segments, stretches, visible

SEGMENT_BYTES: Final = 400

SEGMENTS_AT_ONCE: Final = 8
"""Patterns are matched on the event loop, about an eighth of a millisecond a segment."""

LOOK_AGAIN: Final = 0.5
"""Score of a segment from which on the borders to its neighbours are looked at by themselves, as about one in a hundred
of harmless documents is. Of 240 public attacks put near a border this finds 55 %, overlapping segments found 49 %, in
one and a half times as many passes. 0.2 finds 60 %, but raises false alarms in long documents."""

MAX_EVIDENCE: Final = 8
"""Segments that are cited, those with the highest scores first."""

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
BIAS: Final = -3.9

OPERATORS: Final[frozenset[Role]] = frozenset({"system", "developer"})
OPERATOR_DISCOUNT: Final = 4.0
"""Taken off the log-odds of what an operator wrote: system prompts and tool definitions speak of rules, instructions
and roles as a matter of course. Set by hand, on a dozen ordinary system prompts."""


class JailbreakSettings(SignalSettings):
    """Settings of a `jailbreak` signal."""

    threshold: Threshold = Field(0.7, description="Score from which on it matches.")
    roles: tuple[Role, ...] = Field(
        ("system", "developer", "user", "assistant", "tool"),
        min_length=1,
        description="Roles whose texts are read; all of them by default.",
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    """A segment, the groups of patterns found in it, and which reading of it was meant; "" is the plain one."""

    segment: Segment
    score: float
    groups: tuple[str, ...]
    reading: str

    def evidence(self, pointer: str, role: Role) -> Evidence:
        label = ", ".join(self.groups) or "likeness"
        score = _discounted(self.score) if role in OPERATORS else self.score
        return Evidence(pointer, label=label, score=score, span=self.segment.span, detail=self.reading)


class JailbreakSignal:
    """How much the most suspicious segment of any text sounds like an attack."""

    cost = Cost.TEXT_MODEL

    def __init__(self, name: SignalName, settings: JailbreakSettings, encoder: TextEncoder) -> None:
        self.name = name
        self._settings = settings
        self._encoder = encoder
        self._patterns = _compile(PATTERNS)
        self._attacks: NDArray[np.float32] = np.zeros((0, encoder.dimension), np.float32)
        self._contrasts = self._attacks

    async def prepare(self) -> None:
        """Embed the anchors."""
        self._attacks = await self._encoder.embed(ATTACKS)
        self._contrasts = await self._encoder.embed(CONTRASTS)

    async def observe(self, view: RequestView) -> Observation:
        """The best segment's score; the segments that reach the threshold are the evidence, else the best one.

        Once there is as much evidence as is cited, nothing more is read: the score may be higher still.
        """
        found: list[Evidence] = []
        for text in view.texts:
            if text.role not in self._settings.roles:
                continue
            try:
                async for more in self._judge(text):
                    found = self._foremost([*found, *more])
                    if len(found) == MAX_EVIDENCE:
                        return self._answer(found)
            except Overloaded:
                return shed(self._encoder.pack)
        return self._answer(found)

    def _answer(self, found: Sequence[Evidence]) -> Observation:
        if not found:
            return observed(False, 0.0, pack=self._encoder.pack)
        best = found[0]
        score = best.score or 0.0
        matched = score >= self._settings.threshold
        return observed(matched, score, label=best.label, evidence=tuple(found), pack=self._encoder.pack)

    async def _judge(self, span: TextSpan) -> AsyncIterator[list[Evidence]]:
        """Evidence of a few segments at a time: others want their turn, and a long text must not be there twice."""
        text = span.text
        mirrored = RIGHT_TO_LEFT_OVERRIDE in text
        last: list[_Seen] = []
        async for some in _batches(segments(stretches(text, visible), SEGMENT_BYTES)):
            seen = await self._see(some, mirrored)
            seams = list(self._doubtful_seams([*last, *seen], mirrored))
            yield [each.evidence(span.pointer, span.role) for each in [*seen, *await self._see(seams, mirrored)]]
            last = seen[-1:]
            await asyncio.sleep(0)

    async def _see(self, some: Sequence[Segment], mirrored: bool) -> list[_Seen]:
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
        best: dict[int, _Seen] = {}
        for (index, _, reading), names, score in zip(readings, groups, scores, strict=True):
            if index not in best or score > best[index].score:
                best[index] = _Seen(some[index], float(score), tuple(names), reading)
        return [best[index] for index in range(len(some))]

    def _doubtful_seams(self, seen: Sequence[_Seen], mirrored: bool) -> Iterator[Segment]:
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

    def _foremost(self, found: Sequence[Evidence]) -> list[Evidence]:
        ranked = sorted(found, key=lambda evidence: -(evidence.score or 0.0))
        over = [evidence for evidence in ranked if (evidence.score or 0.0) >= self._settings.threshold]
        return over[:MAX_EVIDENCE] or ranked[:1]


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


def _discounted(score: float) -> float:
    """The score with OPERATOR_DISCOUNT off its log-odds."""
    odds = score / max(1.0 - score, 1e-12) * math.exp(-OPERATOR_DISCOUNT)
    return odds / (1.0 + odds)


def _nearest(embeddings: NDArray[np.float32], anchors: NDArray[np.float32]) -> NDArray[np.float64]:
    cosines = np.sort(embeddings @ anchors.T, axis=1)
    nearest: NDArray[np.float64] = cosines[:, -NEAREST:].mean(axis=1, dtype=np.float64)
    return nearest


def _compile(groups: Mapping[str, Sequence[str]]) -> dict[str, tuple[Any, ...]]:
    options = re2.Options()
    options.case_sensitive = False
    return {name: tuple(re2.compile(pattern, options) for pattern in patterns) for name, patterns in groups.items()}
