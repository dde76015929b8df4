"""The vision encoder that signals ask: an image part in, a unit vector out, the same bytes encoded once.

It joins the vision tower with the executor and the cache. It never decodes on the event loop, and decides nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from router.inference.cache import CacheKey, EmbeddingCache
from router.inference.executor import InferenceExecutor
from router.inference.fetching import ImageFetcher, present
from router.inference.matryoshka import shorten
from router.inference.remote.session import RemoteSession
from router.inference.vision_model import VisionModel
from router.packs.store import Pack
from router.request.view import ImagePart


class VisionEncoder:
    """One vision tower. Its arrays are shared with the cache and read-only. Belongs to one event loop."""

    def __init__(
        self,
        pack: Pack,
        model: VisionModel,
        executor: InferenceExecutor,
        cache: EmbeddingCache,
        dimension: int | None = None,
        fetcher: ImageFetcher | None = None,
        remote: RemoteSession | None = None,
    ) -> None:
        """`dimension` is less than the tower's where its matryoshka lists it. Only a `fetcher` follows URLs. The model
        is run here, or by `remote`."""
        self.remote = remote
        self.source = pack
        self.model = model
        self.dimension = dimension or model.tower.dimension
        self._executor = executor
        self._cache = cache
        self._fetcher = fetcher

    @property
    def pack(self) -> str:
        """Digest of the pack."""
        return self.source.digest

    @property
    def space(self) -> str:
        """Name of the embedding space."""
        return self.source.manifest.space

    @property
    def logit_scale(self) -> float:
        """A pair's probability is sigmoid(logit_scale * cosine + logit_bias)."""
        return self.model.tower.logit_scale

    @property
    def logit_bias(self) -> float:
        """See `logit_scale`."""
        return self.model.tower.logit_bias

    async def embed(self, image: ImagePart) -> NDArray[np.float32]:
        """The image's unit vector (d,) float32.

        Raises ImageError for what is not there or cannot be decoded, Overloaded when more work waits than may wait, be
        it for a model or for a fetch.
        """
        image = await present(image, self._fetcher)
        key = CacheKey(self.pack, "image", image.digest)
        row = await self._cache.get(key, lambda: self._encode(image.data))
        return shorten(row, self.dimension)

    async def _encode(self, data: bytes) -> NDArray[np.float32]:
        if self.remote is None:
            return await self._executor.run(self.model.encode, data)
        request = await self._executor.run(self._request, self.remote, data)
        row: NDArray[np.float32] = (await self.remote.lane.ask(self.remote.rows, request, 1))[0]
        return row

    def _request(self, remote: RemoteSession, data: bytes) -> bytes:
        """In a thread: an image decoded, resized, normalised, and written down for the way."""
        return remote.request(self.model.feed(self.model.preprocess(data)[None]))
