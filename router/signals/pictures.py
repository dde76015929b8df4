"""Images of a request as embeddings, and one answer from what was found in several of them.

Shared by the families that look at images. An image that can't be judged is never "no match": it makes the answer
unknown, unless another one matches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.inference.executor import Overloaded
from router.inference.text import TextEncoder
from router.inference.vision import VisionEncoder
from router.request.errors import ImageError
from router.request.view import ImagePart, RequestView, ToolResultPart
from router.signals.base import Evidence, Observation, SignalName, failed, observed, shed
from router.signals.resources import SignalSetupError

IMAGES_AT_ONCE: Final = 2
"""Images of one request that one signal has in work; more would fill the encoders' queue and help nobody."""

OVERLOADED: Final = "overloaded"
"""The detail of evidence that is missing because the models have too much to do."""


@dataclass(frozen=True, slots=True)
class Picture:
    """An image with its index among all images of the request; `embedding` is (d,) float32, or None for `reason`."""

    index: int
    pointer: str
    embedding: NDArray[np.float32] | None = field(default=None, repr=False)
    reason: str = ""

    def unjudged(self) -> Evidence:
        """That it was there and why it was not judged."""
        return Evidence(self.pointer, image=self.index, detail=self.reason)


async def look_at(vision: VisionEncoder, images: Iterable[tuple[int, ImagePart]]) -> list[Picture]:
    """Each image's embedding or the reason why there is none, in the order given."""
    room = asyncio.Semaphore(IMAGES_AT_ONCE)
    tasks = [asyncio.create_task(_embed(vision, index, image, room)) for index, image in images]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


async def _embed(vision: VisionEncoder, index: int, image: ImagePart, room: asyncio.Semaphore) -> Picture:
    async with room:
        try:
            return Picture(index, image.pointer, await vision.embed(image))
        except ImageError as error:
            return Picture(index, image.pointer, reason=error.reason)
        except Overloaded:
            return Picture(index, image.pointer, reason=OVERLOADED)


def all_images(view: RequestView) -> list[tuple[int, ImagePart]]:
    """Every image of every turn, in tool results too, with its index."""
    return list(enumerate(view.images))


def images_since_the_question(view: RequestView) -> list[tuple[int, ImagePart]]:
    """The images of the last user turn and of what follows it."""
    latest = max((i for i, turn in enumerate(view.turns) if turn.role == "user"), default=None)
    if latest is None:
        return []
    wanted = {id(image) for turn in view.turns[latest:] for image in _images_of(turn.parts)}
    return [(index, image) for index, image in enumerate(view.images) if id(image) in wanted]


def _images_of(parts: Sequence[object]) -> Iterator[ImagePart]:
    for part in parts:
        if isinstance(part, ImagePart):
            yield part
        elif isinstance(part, ToolResultPart):
            yield from _images_of(part.parts)


def settle(results: Sequence[Evidence], matches: Callable[[float], bool], pack: str) -> Observation:
    """Matched if any result's score does; unknown if none does and one has no score; not matched where there is none.

    The observation's score and label are those of the highest score. What matches comes first in the evidence, else
    in the order given. `matches` must hold for all scores above one for which it holds.
    """
    scored = [(result.score, result) for result in results if result.score is not None]
    best = max(scored, key=lambda pair: pair[0], default=None)
    evidence = tuple(sorted(results, key=lambda result: result.score is None or not matches(result.score)))
    if best is not None and matches(best[0]):
        return observed(True, best[0], label=best[1].label, evidence=evidence, pack=pack)
    missing = [result.detail for result in results if result.score is None]
    if not missing:
        score, label = (best[0], best[1].label) if best else (0.0, "")
        return observed(False, score, label=label, evidence=evidence, pack=pack)
    broken = next((reason for reason in missing if reason != OVERLOADED), None)
    return shed(pack, evidence) if broken is None else failed(broken, evidence, pack)


def check_one_space(name: SignalName, text: TextEncoder, vision: VisionEncoder) -> None:
    """Raises SignalSetupError where a text's and an image's embedding can't be compared."""
    if (text.space, text.dimension) != (vision.space, vision.dimension):
        raise SignalSetupError(
            f"{name}: captions and images must be embedded in one space, but the text encoder's is "
            f"{text.space!r} ({text.dimension}-d) and the vision encoder's {vision.space!r} ({vision.dimension}-d)"
        )
