"""The reader of text inside images that signals ask: an image in, its lines and where they stand out.

It joins the models of `reading_model.py` with the executor and the cache: decoding and finding lines is one job, each
line another, so that a request that is out of time stops between them. It decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from router.inference.cache import CacheKey, EmbeddingCache
from router.inference.executor import InferenceExecutor
from router.inference.fetching import ImageFetcher, present
from router.inference.reading_model import LineModel, ReaderUnavailableError
from router.inference.windows import together
from router.request.errors import ImageError
from router.request.images import ImageLimits
from router.request.view import ImagePart

__all__ = ["ImageReader", "ReadLine", "ReaderUnavailableError", "open_reader"]

LEAST_SCORE: Final = 0.5
"""What is read with a lower score is texture, or letters that nobody can read: RapidOCR's own bound."""

COSTLY: Final = frozenset({"too much text", "truncated", "corrupt", "hidden by transparency"})
"""Why an image is refused that was worked on for long, and will be refused whatever a policy's limits are."""


@dataclass(frozen=True, slots=True)
class ReadLine:
    """A line of text in an image. `box` is (left, top, right, bottom) as shares of width and height, 0-1."""

    text: str = field(repr=False)
    box: tuple[float, float, float, float]
    score: float


@dataclass(frozen=True, slots=True)
class _Page:
    """What was read, or why it cannot be: who sends an image that costs much for nothing sends it again."""

    lines: tuple[ReadLine, ...]
    refused: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes in memory; a line's numbers and objects weigh about 300."""
        return sum(300 + 4 * len(line.text) for line in self.lines)


class ImageReader:
    """Reads text in images: letters of Latin, Chinese and Japanese, horizontal, upright or upside down, or turned by a
    quarter. Belongs to one event loop."""

    def __init__(
        self,
        model: LineModel,
        executor: InferenceExecutor,
        cache: EmbeddingCache,
        fetcher: ImageFetcher | None = None,
    ) -> None:
        """Without a `fetcher` no URL is followed."""
        self.model = model
        self._executor = executor
        self._cache = cache
        self._fetcher = fetcher

    async def read(self, image: ImagePart) -> tuple[ReadLine, ...]:
        """Lines from top to bottom, each image's content read once.

        Raises ImageError for what is not there, cannot be decoded or holds more text than is read, Overloaded when more
        work waits than may wait.
        """
        image = await present(image, self._fetcher)
        key = CacheKey(self.model.version, "lines", image.digest)
        page = await self._cache.get(key, lambda: self._read(image.data))
        if page.refused:
            raise ImageError(page.refused)
        return page.lines

    async def _read(self, data: bytes) -> _Page:
        try:
            strips = await self._executor.run(self.model.find, data)
        except ImageError as error:
            if error.reason not in COSTLY:
                raise
            return _Page((), error.reason)
        lines: list[ReadLine] = []
        for start in range(0, len(strips), self._executor.threads):
            some = strips[start : start + self._executor.threads]
            found = await together([self._executor.run(self.model.read, strip) for strip in some])
            for strip, (text, score) in zip(some, found, strict=True):
                if score >= LEAST_SCORE and text.strip():
                    lines.append(ReadLine(text.strip(), strip.box, min(score, 1.0)))
        return _Page(tuple(lines))


def open_reader(
    executor: InferenceExecutor, cache: EmbeddingCache, limits: ImageLimits, fetcher: ImageFetcher | None = None
) -> ImageReader:
    """A reader with its models open; blocks for about a second. Raises ReaderUnavailableError."""
    return ImageReader(LineModel(limits), executor, cache, fetcher)
