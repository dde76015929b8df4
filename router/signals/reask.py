"""`reask`: the user asks again what an earlier turn asked already, which often means that the answer did not help.

    reask:
      again: {threshold: 0.7, turns: 3}

The last user turn is compared with up to `turns` user turns before it that have an answer in between. The score is the
greater of two: the cosine of what they mean, and their share of common letter sequences, which finds near-verbatim
repeats in any language, also where the text encoder does not know it. Sentences of the last turn are looked at one by
one, too, because who asks again often adds a complaint. Evidence names the earlier turn.

Costs a text encoder's pass for each window and sentence of the last turn, and for each window of the earlier ones, that
is not cached; all but the last turn's usually are. Of a long turn its two ends are read.

What it can't see: a question asked again in quite other words, which is the rule rather than the exception: of two
requests of one intent about one pair in three is taken for a repeat, of two intents one in a hundred
(`tests/signals/test_learned_figures.py`). A complaint that repeats nothing is for `feedback`. Two different questions
about the same pasted document look alike, and so do steps of a task that are phrased by one pattern. Turns of a word or
two ("yes", "go on") are never a repeat.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from pydantic import Field

from router.inference.executor import Overloaded
from router.inference.text import TextEncoder
from router.request.view import RequestView, TextPart, TextSpan, Turn
from router.signals.anchors import NOT_A_NUMBER, Window, ends, read_ends, unit_interval
from router.signals.base import Cost, Evidence, Observation, SignalName, observed, shed
from router.signals.pictures import settle
from router.signals.settings import SignalSettings, Threshold
from router.signals.texts import composed, encodable

LEAST_BYTES: Final = 12
"""Bytes of UTF-8, letters and digits only, below which a turn or a sentence is no question to be repeated: two or three
words of English, four characters of Chinese."""

SENTENCES: Final = 8
"""Sentences of the last turn that are looked at by themselves, the first ones."""

SEQUENCE: Final = 3
"""Characters of a letter sequence."""

_SENTENCE_END: Final = re.compile(r"(?<=[.!?:;。!?])\s*|\n+")
_NOT_SAID: Final = re.compile(r"[\W_]+")


class ReaskSettings(SignalSettings):
    """Settings of a `reask` signal."""

    threshold: Threshold = Field(0.7, description="Likeness to an earlier turn from which on it matches.")
    turns: int = Field(3, ge=1, le=50, description="Earlier user turns that are compared, the latest ones.")


class _Asked(NamedTuple):
    """A user turn as it is compared."""

    pointer: str
    windows: Sequence[Window]
    sequences: Counter[str]


class ReaskSignal:
    """How like an earlier user turn the last one is."""

    cost = Cost.TEXT_MODEL

    def __init__(self, name: SignalName, settings: ReaskSettings, encoder: TextEncoder) -> None:
        self.name = name
        self._settings = settings
        self._encoder = encoder

    async def prepare(self) -> None:
        """Nothing to do."""

    async def observe(self, view: RequestView) -> Observation:
        """The likest earlier turn decides; not matched where there is none."""
        pack = self._encoder.pack
        latest, earlier = questions(view, self._settings.turns)
        if latest is None or not earlier:
            return observed(False, 0.0, pack=pack)
        try:
            now = await self._read(latest)
            sentences = await self._sentences(latest)
            before = [await self._read(turn) for turn in earlier]
        except Overloaded:
            return shed(pack)
        found = [_compare(now, sentences, turn) for turn in before]
        best = max(found, key=lambda evidence: -1.0 if evidence.score is None else evidence.score)
        unknown = next((evidence for evidence in found if evidence.score is None), best)
        results = [best] if best is unknown else [best, unknown]
        return settle(results, lambda score: score >= self._settings.threshold, pack)

    async def _read(self, turn: Turn) -> _Asked:
        texts = _texts(turn)
        said = "\n".join(piece for text in texts for _, piece in ends(text.text))
        windows = await read_ends(self._encoder, texts)
        # Counting sequences takes milliseconds for a long turn, and windows may all have come from the cache.
        await asyncio.sleep(0)
        return _Asked(turn.pointer, windows, sequences(said))

    async def _sentences(self, turn: Turn) -> list[Window]:
        found: list[Window] = []
        for text in _texts(turn):
            for offset, piece in ends(text.text):
                asked = _questions_in(piece, SENTENCES - len(found))
                if not asked:
                    continue
                rows = await self._encoder.embed([sentence for _, sentence in asked])
                found += [
                    Window(text.pointer, (offset + start, offset + start + len(sentence)), row)
                    for (start, sentence), row in zip(asked, rows, strict=True)
                ]
        return found


def questions(view: RequestView, turns: int) -> tuple[Turn | None, list[Turn]]:
    """The last user turn and up to `turns` before it, latest first, that were answered before it was written.

    Turns that say next to nothing are left out; the first is None if the last user turn does.
    """
    latest: Turn | None = None
    answered = False
    earlier: list[Turn] = []
    for turn in reversed(view.turns):
        if turn.role == "assistant":
            answered = answered or latest is not None
        elif turn.role == "user" and latest is None:
            if not _says_something(turn):
                return None, []
            latest = turn
        elif turn.role == "user" and answered and _says_something(turn):
            earlier.append(turn)
            if len(earlier) == turns:
                break
    return latest, earlier


def sequences(text: str) -> Counter[str]:
    """How often each run of SEQUENCE letters and digits occurs, without case, spaces and punctuation."""
    said = _said(text)
    return Counter(said[start : start + SEQUENCE] for start in range(max(len(said) - SEQUENCE + 1, 0)))


def in_common(left: Counter[str], right: Counter[str]) -> float:
    """Dice's coefficient, in 0-1: twice what both have over what each has."""
    total = left.total() + right.total()
    return 2.0 * (left & right).total() / total if total else 0.0


