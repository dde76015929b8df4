"""One answer from how a request's texts are shared among classes: for families that tell kinds of request apart.

Knows neither what the classes are nor how they are told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np

from router.inference.executor import Overloaded
from router.request.view import RequestView, TextSpan
from router.signals.anchors import NOT_A_NUMBER, Classes, unit_interval
from router.signals.base import Cost, Evidence, Observation, SignalName, failed, observed, shed


class ClassesSignal:
    """Which class the texts belong to, and whether it is a wanted one.

    `texts` picks what is read; where that is nothing, the signal does not match. `classes` may be told apart by
    anything.
    """

    cost = Cost.TEXT_MODEL

    def __init__(
        self,
        name: SignalName,
        classes: Classes,
        wanted: Collection[str],
        threshold: float,
        texts: Callable[[RequestView], Sequence[TextSpan]],
    ) -> None:
        self.name = name
        self._classes = classes
        self._wanted = wanted
        self._threshold = threshold
        self._texts = texts

    async def prepare(self) -> None:
        """Compute what tells the classes apart."""
        await self._classes.prepare()

    async def observe(self, view: RequestView) -> Observation:
        """The likeliest class."""
        return await classify(self._classes, self._texts(view), self._wanted, self._threshold)


async def classify(
    classes: Classes, texts: Iterable[TextSpan], wanted: Collection[str], threshold: float
) -> Observation:
    """The likeliest class of all texts together is the label; matched if it is wanted and its share is large enough.

    The share of a class is its mean over all windows, each counting by its length. The score is the largest share of a
    wanted class, also where the label is another one. Evidence is the window that speaks most for the label.
    """
    try:
        judged = await classes.judge(texts)
    except Overloaded:
        return shed(classes.pack)
    if not judged:
        return observed(False, 0.0, pack=classes.pack)
    rows = np.stack([window.shares for window in judged])
    if not np.isfinite(rows).all():
        return failed(NOT_A_NUMBER, (Evidence(judged[0].pointer, detail=NOT_A_NUMBER),), classes.pack)
    lengths = [max(window.span[1] - window.span[0], 1) for window in judged]
    shares = np.average(rows, axis=0, weights=lengths)
    winner = int(shares.argmax())
    label = classes.labels[winner]
    score = max(float(share) for name, share in zip(classes.labels, shares, strict=True) if name in wanted)
    matched = label in wanted and score >= threshold
    most = int(rows[:, winner].argmax())
    evidence = Evidence(
        judged[most].pointer, label=label, score=unit_interval(float(rows[most, winner])), span=judged[most].span
    )
    return observed(matched, unit_interval(score), label=label, evidence=(evidence,), pack=classes.pack)
