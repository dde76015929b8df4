"""Heads of the text encoder for the families that ask one: where it comes from, and as what tells classes apart.

Which family asks which head, and from which probability on it matches, is the family's business.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from router.inference.classifier import Labelling
from router.inference.head import TextHead
from router.request.view import TextSpan
from router.signals.anchors import Judged, ends
from router.signals.base import SignalName
from router.signals.resources import Resources, SignalSetupError
from router.signals.texts import encodable

WHERE_THERE_IS_ONE: Final = "Not given: head where the text pack has one, else"
"""How a family's `method` begins to say what happens by itself."""


def usual_head(head: str, resources: Resources) -> TextHead | None:
    """The head, if the text encoder has it."""
    return resources.heads.get(head)


def required_head(name: SignalName, head: str, resources: Resources) -> TextHead:
    """The head; SignalSetupError that says why there is none."""
    if (found := resources.heads.get(head)) is not None:
        return found
    text = resources.text
    if text is None:
        raise SignalSetupError(f"{name}: needs a text encoder with the head {head!r}; name one under `encoders`")
    if text.remote is not None:
        raise SignalSetupError(
            f"{name}: the head {head!r} reads layers of the text encoder, which do not come from the server that runs "
            "it; have the encoder run here, or choose another method"
        )
    part = text.source.manifest.heads
    known = ", ".join(each.name for each in part.heads) if part is not None else "none"
    raise SignalSetupError(
        f"{name}: the text pack {text.source.manifest.name!r} has no head {head!r}; its heads: {known}"
    )


class HeadClasses:
    """Classes of text that a head tells apart. With two `labels` for a head of one, the second is its opposite."""

    def __init__(self, head: Labelling, labels: tuple[str, ...] | None = None) -> None:
        self.labels = labels or head.labels
        self._head = head

    @property
    def pack(self) -> str:
        """Digest of the text encoder's pack."""
        return self._head.pack

    async def prepare(self) -> None:
        """Nothing: the head was trained."""

    async def judge(self, texts: Iterable[TextSpan]) -> list[Judged]:
        """Both ends of each text, window by window; raises Overloaded."""
        found: list[Judged] = []
        for text in texts:
            for offset, piece in ends(text.text):
                windows = await self._head.classify_windows(encodable(piece))
                rows = windows.probabilities
                if len(self._head.labels) == 1:
                    rows = np.concatenate([rows, 1.0 - rows], axis=1)
                found += [
                    Judged(text.pointer, (start + offset, end + offset), row)
                    for (start, end), row in zip(windows.spans, rows, strict=True)
                ]
        return found
