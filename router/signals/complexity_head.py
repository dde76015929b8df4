"""The `complexity` signal by a head of the text encoder: how likely it is that the request is a hard one.

The margin is the probability of hard minus that of easy, so that conditions read it as they read that of examples.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from router.inference.executor import Overloaded
from router.inference.head import TextHead
from router.request.view import RequestView
from router.signals.anchors import NOT_A_NUMBER, unit_interval
from router.signals.base import Cost, Evidence, Observation, SignalName, failed, observed, shed
from router.signals.heads import HeadClasses
from router.signals.texts import Over, texts_over

LABELS: Final = ("hard", "easy")


class HeadComplexitySignal:
    """The hardest window of both ends of each text, or their mean, as the head's pack says."""

    cost = Cost.TEXT_MODEL

    def __init__(self, name: SignalName, head: TextHead, threshold: float | None, over: Over) -> None:
        """`threshold` is a margin; None: the head's own."""
        self.name = name
        self._classes = HeadClasses(head, LABELS)
        self._windows = head.part.windows
        self._least = head.part.threshold if threshold is None else (1.0 + threshold) / 2.0
        self._over: Over = over

    async def prepare(self) -> None:
        """Nothing: the head was trained."""

    async def observe(self, view: RequestView) -> Observation:
        """A request without text has the margin 0 and does not match."""
        pack = self._classes.pack
        try:
            judged = await self._classes.judge(texts_over(view, self._over))
        except Overloaded:
            return shed(pack)
        if not judged:
            return observed(False, 0.5, value=0.0, pack=pack)
        hard = np.array([window.shares[0] for window in judged])
        if not np.isfinite(hard).all():
            return failed(NOT_A_NUMBER, pack=pack)
        most = judged[int(hard.argmax())]
        lengths = [max(window.span[1] - window.span[0], 1) for window in judged]
        score = unit_interval(float(hard.max() if self._windows == "max" else np.average(hard, weights=lengths)))
        label = LABELS[0] if score > 0.5 else LABELS[1]
        evidence = Evidence(most.pointer, label=label, score=unit_interval(float(hard.max())), span=most.span)
        matched = score >= self._least
        return observed(matched, score, value=2.0 * score - 1.0, label=label, evidence=(evidence,), pack=pack)
