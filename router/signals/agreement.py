"""`agreement`: whether text and images belong together; it matches where they do not.

    agreement:
      off_topic: {below: 0.15}

The last user turn's text is compared with each image in the space that both encoders share. An image's agreement is the
cosine with the window of text that is nearest, negative ones as 0; with `measure: sigmoid` it is the probability that
the vision pack gives the pair. The image that agrees least decides. The observation's `value` is that agreement, in
0-1, and is what conditions with `lt` and the like compare; the score is what is missing to 1, so that it grows, as any
signal's, with the evidence for a match.

Little agreement is evidence that an image is not what the text is about: a question about a contract with a picture of
lunch. A text that says nothing about what an image should show ("What is this?", "please read") agrees with every
image (`pointing.py`). Without images, or without text, it does not match.

Costs a text encoder's pass for each window and a vision encoder's for each image that is not cached. Of a long text its
two ends are read. What it can't see: details, since a question about the third line of a table agrees with any table;
what an image has to do with a text beyond what it shows; text in languages that the encoder does not know, which agrees
with nothing. An image that can't be judged makes the answer unknown, unless another one matches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from router.inference.executor import Overloaded
from router.inference.text import TextEncoder
from router.inference.vision import VisionEncoder
from router.request.view import RequestView
from router.signals.anchors import NOT_A_NUMBER, Window, logistic, read_ends, unit_interval
from router.signals.base import Cost, Evidence, Observation, SignalName, observed, shed
from router.signals.pictures import Picture, all_images, check_one_space, images_since_the_question, look_at, settle
from router.signals.pointing import POINTING, POINTS, has_no_topic
from router.signals.resources import SignalSetupError
from router.signals.settings import SignalSettings


class AgreementSettings(SignalSettings):
    """Settings of an `agreement` signal."""

    below: float = Field(0.15, gt=0, le=1, description="Agreement below which it matches.")
    measure: Literal["cosine", "sigmoid"] = Field(
        "cosine", description="cosine: of text and image. sigmoid: the vision pack's probability that they are a pair."
    )
    images: Literal["all", "latest"] = Field(
        "all", description="all: every image of every turn; latest: those of the last user turn and what follows it."
    )

    @property
    def implied(self) -> Mapping[str, tuple[int | None, int | None]]:
        """See `SignalSettings`."""
        return {"images": (1, None)}


class AgreementSignal:
    """How little the least fitting image has to do with the text."""

    cost = Cost.VISION_MODEL

    def __init__(self, name: SignalName, settings: AgreementSettings, text: TextEncoder, vision: VisionEncoder) -> None:
        """Raises SignalSetupError where the encoders have no common space, or no probability to give."""
        check_one_space(name, text, vision)
        # Only a tower trained with a sigmoid has a bias, and it is far below 0: most pairs don't belong together.
        if settings.measure == "sigmoid" and vision.logit_bias >= 0:
            raise SignalSetupError(f"{name}: measure: sigmoid needs a vision pack with a bias; use cosine")
        self.name = name
        self._settings = settings
        self._text = text
        self._vision = vision
        self._pointing: NDArray[np.float32] = np.zeros((0, text.dimension), np.float32)

    async def prepare(self) -> None:
        """Embed the texts that merely point."""
        self._pointing = await self._text.embed(POINTING)

    async def observe(self, view: RequestView) -> Observation:
        """The image that agrees least decides; each is cited with what is missing to its full agreement."""
        pack = self._vision.pack
        images = all_images(view) if self._settings.images == "all" else images_since_the_question(view)
        if not images or not view.latest_user_texts:
            return observed(False, 0.0, value=1.0, pack=pack)
        try:
            said = [text for text in view.latest_user_texts if not has_no_topic(text.text)]
            windows = await read_ends(self._text, said)
        except Overloaded:
            return shed(self._text.pack)
        texts = self._telling(windows)
        pictures = await look_at(self._vision, images)
        results = [self._judge(picture, texts) for picture in pictures]
        # Not `1 - below <= score`: rounding would let what just agrees match.
        answer = settle(results, lambda score: 1.0 - score < self._settings.below, pack)
        if answer.status != "observed" or answer.score is None:
            return answer
        return replace(answer, value=1.0 - answer.score)

    def _telling(self, windows: list[Window]) -> NDArray[np.float32]:
        """Embeddings (w, d) of the windows that say what an image should show; none if all of them merely point."""
        if not windows:
            return np.zeros((0, self._text.dimension), np.float32)
        embeddings = np.stack([window.embedding for window in windows])
        telling: NDArray[np.float32] = embeddings[(embeddings @ self._pointing.T).max(axis=1) < POINTS]
        return telling

    def _judge(self, picture: Picture, texts: NDArray[np.float32]) -> Evidence:
        if picture.embedding is None:
            return picture.unjudged()
        if len(texts) == 0:
            return Evidence(picture.pointer, score=0.0, image=picture.index, detail="the text merely points")
        cosine = float((texts @ picture.embedding).max())
        if not np.isfinite(cosine):
            return Evidence(picture.pointer, image=picture.index, detail=NOT_A_NUMBER)
        agreement = unit_interval(cosine)
        if self._settings.measure == "sigmoid":
            agreement = logistic(self._vision.logit_scale * cosine + self._vision.logit_bias)
        return Evidence(
            picture.pointer, score=1.0 - agreement, image=picture.index, detail=f"agreement {agreement:.3f}"
        )
