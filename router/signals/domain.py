"""`domain`: the field of knowledge that the request is about, one of fourteen.

    domain:
      legal_or_medical: {any: [law, health], threshold: 0.4}
      topic: {}

The label is the field: biology, business, chemistry, computer science, economics, engineering, health, history, law,
math, other, philosophy, physics or psychology; `other` is everyday life. With `any` only those fields match; without it
every one does, which is for conditions that ask for the label. Fields are told apart by a head of the text pack, or,
where it has none, by their likeness to topics (`domain_anchors.py`); the score is the field's share among all fourteen.

Costs a text encoder's pass for each window that is not cached, and without a head one for each of 308 topics when a
worker starts. Of a long text its two ends are read.

What it can't see: several fields at once, since shares add up to 1; a field that shows in names only; much of other
languages than English with an English encoder. The starter's head gets 78 of 100 short requests right, and 86 of those
that it says from its threshold on; likeness to topics 75 and 85. The weakest field is philosophy, with every second
(`tests/signals/test_learned_figures.py`).
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from router.signals.anchors import AnchorClasses, Classes
from router.signals.base import SignalName
from router.signals.classify import ClassesSignal
from router.signals.domain_anchors import SUBJECTS, TOPICS, Subject
from router.signals.heads import WHERE_THERE_IS_ONE, HeadClasses, required_head, usual_head
from router.signals.resources import Resources, SignalSetupError
from router.signals.settings import SignalSettings, Threshold
from router.signals.texts import WHICH_TEXTS, Over, texts_over

NEAREST: Final = 5
"""Topics of a field whose mean cosine is the field's likeness. From 3 to 6 makes a point's difference."""

TEMPERATURE: Final = 0.04
"""Of the softmax over likenesses, in units of cosine: the value with the least log loss on every fourth question of
MMLU-Redux whose subject belongs to one of the fields (0.02 to 0.08 in steps of 0.01), with all-MiniLM-L6-v2."""


HEAD: Final = "domain"

THRESHOLD: Final = 0.4
"""With anchors."""


class DomainSettings(SignalSettings):
    """Settings of a `domain` signal."""

    any: tuple[Subject, ...] = Field(SUBJECTS, min_length=1, description="Fields that match; all if not given.")
    method: Literal["head", "anchors"] | None = Field(
        None,
        description="head: the text pack's head, which was trained for it; anchors: likeness to topics, with any text "
        f"encoder. {WHERE_THERE_IS_ONE} anchors.",
    )
    threshold: Threshold | None = Field(
        None,
        description="Share of the likeliest field from which on it matches. Not given: the head's own, which its pack "
        f"names; {THRESHOLD} with anchors.",
    )
    over: Over = Field(
        "latest",
        description=WHICH_TEXTS,
    )

    @property
    def heads(self) -> tuple[str, ...]:
        """See `SignalSettings`."""
        return () if self.method == "anchors" else (HEAD,)

    @property
    def possible_labels(self) -> tuple[str, ...]:
        """See `SignalSettings`."""
        return self.any


def build_domain(name: SignalName, settings: DomainSettings, resources: Resources) -> ClassesSignal:
    """The signal over what tells the fields apart; SignalSetupError where that is not at hand."""
    encoder = resources.text_for(name)
    head = required_head(name, HEAD, resources) if settings.method == "head" else None
    if settings.method is None:
        head = usual_head(HEAD, resources)
    classes: Classes
    if head is None:
        classes, usual = AnchorClasses(encoder, TOPICS, NEAREST, TEMPERATURE), THRESHOLD
    else:
        if strange := sorted(set(SUBJECTS) ^ set(head.labels)):
            raise SignalSetupError(f"{name}: the head {HEAD!r} has other fields than these: {', '.join(strange)}")
        classes, usual = HeadClasses(head), head.part.threshold
    threshold = usual if settings.threshold is None else settings.threshold
    return ClassesSignal(name, classes, settings.any, threshold, lambda view: texts_over(view, settings.over))
