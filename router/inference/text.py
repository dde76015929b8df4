"""The text encoder that signals ask: texts in, unit vectors out, each piece of content encoded once.

It joins the text tower with the executor and the cache. It never blocks the event loop for more than a short text's
tokenising, and decides nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from router.inference.batching import BATCH, WindowBatcher
from router.inference.cache import CacheKey, EmbeddingCache
from router.inference.executor import InferenceExecutor
from router.inference.matryoshka import shorten
from router.inference.text_model import TextModel, Tokens
from router.packs.store import Pack

T = TypeVar("T")

# Tokenised in well under a millisecond, CJK included: not worth a thread or a place in the cache.
INLINE_CHARACTERS = 256


@dataclass(frozen=True, slots=True)
class WindowEmbeddings:
    """A text window by window: `spans[i]` is a half-open character range, `embeddings` is (w, d) float32."""

    spans: tuple[tuple[int, int], ...]
    embeddings: NDArray[np.float32] = field(repr=False)


class TextEncoder:
    """One text tower. Its arrays are shared with the cache and read-only. Belongs to one event loop.

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
    ) -> None:
        """`dimension` is less than the tower's where its matryoshka lists it."""
        self.source = pack
        self.model = model
        self.dimension = dimension or model.tower.dimension
        self._executor = executor
        self._cache = cache
        self._batcher = WindowBatcher(executor, model.forward)

    @property
    def pack(self) -> str:
        """Digest of the pack."""
        return self.source.digest

    @property
    def space(self) -> str:
        """Name of the embedding space."""
        return self.source.manifest.space

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors (n, d) float32, each of its text's first window: what the reference gives when it truncates."""
        rows: list[NDArray[np.float32]] = []
        at_a_time = BATCH * self._executor.threads
        for start in range(0, len(texts), at_a_time):
            rows += await _together([self._embed_first(text) for text in texts[start : start + at_a_time]])
        return np.stack(rows) if rows else np.empty((0, self.dimension), dtype=np.float32)

    async def embed_windows(self, text: str) -> WindowEmbeddings:
        """Every window of the text with its characters; neighbours overlap and all together cover the text."""
        tokens = await self._tokens(text)
        rows: list[NDArray[np.float32]] = []
        for start in range(0, len(tokens.spans), self._executor.threads):
            indices = range(start, min(start + self._executor.threads, len(tokens.spans)))
            rows += await _together([self._embed_window(tokens, index) for index in indices])
        return WindowEmbeddings(tokens.spans, np.stack(rows))

    async def count_tokens(self, text: str) -> int:
        """How many tokens the text has, special ones not counted."""
        return len((await self._tokens(text)).ids)

    async def _embed_first(self, text: str) -> NDArray[np.float32]:
        return await self._embed_window(await self._tokens(text), 0)

    async def _embed_window(self, tokens: Tokens, index: int) -> NDArray[np.float32]:
        window = self.model.window(tokens, index)
        key = CacheKey(self.pack, "window", hashlib.sha256(window.tobytes()).digest())
        row = await self._cache.get(key, lambda: self._batcher.embed(window))
        return shorten(row, self.dimension)

    async def _tokens(self, text: str) -> Tokens:
        if len(text) <= INLINE_CHARACTERS:
            return self.model.tokenise(text)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        return await self._cache.get(CacheKey(self.pack, "tokens", digest), lambda: self._tokenise(text))

    async def _tokenise(self, text: str) -> Tokens:
        pieces = [await self._executor.run(self.model.tokenise_piece, text, 0)]
        while pieces[-1].end < len(text):
            pieces.append(await self._executor.run(self.model.tokenise_piece, text, pieces[-1].end))
        return self.model.join(pieces) if len(pieces) == 1 else await self._executor.run(self.model.join, pieces)


async def _together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results; when one fails or the caller is cancelled, the others are cancelled too."""
    if len(work) == 1:
        return [await work[0]]
    tasks = [asyncio.create_task(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
