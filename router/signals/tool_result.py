"""`tool_result`: instructions to the model inside what a tool gave back (indirect prompt injection).

    tool_result:
      injected: {threshold: 0.5}

Every result of every turn is read whole, and `documents` beside the conversation, in short overlapping windows of which
the best one decides: a long harmless page around an instruction neither hides nor thins it. A window is searched for
turns of phrase (`tool_result_patterns.py`), in whatever way its letters are set. Where the policy has a text encoder,
the `jailbreak` family's scorer then reads the same results, and the higher score counts. Costs microseconds a kilobyte,
and with an encoder a pass for each segment of about 65 words that is not cached, unless the patterns settle it.

What it can't see: an instruction that is phrased like any other text ("What is the capital of Brazil?", a code sample
with a back door), whatever the results of this request are for; text that is encoded, or inside an image. Outside
English it knows turns of phrase of some languages only. Pages about injections that quote them, and letters that ask
their reader for something, raise false alarms. Of 12 injections in authored agent loops it finds 8, of BIPIA's injected
instructions (its test files) 49 of 50 about code and 44 of 75 others; it flags 1 of 48 clean loops, none of 200 benign
contexts, and a quarter of documents about attacks. The encoder adds little to either side there
(`tests/signals/test_agent_figures.py`); it is for attacks that are phrased as a user's.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import math
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import re2
from pydantic import Field

from router.inference.executor import Overloaded
from router.inference.text import TextEncoder
from router.request.free_text import unescaped
from router.request.view import Part, RequestView, TextPart, TextSpan, ToolResultPart, Turn
from router.signals.base import Cost, Evidence, Observation, SignalName, observed, shed
from router.signals.jailbreak_scoring import SegmentScorer
from router.signals.jailbreak_views import RIGHT_TO_LEFT_OVERRIDE, other_readings
from router.signals.pieces import legible
from router.signals.settings import SignalSettings, Threshold
from router.signals.texts import Segment, segments
from router.signals.tool_result_patterns import PATTERNS, WEIGHTS

SEGMENT_BYTES: Final = 400
"""A window is two segments that follow each other: an instruction stands whole in one, and little else beside it."""

WINDOWS_AT_ONCE: Final = 64
"""Windows after which other requests get their turn."""

MAX_EVIDENCE: Final = 8
"""Windows that are cited, those with the highest scores first."""

SCORER_ODDS: Final = 0.7 / 0.3
"""What the default threshold of the `jailbreak` family, 0.7, is in odds: it and this family's, 0.5, are one."""

_MEMORY: Final = 64 << 20


class ToolResultSettings(SignalSettings):
    """Settings of a `tool_result` signal."""

    threshold: Threshold = Field(0.5, description="Score from which on it matches.")


