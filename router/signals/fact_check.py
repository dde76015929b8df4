"""`fact_check`: requests whose answer states facts about the world that somebody could look up.

    fact_check:
      needs_facts: {threshold: 0.7}

The label is `facts` or `no_facts`; the latter are stories, role play, code, arithmetic, rewriting, small talk and
errands. The request is compared with examples of both (`fact_check_anchors.py`), and the score is the share of `facts`.
With `method: head` a head of the text pack tells them apart; the starter's does so about as well, with a threshold of
its own for few false alarms.

Costs a text encoder's pass for each window that is not cached. Of a long text its two ends are read. What it can't see:
whether anything that the model will answer is true; facts that a story or a program needs on its way; questions about
what the request itself brings along, which look like any other question.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from router.signals.anchors import AnchorClasses, Classes
from router.signals.base import SignalName
from router.signals.classify import ClassesSignal
from router.signals.fact_check_anchors import EXAMPLES
from router.signals.heads import HeadClasses, required_head
from router.signals.resources import Resources, SignalSetupError
from router.signals.settings import SignalSettings, Threshold
from router.signals.texts import WHICH_TEXTS, Over, texts_over

NEAREST: Final = 5
"""Examples of a class whose mean cosine is the class's likeness."""

TEMPERATURE: Final = 0.04
"""Of the softmax over the two likenesses, in units of cosine; as for `domain`."""


HEAD: Final = "fact_check"
LABELS: Final = ("facts", "no_facts")

THRESHOLD: Final = 0.5
"""With examples."""


class FactCheckSettings(SignalSettings):
    """Settings of a `fact_check` signal."""

    any: tuple[Literal["facts", "no_facts"], ...] = Field(
        ("facts",), min_length=1, description="Labels that match: facts, no_facts."
    )
    method: Literal["examples", "head"] = Field(
        "examples",
        description="examples: likeness to examples, with any text encoder; head: the text pack's head, which was "
        "trained for it.",
    )
    threshold: Threshold | None = Field(
        None,
        description=f"Share from which on it matches. Not given: {THRESHOLD}; of the head, where facts alone are asked "
        "for, its own.",
    )
    over: Over = Field(
        "latest",
        description=WHICH_TEXTS,
    )

    @property
    def heads(self) -> tuple[str, ...]:
        """See `SignalSettings`."""
        return (HEAD,) if self.method == "head" else ()

    @property
    def possible_labels(self) -> tuple[str, ...]:
        """See `SignalSettings`."""
        return self.any


def build_fact_check(name: SignalName, settings: FactCheckSettings, resources: Resources) -> ClassesSignal:
    """The signal over what tells the two kinds apart; SignalSetupError where that is not at hand."""
    encoder = resources.text_for(name)
    usual = THRESHOLD
    classes: Classes = AnchorClasses(encoder, EXAMPLES, NEAREST, TEMPERATURE)
    if settings.method == "head":
        head = required_head(name, HEAD, resources)
        if head.labels != LABELS[:1]:
            raise SignalSetupError(f"{name}: the head {HEAD!r} has other labels than {LABELS[0]!r} alone")
        classes = HeadClasses(head, LABELS)
        # The head's own is for finding facts, and says nothing of their absence.
        usual = head.part.threshold if settings.any == LABELS[:1] else THRESHOLD
    threshold = usual if settings.threshold is None else settings.threshold
    return ClassesSignal(name, classes, settings.any, threshold, lambda view: texts_over(view, settings.over))