def _compare(now: _Asked, sentences: Sequence[Window], before: _Asked) -> Evidence:
    """The evidence stands in the last turn; its detail names the earlier one."""
    same = in_common(now.sequences, before.sequences)
    old = np.stack([window.embedding for window in before.windows])
    whole = np.stack([window.embedding for window in now.windows]) @ old.T
    # Each window of the last turn has to be found again, so that a long one is no repeat of a part of it.
    score, place = float(whole.max(axis=1).mean()), now.windows[0]
    for sentence in sentences:
        likeness = float((old @ sentence.embedding).max())
        if likeness > score:
            score, place = likeness, sentence
    if not np.isfinite(score):
        return Evidence(place.pointer, detail=NOT_A_NUMBER)
    score = unit_interval(max(score, same))
    return Evidence(place.pointer, label="asked before", score=score, span=place.span, detail=f"as in {before.pointer}")


def _texts(turn: Turn) -> list[TextSpan]:
    return [TextSpan(p.pointer, "user", encodable(p.text)) for p in turn.parts if isinstance(p, TextPart) and p.text]


def _says_something(turn: Turn) -> bool:
    return any(_enough(piece) for text in _texts(turn) for _, piece in ends(text.text))


def _enough(text: str) -> bool:
    return len(_said(text).encode()) >= LEAST_BYTES


def _said(text: str) -> str:
    return _NOT_SAID.sub("", composed(text).casefold())


def _questions_in(text: str, most: int) -> list[tuple[int, str]]:
    """Up to `most` sentences that say something, each with the place where it begins."""
    found: list[tuple[int, str]] = []
    start = 0
    for end in [*(hit.start() for hit in _SENTENCE_END.finditer(text)), len(text)]:
        sentence = text[start:end].strip()
        if len(found) < most and _enough(sentence):
            found.append((text.index(sentence, start), sentence))
        start = end
    return found
