"""`embedding`: text that means the same as one of a policy's example texts.

    embedding:
      clinical_question: {texts: [interpret a test result, symptoms of a patient], threshold: 0.45}

Costs a text encoder's pass for each window of text that is not cached. It sees topics and intentions rather than words;
it sees little of negation, of numbers, and of a remark inside a long text about something else.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from router.inference.executor import Overloaded
from router.inference.text import TextEncoder
from router.request.view import RequestView
from router.signals.base import Cost, Evidence, Observation, SignalName, observed, shed
from router.signals.settings import Phrases, SignalSettings, Threshold
from router.signals.texts import Over, encodable, texts_over


class EmbeddingSettings(SignalSettings):
    """Settings of an `embedding` signal."""

    texts: Phrases = Field(description="Anchors: texts like those that should match.")
    threshold: Threshold = Field(0.45, description="Cosine similarity from which on it matches.")
    aggregate: Literal["max", "mean"] = Field(
        "max", description="max: like any one of the anchors; mean: like all of them on average."
    )
    over: Over = Field(
        "latest",
        description="Texts that are read. latest: the last user turn; user: every user turn; all: every turn and role, "
        "tool calls and tool results included.",
    )


class EmbeddingSignal:
    """How like the anchors the likest window of text is: cosine, negative ones as 0."""

    cost = Cost.TEXT_MODEL

    def __init__(self, name: SignalName, settings: EmbeddingSettings, encoder: TextEncoder) -> None:
        self.name = name
        self._settings = settings
        self._encoder = encoder
        self._anchors: NDArray[np.float32] = np.zeros((0, encoder.dimension), np.float32)

    async def prepare(self) -> None:
        """Embed the anchors."""
        self._anchors = await self._encoder.embed(self._settings.texts)

    async def observe(self, view: RequestView) -> Observation:
        """The best window decides; its anchor and place are the evidence."""
        best: Evidence | None = None
        for text in texts_over(view, self._settings.over):
            try:
                windows = await self._encoder.embed_windows(encodable(text.text))
            except Overloaded:
                return shed(self._encoder.pack)
            if not windows.spans:
                continue
            found = self._judge(text.pointer, windows.spans, windows.embeddings)
            if best is None or (found.score or 0.0) > (best.score or 0.0):
                best = found
        if best is None or best.score is None:
            return observed(False, 0.0, pack=self._encoder.pack)
        matched = best.score >= self._settings.threshold
        return observed(matched, best.score, label=best.label, evidence=(best,), pack=self._encoder.pack)

    def _judge(self, pointer: str, spans: tuple[tuple[int, int], ...], embeddings: NDArray[np.float32]) -> Evidence:
        cosines = embeddings @ self._anchors.T
        scores = cosines.max(axis=1) if self._settings.aggregate == "max" else cosines.mean(axis=1)
        window = int(scores.argmax())
        return Evidence(
            pointer,
            label=self._settings.texts[int(cosines[window].argmax())],
            score=float(np.clip(scores[window], 0.0, 1.0)),
            span=spans[window],
        )
