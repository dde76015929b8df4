"""The text encoder that signals ask: texts in, unit vectors out, each piece of content encoded once.

It joins the text tower, and what heads read off it, with the executor and the cache, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from router.inference.batching import WindowBatcher
from router.inference.cache import EmbeddingCache
from router.inference.executor import InferenceExecutor
from router.inference.heads_model import Judged
from router.inference.matryoshka import shorten
from router.inference.remote.session import RemoteSession
from router.inference.text_model import TextModel
from router.inference.tokens import Window
from router.inference.windows import WindowReader, together
from router.packs.store import Pack


@dataclass(frozen=True, slots=True)
class WindowEmbeddings:
    """A text window by window: `spans[i]` is a half-open character range, `embeddings` is (w, d) float32."""

    spans: tuple[tuple[int, int], ...]
    embeddings: NDArray[np.float32] = field(repr=False)


class TextEncoder(WindowReader[TextModel, Judged]):
    """One text tower, and the heads that its model has. Belongs to one event loop.

    Its arrays are shared with the cache and read-only.

    Every method raises Overloaded when there is more work than may wait. A text's windows and a call's texts are worked
    off a few at a time, so that one request alone cannot fill the queue; ask for text after text, not for all at once.
    """

    def __init__(
        self,
        pack: Pack,
        model: TextModel,
        executor: InferenceExecutor,
        cache: EmbeddingCache,
        dimension: int | None = None,
        remote: RemoteSession | None = None,
    ) -> None:
        """`dimension` is less than the tower's where its matryoshka lists it. The model is run here, or by `remote`."""
        super().__init__(pack, model, _batcher(model, executor, remote), executor, cache)
        self.remote = remote
        self.dimension = dimension or model.tower.dimension

    @property
    def space(self) -> str:
        """Name of the embedding space."""
        return self.source.manifest.space

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors (n, d) float32, each of its text's first window: what the reference gives when it truncates."""
        rows = [shorten(row.embedding, self.dimension) for row in await self.judged(texts)]
        return np.stack(rows) if rows else np.empty((0, self.dimension), dtype=np.float32)

    async def judged(self, texts: Sequence[str]) -> list[Judged]:
        """Of each text's first window the tower's whole unit vector, and what the heads say."""
        rows: list[Judged] = []
        at_a_time = self._batcher.at_once_short
        for start in range(0, len(texts), at_a_time):
            rows += await together([self._judged_first(text) for text in texts[start : start + at_a_time]])
        return rows

    async def embed_windows(self, text: str) -> WindowEmbeddings:
        """Every window of the text with its characters; neighbours overlap and all together cover the text."""
        tokens = await self.tokens(text)
        rows = [shorten(row.embedding, self.dimension) for row in await self.rows(text, tokens)]
        return WindowEmbeddings(tokens.spans, np.stack(rows))

    async def count_tokens(self, text: str) -> int:
        """How many tokens the text has, special ones not counted."""
        return len((await self.tokens(text)).ids)

    async def _judged_first(self, text: str) -> Judged:
        return await self.row(text, await self.tokens(text), 0)


def _batcher(
    model: TextModel, executor: InferenceExecutor, remote: RemoteSession | None
) -> WindowBatcher[Window, Judged]:
    if remote is None:
        return WindowBatcher(executor, model.judge)
    session = remote

    async def forward(windows: Sequence[Window]) -> list[Judged]:
        request = session.request(model.feed([window.ids for window in windows]))
        return [Judged(row) for row in await session.rows(request, len(windows))]

    return WindowBatcher(session.lane, forward, session.batch)
