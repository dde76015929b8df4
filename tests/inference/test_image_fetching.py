from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import pytest

from router.inference.executor import Overloaded
from router.inference.fetching import ImageFetcher, present
from router.request.errors import ImageError
from router.request.remote_url import RemoteImages
from router.request.view import ImagePart

URL = "https://images.example.com/a.png"


def rules(concurrency: int = 8, waiting: int = 8, timeout: float = 60) -> RemoteImages:
    return RemoteImages(("images.example.com",), timeout=timeout, concurrency=concurrency, waiting=waiting)


def remote(pointer: str = "/messages/0/content/0", url: str = URL) -> ImagePart:
    return ImagePart(pointer, "not_fetched", url=url)


class Server:
    """What `get` reaches: counts its askers and answers when it is let."""

    def __init__(self, *answers: bytes | ImageError) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.cancelled = 0
        self.open = asyncio.Event()
        self.open.set()

    async def get(self, url: str) -> bytes:
        self.asked += 1
        answer = self.answers[min(self.asked, len(self.answers)) - 1]
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(answer, ImageError):
            raise ImageError(answer.reason)  # not itself: its frames would hold on to the image
        return answer


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0)
    pytest.fail("it never came to hold")


async def test_all_who_ask_for_one_image_get_one_answer_whatever_the_url_says_later() -> None:
    server = Server(b"first", b"second")
    fetcher = ImageFetcher(rules(), server.get)
    image = remote()
    one, two = await asyncio.gather(fetcher.inline(image), fetcher.inline(image))
    three = await fetcher.inline(image)
    assert one is two is three
    assert (one.status, one.data, one.pointer, one.url) == ("inline", b"first", image.pointer, "")
    assert server.asked == 1


async def test_another_request_for_the_same_url_asks_again() -> None:
    server = Server(b"first", b"second")
    fetcher = ImageFetcher(rules(), server.get)
    image, equal = remote(), remote()
    assert image == equal
    assert (await fetcher.inline(image)).data == b"first"
    assert (await fetcher.inline(equal)).data == b"second"


@pytest.mark.parametrize("answer", [b"bytes", ImageError("not fetched: server refused")])
async def test_nothing_is_kept_once_the_request_is_gone(answer: bytes | ImageError) -> None:
    fetcher = ImageFetcher(rules(), Server(answer).get)
    image = remote()
    await fetcher.inline(image)
    assert len(fetcher._flights) == 1
    del image
    gc.collect()
    assert fetcher._flights == {}


async def test_what_went_wrong_is_said_and_not_tried_again() -> None:
    server = Server(ImageError("not fetched: server refused"), b"too late")
    fetcher = ImageFetcher(rules(), server.get)
    image = remote()
    for _ in range(2):
        with pytest.raises(ImageError, match="server refused"):
            await present(image, fetcher)
    assert server.asked == 1


async def test_the_deadline_counts_the_wait_for_others() -> None:
    server = Server(b"x")
    server.open.clear()
    fetcher = ImageFetcher(rules(concurrency=1, timeout=0.05), server.get)
    results = await asyncio.gather(fetcher.inline(remote("/a")), fetcher.inline(remote("/b")))
    assert [found.reason for found in results] == ["not fetched: timed out"] * 2
    assert server.asked == server.cancelled == 1


async def test_no_more_than_allowed_are_fetched_and_wait() -> None:
    server = Server(b"x")
    server.open.clear()
    fetcher = ImageFetcher(rules(concurrency=2, waiting=1), server.get)
    images = [remote(f"/{i}") for i in range(4)]
    running = [asyncio.create_task(fetcher.inline(image)) for image in images[:3]]
    await until(lambda: server.asked == 2)
    await asyncio.sleep(0)
    assert server.asked == 2
    with pytest.raises(Overloaded):
        await fetcher.inline(images[3])
    # Whoever asks for one that is on its way costs nothing.
    again = asyncio.create_task(fetcher.inline(images[0]))
    server.open.set()
    assert [found.data for found in await asyncio.gather(*running, again)] == [b"x"] * 4
    assert (await fetcher.inline(images[3])).data == b"x"


async def test_a_fetch_ends_with_the_last_who_asked_and_not_before() -> None:
    server = Server(b"x")
    server.open.clear()
    fetcher = ImageFetcher(rules(concurrency=1), server.get)
    image = remote()
    first, second = (asyncio.create_task(fetcher.inline(image)) for _ in range(2))
    await until(lambda: server.asked == 1)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert server.cancelled == 0
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    await until(lambda: server.cancelled == 1)
    # Its slot is free, and it can be asked for anew.
    server.open.set()
    assert (await fetcher.inline(image)).data == b"x"


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (ImagePart("/p", "not_fetched"), "not fetched"),
        (ImagePart("/p", "malformed", reason="invalid base64"), "invalid base64"),
        (ImagePart("/p", "malformed"), "malformed"),
    ],
)
async def test_what_is_no_url_is_not_fetched(image: ImagePart, reason: str) -> None:
    server = Server(b"x")
    for fetcher in (None, ImageFetcher(rules(), server.get)):
        with pytest.raises(ImageError) as caught:
            await present(image, fetcher)
        assert caught.value.reason == reason
    assert server.asked == 0


async def test_an_embedded_image_is_its_own() -> None:
    image = ImagePart("/p", "inline", b"x")
    assert await present(image, ImageFetcher(rules(), Server(b"y").get)) is image


async def test_without_a_fetcher_no_url_is_followed() -> None:
    with pytest.raises(ImageError) as caught:
        await present(remote(), None)
    assert caught.value.reason == "not fetched"


async def test_the_vision_encoder_sees_what_was_fetched_once_for_all_signals(
    vision_pack: object, vision_model: object, executor: object, cache: object
) -> None:
    from tiny_tower import photo

    from router.inference.vision import VisionEncoder

    server = Server(photo(1))
    fetcher = ImageFetcher(rules(), server.get)
    encoder = VisionEncoder(vision_pack, vision_model, executor, cache, fetcher=fetcher)  # type: ignore[arg-type]
    image = remote()
    first, second = await asyncio.gather(encoder.embed(image), encoder.embed(image))
    embedded = await encoder.embed(ImagePart("/x", "inline", photo(1)))
    assert first is second is embedded
    assert server.asked == 1
