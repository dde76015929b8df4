"""`embedding`: text or images that mean the same as one of a policy's examples.

    embedding:
      clinical_question: {texts: [interpret a test result, symptoms of a patient], threshold: 0.45}
      our_product: {images: [examples/pump.jpg, examples/valve.jpg], query: image, threshold: 0.8}

Examples are texts, images (files beside the policy, read when it is loaded) or both; what is compared with them is the
request's text, its images, or either. Text and images can only be compared where the two encoders share one space, and
a text's cosine with an image that it describes is lower than with another text of the same meaning: give such examples
a signal of their own, with a threshold of its own.

Costs a text encoder's pass for each window of text that is not cached, a vision encoder's for each such image. Texts
are read whole and the best window decides; of images every one is judged, in tool results too, and the best one
decides. It sees topics and intentions rather than words; it sees little of negation, of numbers, and of a remark inside
a long text about something else. An image that can't be judged makes the answer unknown unless something else matches.

The score is the cosine, negative ones as 0. With `mode: soft` it is a logistic curve of it instead, 0.5 at the
threshold, so that sums and confidences tell what is just beyond the threshold from what is far beyond it; what matches
stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from router.inference.executor import Overloaded
from router.inference.text import TextEncoder
from router.inference.vision import VisionEncoder
from router.request.view import ImagePart, RequestView, TextSpan
from router.signals.anchor_images import embed_images, read_images
from router.signals.anchors import NOT_A_NUMBER, Pooling, logistic, pooled, read_windows, unit_interval
from router.signals.base import Cost, Evidence, Observation, SignalName
from router.signals.pictures import OVERLOADED, all_images, check_one_space, look_at, settle
from router.signals.resources import Resources, SignalSetupError
from router.signals.settings import Phrase, SignalSettings, Threshold
from router.signals.texts import WHICH_TEXTS, Over, texts_over


class EmbeddingSettings(SignalSettings):
    """Settings of an `embedding` signal."""

    texts: tuple[Phrase, ...] = Field((), description="Anchors: texts like those that should match.")
    images: tuple[Phrase, ...] = Field(
        (), description="Anchors: files of images like those that should match; relative to the policy's folder."
    )
    query: Literal["text", "image", "both"] = Field(
        "text", description="What is compared with the anchors. both: the better of text and images decides."
    )
    threshold: Threshold = Field(0.45, description="Cosine similarity from which on it matches.")
    aggregate: Pooling = Field(
        "max",
        description="max: like any one of the anchors; mean: like all of them on average; top_k: like the k nearest "
        "on average.",
    )
    k: int | None = Field(None, ge=1, description="Anchors that top_k averages over; 3 if not given.")
    mode: Literal["hard", "soft"] = Field(
        "hard", description="hard: the score is the cosine. soft: it is 0.5 at the threshold and grows gradually."
    )
    softness: float | None = Field(
        None, gt=0, le=1, description="Cosine above the threshold at which a soft score is 0.73; 0.05 if not given."
    )
    over: Over = Field(
        "latest",
        description=WHICH_TEXTS,
    )

    @model_validator(mode="after")
    def _holds_together(self) -> EmbeddingSettings:
        if not self.texts and not self.images:
            raise ValueError("texts or images are needed")
        if self.k is not None and self.aggregate != "top_k":
            raise ValueError("k goes with aggregate: top_k")
        if self.k is not None and self.k > len(self.texts) + len(self.images):
            raise ValueError(f"k is {self.k}, but there are {len(self.texts) + len(self.images)} anchors")
        if self.softness is not None and self.mode != "soft":
            raise ValueError("softness goes with mode: soft")
        if self.query == "image" and "over" in self.model_fields_set:
            raise ValueError("over says which texts are read; query: image reads none")
        return self

    @property
    def matching(self) -> tuple[float, None]:
        """See `SignalSettings`."""
        return self.threshold if self.mode == "hard" else 0.5, None


class EmbeddingSignal:
    """How like the anchors the likest window of text, or the likest image, is."""

    def __init__(self, name: SignalName, settings: EmbeddingSettings, text: TextEncoder, resources: Resources) -> None:
        """Reads the anchor images; raises SignalSetupError for what is missing, unreadable or not comparable."""
        self.name = name
        self._settings = settings
        self._text = text
        self._vision = _vision_if_needed(name, settings, text, resources)
        self._files: tuple[ImagePart, ...] = read_images(name, resources.base, settings.images)
        self._labels = (*settings.texts, *settings.images)
        self._anchors: NDArray[np.float32] = np.zeros((0, text.dimension), np.float32)
        self.cost = Cost.TEXT_MODEL if settings.query == "text" else Cost.VISION_MODEL

    async def prepare(self) -> None:
        """Embed the anchors."""
        rows = [await self._text.embed(self._settings.texts)] if self._settings.texts else []
        if self._vision is not None and self._files:
            rows.append(await embed_images(self.name, self._vision, self._files))
        self._anchors = np.concatenate(rows)

    async def observe(self, view: RequestView) -> Observation:
        """The best window or image decides; its anchor and place are the evidence, and each image is cited."""
        results: list[Evidence] = []
        if self._settings.query != "image":
            results += await self._read(texts_over(view, self._settings.over))
        pack = self._text.pack
        if self._vision is not None and self._settings.query != "text":
            pack = self._vision.pack
            for picture in await look_at(self._vision, all_images(view)):
                judged = picture.unjudged()
                if picture.embedding is not None:
                    judged = self._judge(picture.pointer, picture.embedding[None], image=picture.index)
                results.append(judged)
        threshold = self._settings.threshold if self._settings.mode == "hard" else 0.5
        return settle(results, lambda score: score >= threshold, pack)

    async def _read(self, texts: Sequence[TextSpan]) -> list[Evidence]:
        """The best window of all texts; what can't be judged has no score."""
        found: list[Evidence] = []
        for text in texts:
            try:
                windows = await read_windows(self._text, text)
            except Overloaded:
                return [Evidence(text.pointer, detail=OVERLOADED)]
            if windows:
                embeddings = np.stack([window.embedding for window in windows])
                found.append(self._judge(text.pointer, embeddings, [window.span for window in windows]))
        unknown = [evidence for evidence in found if evidence.score is None]
        return unknown[:1] or sorted(found, key=lambda evidence: -(evidence.score or 0.0))[:1]

    def _judge(
        self,
        pointer: str,
        embeddings: NDArray[np.float32],
        spans: Sequence[tuple[int, int]] = (),
        image: int | None = None,
    ) -> Evidence:
        """The best of embeddings (w, d)."""
        cosines = embeddings @ self._anchors.T
        if not np.isfinite(cosines).all():
            return Evidence(pointer, image=image, detail=NOT_A_NUMBER)
        scores = pooled(cosines, self._settings.aggregate, self._settings.k or 3)
        best = int(scores.argmax())
        return Evidence(
            pointer,
            label=self._labels[int(cosines[best].argmax())],
            score=self._score(float(scores[best])),
            span=spans[best] if spans else None,
            image=image,
        )

    def _score(self, cosine: float) -> float:
        score = unit_interval(cosine)
        if self._settings.mode == "hard":
            return score
        return logistic((score - self._settings.threshold) / (self._settings.softness or 0.05))


def _vision_if_needed(
    name: SignalName, settings: EmbeddingSettings, text: TextEncoder, resources: Resources
) -> VisionEncoder | None:
    if settings.query == "text" and not settings.images:
        return None
    if resources.vision is None:
        what = "image anchors" if settings.images else f"query: {settings.query}"
        raise SignalSetupError(f"{name}: {what} needs a vision encoder; name one under `encoders`")
    # Images against images is the one case within a single tower.
    if settings.texts or settings.query != "image":
        check_one_space(name, text, resources.vision)
    return resources.vision
