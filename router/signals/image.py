"""`image`: images that show one of a policy's concepts, and show it more than what the concepts are told apart from.

    image:
      identity_document:
        concepts: [a passport, an identity card]
        against: [a portrait photo of a person, a page of printed text]
        threshold: 0.5

Costs a decode and a vision encoder's pass for each image that is not cached. Every image of every turn is judged, those
in tool results too, and the best one decides. It sees what kind of thing an image shows; it does not read text, count
or measure. What an http(s) URL points to is not fetched, so that such an image can't be judged.
"""

from __future__ import annotations

import asyncio
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from router.inference.executor import Overloaded
from router.inference.text import TextEncoder
from router.inference.vision import VisionEncoder
from router.request.errors import ImageError
from router.request.view import ImagePart, RequestView
from router.signals.base import Cost, Evidence, Observation, SignalName, failed, observed, shed
from router.signals.settings import Phrase, Phrases, SignalSettings, Threshold

IMAGES_AT_ONCE: Final = 2
"""Images of one request that one signal has in work; more would fill the encoders' queue and help nobody."""

_SHED: Final = "overloaded"


class ImageSettings(SignalSettings):
    """Settings of an `image` signal."""

    concepts: Phrases = Field(description="What an image should show, as captions; one is enough.")
    against: tuple[Phrase, ...] = Field(
        (),
        description="Captions of what it is easily confused with. An image must look more like a concept than these.",
    )
    threshold: Threshold = Field(0.5, description="Score of an image from which on it matches.")


class ImageSignal:
    """How sure the vision encoder is that an image shows one of the concepts.

    An image's score is the lesser of two: the sigmoid probability that it goes with the best concept, which is
    absolute, and, where there are contrasts, the concepts' share in a softmax over concepts and contrasts, which is
    relative.
    """

    cost = Cost.VISION_MODEL

    def __init__(self, name: SignalName, settings: ImageSettings, text: TextEncoder, vision: VisionEncoder) -> None:
        self.name = name
        self._settings = settings
        self._text = text
        self._vision = vision
        self._prompts: NDArray[np.float32] = np.zeros((0, text.dimension), np.float32)

    async def prepare(self) -> None:
        """Embed the captions."""
        self._prompts = await self._text.embed([*self._settings.concepts, *self._settings.against])

    async def observe(self, view: RequestView) -> Observation:
        """Matched if any image matches; unknown if none does and one can't be judged; not matched without images."""
        pack = self._vision.pack
        room = asyncio.Semaphore(IMAGES_AT_ONCE)
        tasks = [asyncio.create_task(self._judge(i, image, room)) for i, image in enumerate(view.images)]
        try:
            results = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        scored = [(result.score, result) for result in results if result.score is not None]
        best = max(scored, key=lambda pair: pair[0], default=None)
        # Matching images first, each group in the order of the request.
        evidence = tuple(sorted(results, key=lambda result: (result.score or 0.0) < self._settings.threshold))
        if best is not None and best[0] >= self._settings.threshold:
            return observed(True, best[0], label=best[1].label, evidence=evidence, pack=pack)
        missing = {result.detail for result in results if result.score is None}
        if not missing:
            score, label = (best[0], best[1].label) if best else (0.0, "")
            return observed(False, score, label=label, evidence=evidence, pack=pack)
        if missing == {_SHED}:
            return shed(pack, evidence)
        return failed(next(r.detail for r in results if r.score is None and r.detail != _SHED), evidence, pack)

    async def _judge(self, index: int, image: ImagePart, room: asyncio.Semaphore) -> Evidence:
        """Evidence with a score, or without one and with the reason as its detail."""
        async with room:
            try:
                embedding = await self._vision.embed(image)
            except ImageError as error:
                return Evidence(image.pointer, image=index, detail=error.reason)
            except Overloaded:
                return Evidence(image.pointer, image=index, detail=_SHED)
        return self._score(index, image.pointer, embedding)

    def _score(self, index: int, pointer: str, embedding: NDArray[np.float32]) -> Evidence:
        """`embedding` is (d,), L2-normalised like the captions'."""
        count = len(self._settings.concepts)
        logits = self._vision.logit_scale * (self._prompts @ embedding).astype(np.float64)
        concept = int(logits[:count].argmax())
        score = 1.0 / (1.0 + np.exp(-(logits[concept] + self._vision.logit_bias)))
        if not np.isfinite(logits).all():
            return Evidence(pointer, image=index, detail="no number")
        detail = ""
        if self._settings.against:
            shares = np.exp(logits - logits.max())
            score = min(score, shares[:count].sum() / shares.sum())
            contrast = count + int(logits[count:].argmax())
            if logits[contrast] > logits[concept]:
                detail = f"nearer to: {self._settings.against[contrast - count]}"
        return Evidence(
            pointer,
            label=self._settings.concepts[concept],
            score=float(np.clip(score, 0.0, 1.0)),
            image=index,
            detail=detail,
        )
