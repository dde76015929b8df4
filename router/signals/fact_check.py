"""`fact_check`: requests whose answer states facts about the world that somebody could look up.

    fact_check:
      needs_facts: {threshold: 0.7}

The label is `facts` or `no_facts`; the latter are stories, role play, code, arithmetic, rewriting, small talk and
errands. The request is compared with examples of both (`fact_check_anchors.py`), and the score is the share of `facts`.

Costs a text encoder's pass for each window that is not cached. Of a long text its two ends are read. What it can't see:
whether anything that the model will answer is true; facts that a story or a program needs on its way; questions about
what the request itself brings along, which look like any other question.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from router.inference.text import TextEncoder
from router.signals.anchors import AnchorClasses, Classes
from router.signals.base import SignalName
from router.signals.classify import ClassesSignal
from router.signals.fact_check_anchors import EXAMPLES
from router.signals.settings import SignalSettings, Threshold
from router.signals.texts import WHICH_TEXTS, Over, texts_over

NEAREST: Final = 5
"""Examples of a class whose mean cosine is the class's likeness."""

TEMPERATURE: Final = 0.04
"""Of the softmax over the two likenesses, in units of cosine; as for `domain`."""


class FactCheckSettings(SignalSettings):
    """Settings of a `fact_check` signal."""

    any: tuple[Literal["facts", "no_facts"], ...] = Field(
        ("facts",), min_length=1, description="Labels that match: facts, no_facts."
    )
    threshold: Threshold = Field(0.5, description="Share from which on it matches.")
    over: Over = Field(
        "latest",
        description=WHICH_TEXTS,
    )

    @property
    def possible_labels(self) -> tuple[str, ...]:
        """See `SignalSettings`."""
        return self.any


def fact_classes(encoder: TextEncoder) -> Classes:
    """The two kinds of request by their examples."""
    return AnchorClasses(encoder, EXAMPLES, NEAREST, TEMPERATURE)


def fact_check_signal(name: SignalName, settings: FactCheckSettings, classes: Classes) -> ClassesSignal:
    """The signal, over whatever tells the classes apart."""
    return ClassesSignal(name, classes, settings.any, settings.threshold, lambda view: texts_over(view, settings.over))
