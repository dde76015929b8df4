"""`classifier`: texts that a classifier pack, or a head of the text encoder, gives one of a policy's labels.

    classifier:
      harmful: {head: harm, over: user}
      toxic: {pack: ./packs/toxicity, any: [toxic, severe_toxic], threshold: 0.8, over: user}
      off_topic: {pack: ./packs/topics, any: [sports], aggregate: mean}

A `pack` is a model of its own, at the cost of its pass for each window that is not cached. A `head` is a small
classifier that comes with the text encoder's pack and reads what the encoder has computed: it costs next to nothing
beside the encoder's own pass, which all heads and all other signals of meaning share. Which heads there are, what they
were trained on and from which probability on they match stands in the text pack: see [heads](packs.md#heads).

Every text that `over` names is judged whole, in overlapping windows of what the model can read at once. With
`aggregate: max` the window with the highest probability decides, so that harmless text around a bad passage does not
hide it; with `mean` a label has to hold for the texts as a whole, each window counting by its length. The score is the
probability of the likeliest of the labels in `any`, calibrated where the pack is. Texts are read without invisible
characters and with compatibility forms, such as full-width letters, replaced.

What it can't see: what the model was not trained to tell; a passage that is cut by the border of two windows and longer
than their overlap; text inside images. Probabilities of a pack without a calibrated temperature are surer than they
have reason to be. What labels each token serves `pii`, not this. Where another server runs the text encoder, there are
no heads.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from router.inference.classifier import Labelling
from router.inference.executor import Overloaded
from router.inference.head import TextHead
from router.request.view import RequestView
from router.signals.base import Cost, Evidence, Observation, SignalName, failed, observed, shed
from router.signals.heads import required_head
from router.signals.resources import Resources, SignalSetupError
from router.signals.settings import Phrase, SignalSettings, Threshold
from router.signals.texts import WHICH_TEXTS, Over, encodable, stretches, texts_over, visible

MAX_EVIDENCE: Final = 8
"""Windows that are cited, those with the highest probabilities first."""

NOT_A_NUMBER: Final = "no number"


THRESHOLD: Final = 0.5
"""For a pack, where the policy names none."""

AGGREGATE: Final[Literal["max", "mean"]] = "max"
"""For a pack, where the policy says nothing."""


class ClassifierSettings(SignalSettings):
    """Settings of a `classifier` signal."""

    pack: Phrase | None = Field(None, description="The pack that judges, by path or by name; or give `head`.")
    head: Phrase | None = Field(None, description="The head of the text encoder's pack that judges; or give `pack`.")
    any: tuple[Phrase, ...] = Field(
        (),
        description="Labels of the pack or head; one that holds is enough. May be left out for a head with one label.",
    )
    threshold: Threshold | None = Field(
        None,
        description=f"Probability from which on it matches. Not given: the head's own; {THRESHOLD} for a pack.",
    )
    aggregate: Literal["max", "mean"] | None = Field(
        None,
        description="max: one window is enough; mean: the mean over all windows of all texts, each by its length. Not "
        "given: as the head's pack says; max for a pack.",
    )
    over: Over = Field(
        "latest",
        description=WHICH_TEXTS,
    )

    @property
    def classifier_packs(self) -> tuple[str, ...]:
        """The one that judges."""
        return () if self.pack is None else (self.pack,)

    @property
    def heads(self) -> tuple[str, ...]:
        """The one that judges."""
        return () if self.head is None else (self.head,)

    @property
    def possible_labels(self) -> tuple[str, ...] | None:
        """Those that the policy asks for."""
        return self.any or None

    @model_validator(mode="after")
    def _holds_together(self) -> ClassifierSettings:
        if (self.pack is None) == (self.head is None):
            raise ValueError("one of pack and head judges; name one of them")
        if self.pack is not None and not self.any:
            raise ValueError("any is needed: the labels of the pack that count")
        return self


class JudgedWindow(NamedTuple):
    """A window of a text: characters (None where rewriting has moved them), how many, and each label's probability."""

    span: tuple[int, int] | None
    length: int
    probabilities: tuple[float, ...]


