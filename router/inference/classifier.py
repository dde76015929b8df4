"""The classifier that signals ask: texts in, probabilities of labels out, each window judged once.

It joins one classifier pack with the executor and the cache, and decides nothing: which label counts, and from which
probability on, is a signal's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from router.inference.batching import WindowBatcher
from router.inference.cache import EmbeddingCache
from router.inference.classifier_model import ClassifierModel
from router.inference.executor import InferenceExecutor
from router.inference.tagging import NoNumberError, TaggedSpan, scheme_of, spans_of_windows
from router.inference.tokens import Window
from router.inference.windows import WindowReader
from router.packs.store import Pack

__all__ = ["Classifier", "Labelling", "NoNumberError", "TaggedSpan", "WindowProbabilities"]


@dataclass(frozen=True, slots=True)
class WindowProbabilities:
    """A text window by window: half-open character ranges `spans`, and `probabilities` (w, labels) float64 in 0-1."""

    spans: tuple[tuple[int, int], ...]
    probabilities: NDArray[np.float64] = field(repr=False)


class Labelling(Protocol):
    """What can be asked for labels: a classifier pack, or a head of the text encoder.

    `level` says which method is its own: `classify_windows` for `text`, `tag` for `token`. Both raise Overloaded.
    """

    @property
    def pack(self) -> str:
        """Digest of the pack that judges."""
        ...

    @property
    def level(self) -> Literal["text", "token"]:
        """What gets a label: a text, or each token of it."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """What an answer can be."""
        ...

    async def classify_windows(self, text: str) -> WindowProbabilities:
        """Every window of the text."""
        ...

    async def tag(self, text: str) -> tuple[TaggedSpan, ...]:
        """Labelled stretches of the whole text in order; raises NoNumberError."""
        ...


class Classifier(WindowReader[ClassifierModel, NDArray[np.float32]]):
    """One classifier pack. Belongs to one event loop; methods raise Overloaded when more work waits than may wait.

    `level` says which method is its own: `classify_windows` for `text`, `tag` for `token`.
    """

    def __init__(self, pack: Pack, model: ClassifierModel, executor: InferenceExecutor, cache: EmbeddingCache) -> None:
        super().__init__(pack, model, WindowBatcher(executor, self._forward), executor, cache)
        self._scheme = scheme_of(model.tower.labels)

    @property
    def level(self) -> Literal["text", "token"]:
        """What gets a label: a text, or each token of it."""
        return self.model.tower.level

    @property
    def labels(self) -> tuple[str, ...]:
        """What an answer can be: the pack's labels; of a token classifier without `O` and without chunk prefixes."""
        return self.model.tower.labels if self.level == "text" else self._scheme.names

    async def classify_windows(self, text: str) -> WindowProbabilities:
        """Every window of the text; a sequence classifier's. Windows overlap and all together cover the text."""
        tokens = await self.tokens(text)
        return WindowProbabilities(tokens.spans, np.stack(await self.rows(text, tokens)).astype(np.float64))

    async def tag(self, text: str) -> tuple[TaggedSpan, ...]:
        """Labelled stretches of the whole text in order, windows merged; a token classifier's.

        Raises NoNumberError.
        """
        tokens = await self.tokens(text)
        rows = await self.rows(text, tokens)
        bodies = [self.model.body(row, tokens, index) for index, row in enumerate(rows)]
        return await self._executor.run(spans_of_windows, text, tokens, bodies, self._scheme)

    def _forward(self, windows: Sequence[Window]) -> list[NDArray[np.float32]]:
        """Each window's own probabilities, without the padding, and not as a part of a larger array that it would keep
        in memory."""
        rows = []
        for window, found in zip(windows, self.model.probabilities([window.ids for window in windows]), strict=True):
            own = found if self.level == "text" else found[: len(window)]
            row = own.astype(np.float32)
            row.flags.writeable = False
            rows.append(row)
        return rows
