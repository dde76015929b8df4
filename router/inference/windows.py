"""A model of texts behind executor and cache: tokens and each window's row computed once, askers sharing the work.

What a row means is the model's business; `text.py` and `classifier.py` build on this. It never blocks the event loop
for more than a short text's tokenising.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine, Sequence
from typing import Any, Generic, TypeVar

from router.inference.batching import WindowBatcher
from router.inference.cache import CacheKey, EmbeddingCache, Sized
from router.inference.executor import InferenceExecutor
from router.inference.text_model import WindowModel
from router.inference.tokens import Tokens, Window
from router.packs.store import Pack

T = TypeVar("T")
ModelT = TypeVar("ModelT", bound=WindowModel)
RowT = TypeVar("RowT", bound=Sized)

# Tokenised in well under a millisecond, CJK included: not worth a thread or a place in the cache.
INLINE_CHARACTERS = 256

# Windows of a text that are looked up before others on the event loop get their turn, for each of the model's threads.
AT_A_TIME = 64


class WindowReader(Generic[ModelT, RowT]):
    """One model that reads texts window by window. Its arrays are shared with the cache. Belongs to one event loop."""

    def __init__(
        self,
        pack: Pack,
        model: ModelT,
        batcher: WindowBatcher[Window, RowT],
        executor: InferenceExecutor,
        cache: EmbeddingCache,
    ) -> None:
        """The `batcher` asks the model, here or elsewhere; the `executor` tokenises."""
        self.source = pack
        self.model = model
        self._executor = executor
        self._cache = cache
        self._batcher = batcher

    @property
    def pack(self) -> str:
        """Digest of the pack."""
        return self.source.digest

    async def tokens(self, text: str) -> Tokens:
        """The text's tokens and windows; raises Overloaded."""
        if len(text) <= INLINE_CHARACTERS:
            return self.model.tokenise(text)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        return await self._cache.get(CacheKey(self.pack, "tokens", digest), lambda: self._tokenise(text))

    async def row(self, text: str, tokens: Tokens, index: int) -> RowT:
        """What the model makes of one window of the text; raises Overloaded."""
        window = self.model.placed(text, tokens, index)
        key = CacheKey(self.pack, "window", window.digest)
        return await self._cache.get(key, lambda: self._batcher.embed(window))

    async def rows(self, text: str, tokens: Tokens) -> list[RowT]:
        """A row a window, a few at a time, so that one text alone cannot fill the queue; raises Overloaded."""
        rows: list[RowT] = []
        width = self._batcher.at_once
        for start in range(0, len(tokens.spans), width):
            if start and start % (width * AT_A_TIME) == 0:
                # What is cached is there at once, and takes no turn of its own.
                await asyncio.sleep(0)
            indices = range(start, min(start + width, len(tokens.spans)))
            rows += await together([self.row(text, tokens, index) for index in indices])
        return rows

    async def _tokenise(self, text: str) -> Tokens:
        pieces = [await self._executor.run(self.model.tokenise_piece, text, 0)]
        while pieces[-1].end < len(text):
            pieces.append(await self._executor.run(self.model.tokenise_piece, text, pieces[-1].end))
        return self.model.join(pieces) if len(pieces) == 1 else await self._executor.run(self.model.join, pieces)


async def together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results; when one fails or the caller is cancelled, the others are cancelled too."""
    if len(work) == 1:
        return [await work[0]]
    tasks = [asyncio.create_task(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
