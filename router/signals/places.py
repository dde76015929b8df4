"""Every place of a request where text can stand, for signals that must not miss any: who asks gets all of it.

Texts of all turns, names of files and, where a reader is at hand, what is written inside images. Plain enumeration;
what is worth finding there is for `scan.py` and the families to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from router.inference.executor import Overloaded
from router.inference.reading import ImageReader
from router.request.errors import ImageError
from router.request.view import FilePart, ImagePart, RequestView, Role, TextSpan, ToolCallPart
from router.signals.page import Box, lay_out

ALL_ROLES: Final[tuple[Role, ...]] = ("system", "developer", "user", "assistant", "tool")

IMAGES_AT_ONCE: Final = 2
"""Images of one request that one signal has in work; more would fill the reader's queue and help nobody."""

FEW_LINES: Final = 100
"""Laid out on the event loop: a few milliseconds at the worst, as it takes time with the square of lines in a row."""

OVERLOADED: Final = "overloaded"
"""What `ImageText.missing` says where the reader has too much to do already."""


@dataclass(frozen=True, slots=True)
class ImageText:
    """What is written in an image: `text` as `page.py` lays it out; `boxes` has (start, end, box) of each line in it.

    `index` is the image's among all images of the request. `missing` says why nothing could be read; "" where it was.
    """

    pointer: str
    index: int
    text: str = field(default="", repr=False)
    boxes: tuple[tuple[int, int, Box], ...] = ()
    missing: str = ""

    def place(self, start: int, end: int) -> str:
        """Where a half-open range of the text stands: "box l,t,r,b" in shares of width and height, or ""."""
        touched = [box for first, last, box in self.boxes if first < end and start < last]
        if not touched:
            return ""
        lefts, tops, rights, bottoms = zip(*touched, strict=True)
        return "box " + ",".join(f"{edge:.3f}" for edge in (min(lefts), min(tops), max(rights), max(bottoms)))


def all_texts(view: RequestView, roles: Collection[Role]) -> tuple[TextSpan, ...]:
    """All texts of these roles, then the names of files and of called tools that `view.texts` leaves out."""
    spans = [span for span in view.texts if span.role in roles]
    known = {span.pointer for span in spans}
    for turn, part in view.parts():
        if turn.role not in roles:
            continue
        match part:
            case FilePart(name=name) if name:
                pointer = f"{part.pointer}/filename"
            case ToolCallPart(name=name) if name:
                pointer = f"{part.pointer.rpartition('/')[0]}/name"
            case _:
                continue
        if pointer not in known:
            spans.append(TextSpan(pointer, turn.role, name))
    return tuple(spans)


async def read_images(view: RequestView, roles: Collection[Role], reader: ImageReader) -> list[ImageText]:
    """The text inside every image of turns of these roles, in their order."""
    of_roles = {id(part) for turn, part in view.parts() if turn.role in roles}
    room = asyncio.Semaphore(IMAGES_AT_ONCE)
    tasks = [
        asyncio.create_task(_read(index, image, reader, room))
        for index, image in enumerate(view.images)
        if id(image) in of_roles
    ]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _read(index: int, image: ImagePart, reader: ImageReader, room: asyncio.Semaphore) -> ImageText:
    async with room:
        try:
            lines = await reader.read(image)
        except ImageError as error:
            return ImageText(image.pointer, index, missing=error.reason)
        except Overloaded:
            return ImageText(image.pointer, index, missing=OVERLOADED)
    # A page as full as can be read takes half a second.
    text, boxes = lay_out(lines) if len(lines) <= FEW_LINES else await asyncio.to_thread(lay_out, lines)
    return ImageText(image.pointer, index, text, boxes)
