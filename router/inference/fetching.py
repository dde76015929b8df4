"""Images behind URLs, for whoever looks at images: fetched when the first asks, once a request, within bounds.

An image that nobody looks at is never fetched. What may be fetched, and how, is `remote_http.py`'s. Nothing is kept
beyond the request, since what a URL leads to may change.
"""

from __future__ import annotations

import asyncio
import importlib
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from router.inference.executor import Overloaded
from router.request.errors import ImageError
from router.request.remote_url import RemoteImages
from router.request.view import ImagePart


class FetchingUnavailableError(Exception):
    """No image can be fetched on this machine; the message says what to install."""


@dataclass(slots=True)
class _Flight:
    task: asyncio.Task[ImagePart]
    asked_for: weakref.ref[ImagePart]
    askers: int = field(default=0)


class ImageFetcher:
    """`get` brings the bytes behind a URL or raises ImageError. Belongs to one event loop."""

    def __init__(
        self, rules: RemoteImages, get: Callable[[str], Awaitable[bytes]], close: Callable[[], None] = lambda: None
    ) -> None:
        self._rules = rules
        self._get = get
        self._slots = asyncio.Semaphore(rules.concurrency)
        self._waiting = 0
        self._flights: dict[int, _Flight] = {}
        self.close = close

    async def inline(self, image: ImagePart) -> ImagePart:
        """The image with its bytes, or as malformed with the reason; any that is no URL comes back as it is.

        All who ask for the same part get the same answer, however the URL's content changes meanwhile. When all who
        asked have been cancelled, so is the fetch. Raises Overloaded when more fetches wait than may wait.
        """
        if image.status != "not_fetched" or not image.url:
            return image
        flight = self._flights.get(id(image)) or self._start(image)
        flight.askers += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.askers -= 1
            if flight.askers == 0 and not flight.task.done():
                self._flights.pop(id(image), None)
                flight.task.cancel()

    def _start(self, image: ImagePart) -> _Flight:
        if self._slots.locked() and self._waiting >= self._rules.waiting:
            raise Overloaded(f"{self._waiting} fetches wait already")
        key = id(image)

        def forget(gone: weakref.ref[ImagePart]) -> None:
            # By then another part may live at the address.
            if (flight := self._flights.get(key)) is not None and flight.asked_for is gone:
                del self._flights[key]

        # The task keeps the part alive while it runs and must not after, or no part would ever go: what went wrong is
        # therefore an answer, since an exception would hold on to its frames.
        task = asyncio.create_task(self._fetched(image))
        flight = self._flights[key] = _Flight(task, weakref.ref(image, forget))
        return flight

    async def _fetched(self, image: ImagePart) -> ImagePart:
        try:
            async with asyncio.timeout(self._rules.timeout):
                data = await self._in_turn(image.url)
        except TimeoutError:
            return replace(image, status="malformed", url="", reason="not fetched: timed out")
        except ImageError as error:
            return replace(image, status="malformed", url="", reason=error.reason)
        return replace(image, status="inline", url="", data=data)

    async def _in_turn(self, url: str) -> bytes:
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            return await self._get(url)
        finally:
            self._slots.release()


async def present(image: ImagePart, fetcher: ImageFetcher | None) -> ImagePart:
    """The image with its bytes there. Raises ImageError for what is not there, Overloaded."""
    if fetcher is not None:
        image = await fetcher.inline(image)
    if image.status == "not_fetched":
        raise ImageError("not fetched")
    if image.status == "malformed":
        raise ImageError(image.reason or "malformed")
    return image


def open_fetcher(rules: RemoteImages) -> ImageFetcher:
    """A fetcher for these rules; raises FetchingUnavailableError."""
    try:
        remote_http = importlib.import_module("router.inference.remote_http")
    except ModuleNotFoundError as error:
        message = 'remote_images needs aiohttp: pip install "pointsman[remote-images]"'
        raise FetchingUnavailableError(message) from error
    http = remote_http.RemoteHttp(rules)
    return ImageFetcher(rules, http.get, http.close)
