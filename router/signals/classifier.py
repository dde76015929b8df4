"""`classifier`: texts that a sequence-classifier pack gives one of a policy's labels.

    classifier:
      toxic: {pack: ./packs/toxicity, any: [toxic, severe_toxic], threshold: 0.8, over: user}
      off_topic: {pack: ./packs/topics, any: [sports], aggregate: mean}

Every text that `over` names is judged whole, in overlapping windows of what the model can read at once. With
`aggregate: max` the window with the highest probability decides, so that harmless text around a bad passage does not
hide it; with `mean` a label has to hold for the texts as a whole, each window counting by its length. The score is the
probability of the likeliest of the labels in `any`, calibrated where the pack is. Texts are read without invisible
characters and with compatibility forms, such as full-width letters, replaced. Costs the model's pass for each window
that is not cached.

What it can't see: what the model was not trained to tell; a passage that is cut by the border of two windows and longer
than their overlap; text inside images. Probabilities of a pack without a calibrated temperature are surer than they
have reason to be. A pack that labels each token serves `pii`, not this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
from pydantic import Field

from router.inference.classifier import Classifier
from router.inference.executor import Overloaded
from router.request.view import RequestView
from router.signals.base import Cost, Evidence, Observation, SignalName, failed, observed, shed
from router.signals.resources import Resources, SignalSetupError
from router.signals.settings import Phrase, Phrases, SignalSettings, Threshold
from router.signals.texts import WHICH_TEXTS, Over, stretches, texts_over, visible

MAX_EVIDENCE: Final = 8
"""Windows that are cited, those with the highest probabilities first."""

NOT_A_NUMBER: Final = "no number"


class ClassifierSettings(SignalSettings):
    """Settings of a `classifier` signal."""

    pack: Phrase = Field(description="The pack that judges, by path or by name.")
    any: Phrases = Field(description="Labels of the pack; one that holds is enough.")
    threshold: Threshold = Field(0.5, description="Probability from which on it matches.")
    aggregate: Literal["max", "mean"] = Field(
        "max",
        description="max: one window is enough; mean: the mean over all windows of all texts, each by its length.",
    )
    over: Over = Field(
        "latest",
        description=WHICH_TEXTS,
    )

    @property
    def classifier_packs(self) -> tuple[str, ...]:
        """The one that judges."""
        return (self.pack,)

    @property
    def possible_labels(self) -> tuple[str, ...]:
        """Those that the policy asks for."""
        return self.any


class JudgedWindow(NamedTuple):
    """A window of a text: characters (None where rewriting has moved them), how many, and each label's probability."""

    span: tuple[int, int] | None
    length: int
    probabilities: tuple[float, ...]


class LabelJudge:
    """One classifier, asked for some of its labels."""

    def __init__(self, classifier: Classifier, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        self.pack = classifier.pack
        self._classifier = classifier
        self._columns = [classifier.labels.index(label) for label in labels]

    async def judge(self, text: str) -> list[JudgedWindow]:
        """Every window of the text as a model reads it, none of a text without characters; raises Overloaded."""
        pieces = [piece async for piece in stretches(text, visible)]
        exact = all(piece.exact for piece in pieces)
        shown = "".join(piece.text for piece in pieces)
        if not shown.strip():
            return []
        windows = await self._classifier.classify_windows(shown)
        rows = windows.probabilities[:, self._columns].tolist()
        return [
            JudgedWindow(span if exact else None, span[1] - span[0], tuple(row))
            for span, row in zip(windows.spans, rows, strict=True)
        ]


def open_judge(name: SignalName, pack: str, labels: Sequence[str], resources: Resources) -> LabelJudge:
    """The judge for labels of this pack; SignalSetupError where the pack is of another kind or has no such label."""
    classifier = resources.classifiers.get(pack)
    if classifier is None:
        raise SignalSetupError(f"{name}: the pack {pack!r} is not at hand")
    if classifier.level == "token":
        raise SignalSetupError(
            f"{name}: the pack {pack!r} labels each token, not a text; such packs serve `pii` as its `model`"
        )
    if unknown := [label for label in labels if label not in classifier.labels]:
        raise SignalSetupError(
            f"{name}: the pack {pack!r} has no label {', '.join(map(repr, unknown))}; known are "
            f"{', '.join(classifier.labels)}"
        )
    return LabelJudge(classifier, labels)


class ClassifierSignal:
    """How likely the likeliest of the labels is, in the worst window or in all."""

    cost = Cost.TEXT_MODEL

    def __init__(self, name: SignalName, settings: ClassifierSettings, judge: LabelJudge) -> None:
        self.name = name
        self._settings = settings
        self._judge = judge

    async def prepare(self) -> None:
        """Nothing."""

    async def observe(self, view: RequestView) -> Observation:
        """Windows that reach the threshold are the evidence, else the best one; nothing to read is no match."""
        pack = self._judge.pack
        judged: list[tuple[str, JudgedWindow]] = []
        try:
            for text in texts_over(view, self._settings.over):
                judged += [(text.pointer, window) for window in await self._judge.judge(text.text)]
        except Overloaded:
            return shed(pack)
        if not judged:
            return observed(False, 0.0, pack=pack)
        rows = np.array([window.probabilities for _, window in judged])
        if not np.isfinite(rows).all():
            return failed(NOT_A_NUMBER, pack=pack)
        lengths = [max(window.length, 1) for _, window in judged]
        scores = rows.max(axis=0) if self._settings.aggregate == "max" else np.average(rows, axis=0, weights=lengths)
        best = int(scores.argmax())
        score = float(np.clip(scores[best], 0.0, 1.0))
        evidence = self._evidence(judged, best)
        label = self._judge.labels[best]
        return observed(score >= self._settings.threshold, score, label=label, evidence=evidence, pack=pack)

    def _evidence(self, judged: Sequence[tuple[str, JudgedWindow]], label: int) -> tuple[Evidence, ...]:
        ranked = sorted(judged, key=lambda pair: -pair[1].probabilities[label])
        cited = [
            Evidence(
                pointer,
                label=self._judge.labels[label],
                score=float(np.clip(window.probabilities[label], 0.0, 1.0)),
                span=window.span,
            )
            for pointer, window in ranked[:MAX_EVIDENCE]
        ]
        over = [evidence for evidence in cited if (evidence.score or 0.0) >= self._settings.threshold]
        return tuple(over or cited[:1])


def build_classifier(name: SignalName, settings: ClassifierSettings, resources: Resources) -> ClassifierSignal:
    """The signal on its pack; SignalSetupError where the pack can't answer."""
    return ClassifierSignal(name, settings, open_judge(name, settings.pack, settings.any, resources))
