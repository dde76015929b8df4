"""`feedback`: what the user says about the answer that came before.

    feedback:
      unhappy: {any: [dissatisfied, wrong_answer], threshold: 0.5}

The label is `satisfied`, `dissatisfied`, `wrong_answer`, `needs_clarification`, or `none` where the turn simply goes
on. Judged is the last user turn, if the assistant has answered before; it is compared with examples of each label
(`feedback_anchors.py`), and the score is the label's share among all five.

Costs a text encoder's pass for each window that is not cached. Of a long turn its two ends are read. What it can't see:
whether the complaint is justified; irony; a remark inside a long turn that mostly goes on; displeasure that is shown
rather than said, by asking once more (`reask`) or by leaving. Complaint and correction are near neighbours: ask for
both where it matters. With an English encoder it reads English.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from router.inference.text import TextEncoder
from router.request.view import RequestView, TextSpan
from router.signals.anchors import AnchorClasses, Classes
from router.signals.base import SignalName
from router.signals.classify import ClassesSignal
from router.signals.feedback_anchors import EXAMPLES
from router.signals.settings import SignalSettings, Threshold

NEAREST: Final = 3
"""Examples of a label whose mean cosine is the label's likeness."""

TEMPERATURE: Final = 0.05
"""Of the softmax over the five likenesses, in units of cosine."""

Verdict = Literal["satisfied", "dissatisfied", "wrong_answer", "needs_clarification"]


class FeedbackSettings(SignalSettings):
    """Settings of a `feedback` signal."""

    any: tuple[Verdict, ...] = Field(
        ("satisfied", "dissatisfied", "wrong_answer", "needs_clarification"),
        min_length=1,
        description="Labels that match; all but none if not given.",
    )
    threshold: Threshold = Field(0.5, description="Share of the likeliest label from which on it matches.")

    @property
    def possible_labels(self) -> tuple[str, ...]:
        """See `SignalSettings`."""
        return self.any


def feedback_classes(encoder: TextEncoder) -> Classes:
    """The five labels by their examples."""
    return AnchorClasses(encoder, EXAMPLES, NEAREST, TEMPERATURE)


def feedback_signal(name: SignalName, settings: FeedbackSettings, classes: Classes) -> ClassesSignal:
    """The signal, over whatever tells the classes apart."""
    return ClassesSignal(name, classes, settings.any, settings.threshold, texts_after_an_answer)


def texts_after_an_answer(view: RequestView) -> tuple[TextSpan, ...]:
    """The texts of the last user turn, if an assistant's turn stands before it."""
    for index, turn in reversed(list(enumerate(view.turns))):
        if turn.role == "user":
            answered = any(earlier.role == "assistant" for earlier in view.turns[:index])
            return view.latest_user_texts if answered else ()
    return ()
