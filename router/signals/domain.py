"""`domain`: the field of knowledge that the request is about, one of fourteen.

    domain:
      legal_or_medical: {any: [law, health], threshold: 0.4}
      topic: {}

The label is the field: biology, business, chemistry, computer science, economics, engineering, health, history, law,
math, other, philosophy, physics or psychology; `other` is everyday life. With `any` only those fields match; without it
every one does, which is for conditions that ask for the label. Fields are told apart by their likeness to topics
(`domain_anchors.py`); the score is the field's share among all fourteen.

Costs a text encoder's pass for each window that is not cached, and one for each of 308 topics when a worker starts. Of
a long text its two ends are read.

What it can't see: several fields at once, since shares add up to 1; a field that shows in names only; much of other
languages than English with an English encoder. With the starter encoder it gets three of four short requests right;
the weakest fields are philosophy and computer science, with every second (`tests/signals/test_learned_figures.py`).
"""

from __future__ import annotations

from typing import Final

from pydantic import Field

from router.inference.text import TextEncoder
from router.signals.anchors import AnchorClasses, Classes
from router.signals.base import SignalName
from router.signals.classify import ClassesSignal
from router.signals.domain_anchors import SUBJECTS, TOPICS, Subject
from router.signals.settings import SignalSettings, Threshold
from router.signals.texts import WHICH_TEXTS, Over, texts_over

NEAREST: Final = 5
"""Topics of a field whose mean cosine is the field's likeness. From 3 to 6 makes a point's difference."""

TEMPERATURE: Final = 0.04
"""Of the softmax over likenesses, in units of cosine: the value with the least log loss on every fourth question of
MMLU-Redux whose subject belongs to one of the fields (0.02 to 0.08 in steps of 0.01), with all-MiniLM-L6-v2."""


class DomainSettings(SignalSettings):
    """Settings of a `domain` signal."""

    any: tuple[Subject, ...] = Field(SUBJECTS, min_length=1, description="Fields that match; all if not given.")
    threshold: Threshold = Field(0.4, description="Share of the likeliest field from which on it matches.")
    over: Over = Field(
        "latest",
        description=WHICH_TEXTS,
    )

    @property
    def possible_labels(self) -> tuple[str, ...]:
        """See `SignalSettings`."""
        return self.any


def subjects(encoder: TextEncoder) -> Classes:
    """The fourteen fields by their topics."""
    return AnchorClasses(encoder, TOPICS, NEAREST, TEMPERATURE)


def domain_signal(name: SignalName, settings: DomainSettings, classes: Classes) -> ClassesSignal:
    """The signal, over whatever tells the classes apart."""
    return ClassesSignal(name, classes, settings.any, settings.threshold, lambda view: texts_over(view, settings.over))
