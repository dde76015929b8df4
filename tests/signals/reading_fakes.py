"""A reader of text in images that answers from a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from router.inference.reading import ReadLine
from router.request.view import ImagePart


def lines(*texts: str) -> tuple[ReadLine, ...]:
    """Lines below each other, each a tenth of the image high."""
    return tuple(ReadLine(text, (0.1, i / 10, 0.9, i / 10 + 0.08), 0.99) for i, text in enumerate(texts))


class FakeReader:
    """Reads by an image's bytes; an exception in the table is raised."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.table = table
        self.read_images: list[str] = []

    async def read(self, image: ImagePart) -> tuple[ReadLine, ...]:
        name = image.data.decode()
        self.read_images.append(name)
        answer = self.table[name]
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]
