"""`knowledge_base`: which labelled examples of a file the request is most like.

    knowledge_base:
      support_topic: {file: support.jsonl, k: 5, threshold: 0.5}
      needs_human: {file: support.jsonl, any: [complaint, cancellation]}

The file lies beside the policy and is read when the policy is loaded: JSON Lines with `text` and `label`, or YAML with
a list of the same or labels with lists of texts. The `k` nearest examples vote with their cosines, and the label with
the most is the observation's; the score is the mean cosine of those of the `k` that bear it. It matches from
`threshold` on, and, with `any`, if the label is one of those. Evidence names the line of the nearest example and
begins with the file's digest, so that a record tells which state of the file was used.

Costs a text encoder's pass for each window of text that is not cached, and one for each example when a worker starts:
a thousand short ones take some seconds. Of a long text its two ends are read, and the window with the highest score
decides. What it can't see: what no example resembles, which is why there is a threshold; labels with few examples
among labels with many, which outvote them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from router.inference.executor import Overloaded
from router.inference.text import TextEncoder
from router.request.view import RequestView
from router.signals.anchors import NOT_A_NUMBER, Window, read_ends, unit_interval
from router.signals.base import Cost, Evidence, Observation, SignalName, failed, observed, shed
from router.signals.exemplars import ExemplarError, read_exemplars
from router.signals.resources import Resources, SignalSetupError
from router.signals.settings import Phrase, SignalSettings, Threshold
from router.signals.texts import WHICH_TEXTS, Over, texts_over

DIGEST_SHOWN: Final = 12
"""Hex digits of the file's digest in the evidence."""


class KnowledgeBaseSettings(SignalSettings):
    """Settings of a `knowledge_base` signal."""

    file: Phrase = Field(description="File of labelled examples, .jsonl or .yaml; relative to the policy's folder.")
    any: tuple[Phrase, ...] | None = Field(None, min_length=1, description="Labels that match; all if not given.")
    k: int = Field(5, ge=1, le=100, description="Nearest examples that vote.")
    threshold: Threshold = Field(0.5, description="Mean cosine of the label's examples from which on it matches.")
    over: Over = Field(
        "latest",
        description=WHICH_TEXTS,
    )


class KnowledgeBaseSignal:
    """The label that the nearest examples vote for."""

    cost = Cost.TEXT_MODEL

    def __init__(
        self, name: SignalName, settings: KnowledgeBaseSettings, encoder: TextEncoder, resources: Resources
    ) -> None:
        """Reads the file; raises SignalSetupError that names the file, and its line where there is one."""
        self.name = name
        self._settings = settings
        self._encoder = encoder
        try:
            exemplars = read_exemplars(resources.base / settings.file)
        except ExemplarError as error:
            raise SignalSetupError(f"{name}: {settings.file}: {error}") from error
        self._rows = exemplars.rows
        self._digest = f"sha256:{exemplars.digest[:DIGEST_SHOWN]}"
        self._labels = tuple(dict.fromkeys(row.label for row in self._rows))
        if strange := [label for label in settings.any or () if label not in self._labels]:
            known = ", ".join(sorted(self._labels)[:20])
            raise SignalSetupError(
                f"{name}: {settings.file}: no exemplar has the label {strange[0]!r}; it has: {known}"
            )
        self._wanted = frozenset(settings.any or self._labels)
        numbers = {label: number for number, label in enumerate(self._labels)}
        self._numbers = np.array([numbers[row.label] for row in self._rows])
        self._anchors: NDArray[np.float32] = np.zeros((0, encoder.dimension), np.float32)

    async def prepare(self) -> None:
        """Embed the exemplars."""
        self._anchors = await self._encoder.embed([row.text for row in self._rows])

    async def observe(self, view: RequestView) -> Observation:
        """The window with the highest score decides; not matched where there is no text."""
        pack = self._encoder.pack
        try:
            windows = await read_ends(self._encoder, texts_over(view, self._settings.over))
        except Overloaded:
            return shed(pack)
        if not windows:
            return observed(False, 0.0, pack=pack)
        found = [self._vote(window) for window in windows]
        if broken := [evidence for evidence in found if evidence.score is None]:
            return failed(NOT_A_NUMBER, tuple(broken[:1]), pack)
        best = max(found, key=lambda evidence: evidence.score or 0.0)
        score = best.score or 0.0
        matched = best.label in self._wanted and score >= self._settings.threshold
        return observed(matched, score, label=best.label, evidence=(best,), pack=pack)

    def _vote(self, window: Window) -> Evidence:
        cosines = (self._anchors @ window.embedding).astype(np.float64)
        if not np.isfinite(cosines).all():
            return Evidence(window.pointer, detail=NOT_A_NUMBER)
        nearest = np.argsort(-cosines, kind="stable")[: self._settings.k]
        votes = np.bincount(self._numbers[nearest], np.clip(cosines[nearest], 0.0, None), len(self._labels))
        winner = int(votes.argmax()) if votes.any() else int(self._numbers[nearest[0]])
        bearers = nearest[self._numbers[nearest] == winner]
        return Evidence(
            window.pointer,
            label=self._labels[winner],
            score=unit_interval(float(cosines[bearers].mean())),
            span=window.span,
            detail=f"{self._digest} line {self._rows[int(bearers[0])].line}",
        )
