"""Views, and encoders that answer from a table, for the tests of this folder."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from router.inference.executor import Overloaded
from router.request.errors import ImageError
from router.request.view import ImagePart, Part, RequestView, Role, TextPart, ToolDefinition, ToolResultPart, Turn
from router.signals.base import Observation, Signal, SignalName
from router.signals.registry import FAMILIES
from router.signals.resources import Resources

DIMENSION = 8


def turn(index: int, role: Role, *parts: Part | str) -> Turn:
    pointer = f"/messages/{index}"
    made = tuple(
        TextPart(f"{pointer}/content/{i}", part) if isinstance(part, str) else part for i, part in enumerate(parts)
    )
    return Turn(pointer, role, made)


def view(*turns: tuple[Role, Part | str] | tuple[Role, Part | str, Part | str], tools: int = 0) -> RequestView:
    definitions = tuple(ToolDefinition(f"/tools/{i}", f"tool{i}") for i in range(tools))
    made = tuple(turn(index, role, *parts) for index, (role, *parts) in enumerate(turns))
    return RequestView("openai.chat", None, made, definitions, False, 0, None)


def said(*texts: str) -> RequestView:
    return view(*(("user", text) for text in texts))


def image(name: str, pointer: str = "") -> ImagePart:
    """An image whose bytes are its name, which is what the fake vision encoder goes by."""
    return ImagePart(pointer or f"/images/{name}", "inline", name.encode())


def in_tool_result(*parts: TextPart | ImagePart) -> ToolResultPart:
    return ToolResultPart("/messages/9", "call_1", parts)


def unit(*axes: float) -> NDArray[np.float32]:
    vector = np.zeros(DIMENSION, np.float32)
    vector[: len(axes)] = axes
    return vector / np.linalg.norm(vector)


@dataclass(frozen=True)
class Windows:
    spans: tuple[tuple[int, int], ...]
    embeddings: NDArray[np.float32]


class FakeText:
    """Embeds texts from a table, others each onto a direction of its own; windows are sentences."""

    pack = "text-pack"
    space = "one"
    dimension = DIMENSION

    def __init__(self, table: Mapping[str, NDArray[np.float32]] | None = None) -> None:
        self.table = dict(table or {})
        self.overloaded = False
        self.embedded: list[str] = []
        self.counted = 0

    def _one(self, text: str) -> NDArray[np.float32]:
        if self.overloaded:
            raise Overloaded
        self.embedded.append(text)
        if text in self.table:
            return self.table[text]
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
        vector = np.random.default_rng(seed).normal(size=DIMENSION).astype(np.float32)
        return vector / np.linalg.norm(vector)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([self._one(text) for text in texts])

    async def embed_windows(self, text: str) -> Windows:
        spans = tuple(m.span() for m in re.finditer(r"[^.]+\.?", text))
        return Windows(spans, np.stack([self._one(text[a:b].strip()) for a, b in spans]))

    async def count_tokens(self, text: str) -> int:
        if self.overloaded:
            raise Overloaded
        self.counted += 1
        return len(text.split())


class FakeVision:
    """Embeds images from a table by their bytes; a string there is the reason for an ImageError."""

    pack = "vision-pack"
    space = "one"
    dimension = DIMENSION
    logit_scale = 10.0
    logit_bias = -5.0

    def __init__(self, table: Mapping[str, NDArray[np.float32] | str | Exception]) -> None:
        self.table = table
        self.now = 0
        self.most = 0

    async def embed(self, image: ImagePart) -> NDArray[np.float32]:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0)
            answer = self.table[image.data.decode()]
            if isinstance(answer, str):
                raise ImageError(answer)
            if isinstance(answer, Exception):
                raise answer
            return answer
        finally:
            self.now -= 1


def encoders(text: Any = None, vision: Any = None, **rest: Any) -> Resources:
    return Resources(text, vision, **rest)


async def built(family: str, settings: Mapping[str, Any], given: Resources | None = None) -> Signal:
    row = FAMILIES[family]
    signal = row.build(SignalName(family, "it"), row.settings.model_validate(settings), given or encoders())
    await signal.prepare()
    return signal


async def turns_given(work: Coroutine[Any, Any, Any]) -> int:
    """How often others had their turn on the event loop before the work was done."""
    task = asyncio.create_task(work)
    turns = 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    await task
    return turns


async def ask(
    family: str, settings: Mapping[str, Any], request: RequestView, given: Resources | None = None
) -> Observation:
    return await (await built(family, settings, given)).observe(request)
