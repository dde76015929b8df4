"""`image`: images that show one of a policy's concepts, and show it more than what the concepts are told apart from.

    image:
      identity_document:
        concepts: [a passport, an identity card]
        against: [a portrait photo of a person, a page of printed text]
        threshold: 0.5

Costs a decode and a vision encoder's pass for each image that is not cached. Every image of every turn is judged, those
in tool results too, and the best one decides; its best concept is the label. Evidence says which image did which. It
sees what kind of thing an image shows; it does not read text, count or measure. What an http(s) URL points to is only
fetched from hosts that `remote_images` lists; any other such image can't be judged.

`scoring` is how an image's cosines become a score. `sigmoid`: the probability that it goes with the best concept,
absolute, by the scale and bias that the encoder was trained with. `softmax`: the concepts' share among concepts and
`against` together, relative. `auto`: the lesser of both, where there is something to tell apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from router.inference.activation import softmax
from router.inference.text import TextEncoder
from router.inference.vision import VisionEncoder
from router.request.view import RequestView
from router.signals.anchors import NOT_A_NUMBER, logistic, unit_interval
from router.signals.base import Cost, Evidence, Observation, SignalName
from router.signals.pictures import Picture, all_images, check_one_space, look_at, settle
from router.signals.resources import SignalSetupError
from router.signals.settings import Phrase, Phrases, SignalSettings, Threshold


class ImageSettings(SignalSettings):
    """Settings of an `image` signal."""

    concepts: Phrases = Field(description="What an image should show, as captions; one is enough.")
    against: tuple[Phrase, ...] = Field(
        (),
        description="Captions of what it is easily confused with. An image must look more like a concept than these.",
    )
    scoring: Literal["auto", "softmax", "sigmoid"] = Field(
        "auto",
        description="sigmoid: the probability that an image goes with the best concept. softmax: the concepts' share "
        "among concepts and against. auto: the lesser of both.",
    )
    threshold: Threshold = Field(0.5, description="Score of an image from which on it matches.")

    @model_validator(mode="after")
    def _has_rivals(self) -> ImageSettings:
        if self.scoring == "softmax" and not self.against:
            raise ValueError("scoring: softmax needs against; without it every image's share is 1")
        if self.scoring == "sigmoid" and self.against:
            raise ValueError("scoring: sigmoid does not look at against")
        return self

    @property
    def possible_labels(self) -> tuple[str, ...]:
        """See `SignalSettings`."""
        return self.concepts

    @property
    def implied(self) -> Mapping[str, tuple[int | None, int | None]]:
        """See `SignalSettings`."""
        return {"images": (1, None)}

    @property
    def matching(self) -> tuple[float, None]:
        """See `SignalSettings`."""
        return self.threshold, None


class ImageSignal:
    """How sure the vision encoder is that an image shows one of the concepts."""

    cost = Cost.VISION_MODEL

    def __init__(self, name: SignalName, settings: ImageSettings, text: TextEncoder, vision: VisionEncoder) -> None:
        """Raises SignalSetupError where the encoders have no common space, or no probability to give."""
        check_one_space(name, text, vision)
        self.name = name
        self._settings = settings
        self._text = text
        self._vision = vision
        self._prompts: NDArray[np.float32] = np.zeros((0, text.dimension), np.float32)
        # Only a tower trained with a sigmoid has a bias, and it is far below 0: most pairs don't belong together.
        self._absolute = vision.logit_bias < 0 and settings.scoring != "softmax"
        if not self._absolute and not settings.against:
            raise SignalSetupError(
                f"{name}: the vision pack has no bias, so that a cosine by itself is no probability; "
                "leave `scoring` out and name under `against` what the concepts are to be told apart from"
            )

    async def prepare(self) -> None:
        """Embed the captions."""
        self._prompts = await self._text.embed([*self._settings.concepts, *self._settings.against])

    async def observe(self, view: RequestView) -> Observation:
        """Matched if any image matches; unknown if none does and one can't be judged; not matched without images."""
        pictures = await look_at(self._vision, all_images(view))
        results = [self._judge(picture) for picture in pictures]
        return settle(results, lambda score: score >= self._settings.threshold, self._vision.pack)

    def _judge(self, picture: Picture) -> Evidence:
        """Evidence with a score, or without one and with the reason as its detail."""
        if picture.embedding is None:
            return picture.unjudged()
        count = len(self._settings.concepts)
        logits = self._vision.logit_scale * (self._prompts @ picture.embedding).astype(np.float64)
        if not np.isfinite(logits).all():
            return Evidence(picture.pointer, image=picture.index, detail=NOT_A_NUMBER)
        concept = int(logits[:count].argmax())
        score, detail = 1.0, ""
        if self._absolute:
            score = logistic(float(logits[concept]) + self._vision.logit_bias)
        if self._settings.against:
            score = min(score, float(softmax(logits)[:count].sum()))
            contrast = count + int(logits[count:].argmax())
            if logits[contrast] > logits[concept]:
                detail = f"nearer to: {self._settings.against[contrast - count]}"
        return Evidence(
            picture.pointer,
            label=self._settings.concepts[concept],
            score=unit_interval(score),
            image=picture.index,
            detail=detail,
        )