class ToolResultSignal:
    """How much the most suspicious passage of any tool result sounds like an instruction to the model."""

    def __init__(self, name: SignalName, settings: ToolResultSettings, encoder: TextEncoder | None) -> None:
        self.name = name
        self.cost = Cost.HEURISTIC if encoder is None else Cost.TEXT_MODEL
        self._threshold = settings.threshold
        self._groups, self._set = _compile()
        self._scorer = None if encoder is None else SegmentScorer(encoder)

    async def prepare(self) -> None:
        """Embed the scorer's anchors, where there is an encoder."""
        if self._scorer is not None:
            await self._scorer.prepare()

    async def observe(self, view: RequestView) -> Observation:
        """The best passage's score; passages that reach the threshold are the evidence, else the best one.

        Once there is as much evidence as is cited, nothing more is read: the score may be higher still.
        """
        texts = results_only(view).texts
        found = await self._by_phrase(texts)
        if self._scorer is None or self._answer(found, "").matched:
            return self._answer(found, "")
        try:
            return self._answer(await self._by_likeness(self._scorer, texts, found), self._scorer.pack)
        except Overloaded:
            return shed(self._scorer.pack)

    def _answer(self, found: Sequence[Evidence], pack: str) -> Observation:
        score, label = (found[0].score or 0.0, found[0].label) if found else (0.0, "")
        matched = bool(found) and score >= self._threshold
        return observed(matched, score, label=label, evidence=tuple(found), pack=pack)

    async def _by_phrase(self, texts: Sequence[TextSpan]) -> list[Evidence]:
        found: list[Evidence] = []
        read = 0
        for text in texts:
            mirrored = RIGHT_TO_LEFT_OVERRIDE in text.text
            async for window in _windows(text.text):
                found = self._foremost([*found, *self._judge(text.pointer, window, mirrored)])
                if len(found) == MAX_EVIDENCE:
                    return found
                read += 1
                if read % WINDOWS_AT_ONCE == 0:
                    await asyncio.sleep(0)
        return found

    async def _by_likeness(
        self, scorer: SegmentScorer, texts: Sequence[TextSpan], found: list[Evidence]
    ) -> list[Evidence]:
        for text in texts:
            async for some in scorer.score(text.text):
                more = (
                    Evidence(text.pointer, each.label, _likely(each.score), each.segment.span, detail=each.reading)
                    for each in some
                )
                found = self._foremost([*found, *more])
                if len(found) == MAX_EVIDENCE:
                    return found
        return found

    def _judge(self, pointer: str, window: Segment, mirrored: bool) -> Iterator[Evidence]:
        for text, reading in ((window.text, ""), *other_readings(window.text, mirrored)):
            groups = sorted({self._groups[index] for index in self._set.Match(text) or ()})
            if groups:
                score = _together(WEIGHTS[group] for group in groups)
                yield Evidence(pointer, label=", ".join(groups), score=score, span=window.span, detail=reading)

    def _foremost(self, found: Sequence[Evidence]) -> list[Evidence]:
        ranked = sorted(found, key=lambda evidence: -(evidence.score or 0.0))
        over = [evidence for evidence in ranked if (evidence.score or 0.0) >= self._threshold]
        return over[:MAX_EVIDENCE] or ranked[:1]


def results_only(view: RequestView) -> RequestView:
    """The request as if it held nothing but what tools gave back, all of it in turns of the role `tool`.

    A result that is JSON is read with the escapes of its strings undone, as the model reads it; its spans are then
    those of the text so read.
    """
    turns = (_results_of(turn) for turn in (*view.turns, *view.extras))
    return replace(view, turns=tuple(turn for turn in turns if turn.parts), extras=(), tools=())


def _results_of(turn: Turn) -> Turn:
    # Some APIs put results in a user's turn; what else stands in a tool's turn was still not written by a user.
    parts = (_as_read(part) for part in turn.parts if turn.role == "tool" or isinstance(part, ToolResultPart))
    return Turn(turn.pointer, "tool", tuple(parts))


def _as_read(part: Part) -> Part:
    if isinstance(part, ToolResultPart):
        return replace(part, parts=tuple(_unescaped(p) if isinstance(p, TextPart) else p for p in part.parts))
    return _unescaped(part) if isinstance(part, TextPart) else part


def _unescaped(part: TextPart) -> TextPart:
    is_json = part.text.lstrip()[:1] in ("{", "[")
    return TextPart(part.pointer, unescaped(part.text)) if is_json else part


async def _windows(text: str) -> AsyncIterator[Segment]:
    """Two segments at a time, each but the outer ones in two windows; a text of one segment is one window."""
    before: Segment | None = None
    alone = True
    async for segment in segments(legible(text), SEGMENT_BYTES):
        if before is not None:
            yield _joined(before, segment)
            alone = False
        before = segment
    if before is not None and alone:
        yield before


def _joined(left: Segment, right: Segment) -> Segment:
    span = (left.span[0], right.span[1]) if left.span is not None and right.span is not None else None
    return Segment(left.text + right.text, span)


def _likely(score: float) -> float:
    """A score of the scorer's on this family's scale, with its odds divided by SCORER_ODDS."""
    return score / (score + SCORER_ODDS * (1.0 - score))


def _together(weights: Iterator[float]) -> float:
    """A score in 0-1: how likely one of several independent hints is right."""
    return 1.0 - math.prod(1.0 - weight for weight in weights)


@functools.cache
def _compile() -> tuple[tuple[str, ...], Any]:
    """All patterns as one automaton, which takes a pass over a window, and each pattern's group."""
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.max_mem = _MEMORY
    patterns = re2.Set.SearchSet(options)
    pairs = tuple(itertools.chain.from_iterable(((group, p) for p in some) for group, some in PATTERNS.items()))
    for _, pattern in pairs:
        patterns.Add(pattern)
    patterns.Compile()
    return tuple(group for group, _ in pairs), patterns
