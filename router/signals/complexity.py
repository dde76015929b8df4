"""`complexity`: whether the request is more like hard examples than like easy ones.

    complexity:
      hard_task: {}
      hard_medical:
        hard: [weigh several diagnoses against each other]
        easy: [what a medical word means]
        hard_images: [a chest x-ray]
        easy_images: [a pill packet]
        threshold: 0.1

Its `value` is the margin, between -1 and 1: the mean cosine of the three nearest hard examples minus that of the three
nearest easy ones. Of a text the window with the greatest margin counts; of texts and images, the one with the greatest.
`threshold` is the margin from which on it matches, and conditions with `gte` and the like compare the margin, so that
one signal serves several tiers. The score maps it to 0-1: 0.5 where neither side is nearer. `hard` and `easy` are for
texts, `hard_images` and `easy_images` are captions for the request's images; with none of them given, built-in examples
for texts are used (`complexity_anchors.py`).

With `method: head` a head of the text pack judges texts: the score is its probability of a hard request, the value that
minus its opposite's. It is a weak prior, trained on where requests came from, and no measure of work.

Costs a text encoder's pass for each window that is not cached; with captions, a vision encoder's for each such image.
Of a long text its two ends are read. What it can't see: how much work a request really is. It sees what hard requests
look like; a short question can be the hardest of all, and a long one with easy words is often hard: combine it with
`context` and `structure`. Examples from your own traffic are worth far more than the built-in ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from router.inference.executor import Overloaded
from router.inference.text import TextEncoder
from router.inference.vision import VisionEncoder
from router.request.view import RequestView
from router.signals.anchors import NOT_A_NUMBER, logistic, pooled, read_ends
from router.signals.base import Cost, Evidence, Observation, Signal, SignalName
from router.signals.complexity_anchors import EASY, HARD
from router.signals.complexity_head import HeadComplexitySignal
from router.signals.heads import required_head
from router.signals.pictures import OVERLOADED, all_images, check_one_space, look_at, settle
from router.signals.resources import Resources, SignalSetupError
from router.signals.settings import Phrase, SignalSettings
from router.signals.texts import WHICH_TEXTS, Over, texts_over

NEAREST: Final = 3
"""Examples of a side whose mean cosine counts."""

STEEPNESS: Final = 15.0
"""The score is logistic(STEEPNESS * margin): a margin of 0.1, which is plain, gives 0.82."""

HARD_LABEL: Final = "hard"
EASY_LABEL: Final = "easy"


HEAD: Final = "complexity"

THRESHOLD: Final = 0.03
"""With examples."""


class ComplexitySettings(SignalSettings):
    """Settings of a `complexity` signal."""

    hard: tuple[Phrase, ...] = Field((), description="Texts like hard requests.")
    easy: tuple[Phrase, ...] = Field((), description="Texts like easy requests.")
    hard_images: tuple[Phrase, ...] = Field((), description="Captions of images that make a request hard.")
    easy_images: tuple[Phrase, ...] = Field((), description="Captions of images that make a request easy.")
    method: Literal["examples", "head"] = Field(
        "examples",
        description="examples: likeness to hard and easy ones; head: the text pack's head, which was trained on kinds "
        "of requests, for texts alone.",
    )
    threshold: float | None = Field(
        None,
        ge=-1,
        le=1,
        description=f"Margin from which on it matches. Not given: {THRESHOLD}, or the head's own.",
    )
    over: Over = Field(
        "latest",
        description=WHICH_TEXTS,
    )

    @property
    def heads(self) -> tuple[str, ...]:
        """See `SignalSettings`."""
        return (HEAD,) if self.method == "head" else ()

    @model_validator(mode="after")
    def _has_both_sides(self) -> ComplexitySettings:
        for hard, easy in (("hard", "easy"), ("hard_images", "easy_images")):
            if bool(getattr(self, hard)) != bool(getattr(self, easy)):
                raise ValueError(f"{hard} and {easy} go together: a margin needs both sides")
        if self.method == "head" and (self.hard or self.hard_images):
            raise ValueError("the head was trained and takes no examples; they are for `method: examples`")
        return self


class ComplexitySignal:
    """How much nearer the hardest part of the request is to the hard examples than to the easy ones."""

    def __init__(
        self, name: SignalName, settings: ComplexitySettings, text: TextEncoder, vision: VisionEncoder | None
    ) -> None:
        """Raises SignalSetupError where there are captions and no images can be compared with them."""
        self.name = name
        self._settings = settings
        self._text = text
        self._vision = vision if settings.hard_images else None
        if settings.hard_images:
            if vision is None:
                raise SignalSetupError(f"{name}: hard_images needs a vision encoder; name one under `encoders`")
            check_one_space(name, text, vision)
        self._examples = (settings.hard, settings.easy)
        if not settings.hard and not settings.hard_images:
            self._examples = (HARD, EASY)
        self.cost = Cost.VISION_MODEL if settings.hard_images else Cost.TEXT_MODEL
        none = np.zeros((0, text.dimension), np.float32)
        self._texts = self._captions = (none, none)

    async def prepare(self) -> None:
        """Embed the examples."""
        if self._examples[0]:
            self._texts = await self._embed(*self._examples)
        if self._vision is not None:
            self._captions = await self._embed(self._settings.hard_images, self._settings.easy_images)

    async def _embed(self, hard: Sequence[str], easy: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return await self._text.embed(hard), await self._text.embed(easy)

    async def observe(self, view: RequestView) -> Observation:
        """The hardest window or image decides; a request with neither has the margin 0 and does not match."""
        found: list[tuple[float, Evidence]] = []
        if self._examples[0]:
            found += await self._read(view)
        pack = self._text.pack
        if self._vision is not None:
            pack = self._vision.pack
            for picture in await look_at(self._vision, all_images(view)):
                if picture.embedding is None:
                    found.append((-np.inf, picture.unjudged()))
                else:
                    margin = float(_margins(picture.embedding[None], *self._captions)[0])
                    found.append(_judged(margin, picture.pointer, image=picture.index))
        threshold = THRESHOLD if self._settings.threshold is None else self._settings.threshold
        needed = logistic(STEEPNESS * threshold)
        answer = settle([evidence for _, evidence in found], lambda score: score >= needed, pack)
        if answer.status != "observed":
            return answer
        margin = max((margin for margin, _ in found), default=0.0)
        return replace(answer, value=margin, score=logistic(STEEPNESS * margin))

    async def _read(self, view: RequestView) -> list[tuple[float, Evidence]]:
        """The hardest window of all texts, if there is one."""
        try:
            windows = await read_ends(self._text, texts_over(view, self._settings.over))
        except Overloaded:
            return [(-np.inf, Evidence("", detail=OVERLOADED))]
        if not windows:
            return []
        margins = _margins(np.stack([window.embedding for window in windows]), *self._texts)
        hardest = int(margins.argmax())
        margin = float(margins[hardest])
        return [_judged(margin, windows[hardest].pointer, span=windows[hardest].span)]


def build_complexity(name: SignalName, settings: ComplexitySettings, resources: Resources) -> Signal:
    """The signal as its method has it; SignalSetupError where something is not at hand."""
    if settings.method == "head":
        head = required_head(name, HEAD, resources)
        if len(head.labels) != 1 or head.level != "text":
            raise SignalSetupError(f"{name}: the head {HEAD!r} has other labels than one for a text")
        return HeadComplexitySignal(name, head, settings.threshold, settings.over)
    return ComplexitySignal(name, settings, resources.text_for(name), resources.vision)


def _margins(
    embeddings: NDArray[np.float32], hard: NDArray[np.float32], easy: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Margins (w,) in -1 to 1 of embeddings (w, d); a greater difference, which takes opposite vectors, is cut."""
    difference = pooled(embeddings @ hard.T, "top_k", NEAREST) - pooled(embeddings @ easy.T, "top_k", NEAREST)
    margins: NDArray[np.float64] = np.clip(difference, -1.0, 1.0)
    return margins


def _judged(
    margin: float, pointer: str, span: tuple[int, int] | None = None, image: int | None = None
) -> tuple[float, Evidence]:
    if not np.isfinite(margin):
        return -np.inf, Evidence(pointer, image=image, detail=NOT_A_NUMBER)
    label = HARD_LABEL if margin > 0 else EASY_LABEL
    return margin, Evidence(pointer, label=label, score=logistic(STEEPNESS * margin), span=span, image=image)