class LabelJudge:
    """One classifier or head, asked for some of its labels."""

    def __init__(
        self,
        classifier: Labelling,
        labels: Sequence[str],
        alike: Callable[[str, str], Awaitable[bool]] | None = None,
    ) -> None:
        """`alike` tells whether two texts are one to the classifier; raises Overloaded."""
        self.labels = tuple(labels)
        self._alike = alike
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
        if not exact and self._alike is not None and await self._alike(plain := encodable(text), shown):
            # What others ask about is the text as it came: one reading of it then serves all.
            exact, shown = True, plain
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
    _require_labels(name, f"the pack {pack!r}", classifier, labels)
    return LabelJudge(classifier, labels)


def judge_by_head(name: SignalName, head: TextHead, labels: Sequence[str] = ()) -> LabelJudge:
    """The judge for labels of this head, by default its only one; SignalSetupError as for a pack."""
    whose = f"the head {head.part.name!r}"
    if head.level == "token":
        raise SignalSetupError(f"{name}: {whose} labels each token, not a text; it serves `pii`")
    if not labels and len(head.labels) > 1:
        raise SignalSetupError(f"{name}: {whose} has several labels, name some under `any`: {', '.join(head.labels)}")
    _require_labels(name, whose, head, labels)
    return LabelJudge(head, labels or head.labels, head.reads_alike)


def _require_labels(name: SignalName, whose: str, judges: Labelling, labels: Sequence[str]) -> None:
    if unknown := [label for label in labels if label not in judges.labels]:
        raise SignalSetupError(
            f"{name}: {whose} has no label {', '.join(map(repr, unknown))}; known are {', '.join(judges.labels)}"
        )


class ClassifierSignal:
    """How likely the likeliest of the labels is, in the worst window or in all."""

    cost = Cost.TEXT_MODEL

    def __init__(
        self, name: SignalName, judge: LabelJudge, threshold: float, aggregate: Literal["max", "mean"], over: Over
    ) -> None:
        self.name = name
        self._judge = judge
        self._threshold = threshold
        self._aggregate = aggregate
        self._over = over

    async def prepare(self) -> None:
        """Nothing."""

    async def observe(self, view: RequestView) -> Observation:
        """Windows that reach the threshold are the evidence, else the best one; nothing to read is no match."""
        pack = self._judge.pack
        judged: list[tuple[str, JudgedWindow]] = []
        try:
            for text in texts_over(view, self._over):
                judged += [(text.pointer, window) for window in await self._judge.judge(text.text)]
        except Overloaded:
            return shed(pack)
        if not judged:
            return observed(False, 0.0, pack=pack)
        rows = np.array([window.probabilities for _, window in judged])
        if not np.isfinite(rows).all():
            return failed(NOT_A_NUMBER, pack=pack)
        lengths = [max(window.length, 1) for _, window in judged]
        scores = rows.max(axis=0) if self._aggregate == "max" else np.average(rows, axis=0, weights=lengths)
        best = int(scores.argmax())
        score = float(np.clip(scores[best], 0.0, 1.0))
        evidence = self._evidence(judged, best)
        label = self._judge.labels[best]
        return observed(score >= self._threshold, score, label=label, evidence=evidence, pack=pack)

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
        over = [evidence for evidence in cited if (evidence.score or 0.0) >= self._threshold]
        return tuple(over or cited[:1])


def build_classifier(name: SignalName, settings: ClassifierSettings, resources: Resources) -> ClassifierSignal:
    """The signal on its pack or head; SignalSetupError where that can't answer."""
    threshold, aggregate = THRESHOLD, AGGREGATE
    if settings.head is not None:
        head = required_head(name, settings.head, resources)
        judge = judge_by_head(name, head, settings.any)
        threshold, aggregate = head.part.threshold, head.part.windows
    else:
        judge = open_judge(name, settings.pack or "", settings.any, resources)
    if settings.threshold is not None:
        threshold = settings.threshold
    return ClassifierSignal(name, judge, threshold, settings.aggregate or aggregate, settings.over)
