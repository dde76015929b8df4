"""One head of the text encoder, asked as a classifier pack is: texts in, probabilities of labels out.

What it answers with was computed in the pass that embedded the same window. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from router.inference.classifier import WindowProbabilities
from router.inference.executor import InferenceExecutor
from router.inference.matryoshka import shorten
from router.inference.tagging import TaggedSpan, scheme_of, spans_of_windows
from router.inference.text import TextEncoder
from router.packs.heads import Head as HeadPart


class TextHead:
    """A head by its name. Belongs to one event loop; methods raise Overloaded when more work waits than may wait."""

    def __init__(self, encoder: TextEncoder, part: HeadPart, executor: InferenceExecutor) -> None:
        """`part` is one of the heads that the encoder's model has."""
        self.part = part
        self._encoder = encoder
        self._executor = executor
        self._scheme = scheme_of(part.labels)

    @property
    def pack(self) -> str:
        """Digest of the text encoder's pack."""
        return self._encoder.pack

    @property
    def level(self) -> Literal["text", "token"]:
        """What gets a label: a text, or each token of it."""
        return self.part.level

    @property
    def labels(self) -> tuple[str, ...]:
        """What an answer can be: the head's labels; of one for tokens without `O` and without chunk prefixes."""
        return self.part.labels if self.level == "text" else self._scheme.names

    async def reads_alike(self, one: str, other: str) -> bool:
        """Whether both texts are the same tokens."""
        first, second = await self._encoder.tokens(one), await self._encoder.tokens(other)
        return np.array_equal(first.ids, second.ids)

    async def classify_windows(self, text: str) -> WindowProbabilities:
        """Every window of the text; a head's that judges texts. Windows overlap and all together cover the text."""
        tokens = await self._encoder.tokens(text)
        rows = [row.answers[self.part.name] for row in await self._encoder.rows(text, tokens)]
        return WindowProbabilities(tokens.spans, np.stack(rows).astype(np.float64))

    async def read_first(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Of each text's first window the unit vector (n, d) and the labels' probabilities (n, labels), from one pass.

        A head's that judges texts.
        """
        rows = await self._encoder.judged(texts)
        vectors = [shorten(row.embedding, self._encoder.dimension) for row in rows]
        told = [row.answers[self.part.name] for row in rows]
        return np.stack(vectors), np.stack(told).astype(np.float64)

    async def tag(self, text: str) -> tuple[TaggedSpan, ...]:
        """Labelled stretches of the whole text in order, windows merged; a head's that judges tokens.

        Raises NoNumberError.
        """
        tokens = await self._encoder.tokens(text)
        rows = [row.answers[self.part.name] for row in await self._encoder.rows(text, tokens)]
        bodies = [self._encoder.model.body(row, tokens, index) for index, row in enumerate(rows)]
        return await self._executor.run(spans_of_windows, text, tokens, bodies, self._scheme)
