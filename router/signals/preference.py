"""`preference`: which of several kinds of request, described in words, this one is.

    preference:
      kind:
        of:
          code_generation: [write, fix or explain source code, Write a Python script that renames files.]
          casual_chat: small talk and chatting about everyday life
          translation: translate a text into another language
        threshold: 0.25

Each kind has a description, some examples, or both. Its likeness to the request is the cosine of the nearest of them;
the label is the likeliest kind, and the score its likeness. It matches from `threshold` on if the kind leads the next
one by `margin`, and, with `any`, if it is one of those. Ask for the kind by its label: {preference: kind, label:
translation}.

Costs a text encoder's pass for each window that is not cached. Of a long text its two ends are read, and their mean
counts. What it can't see: requests of two kinds at once; what descriptions leave unsaid; negation ("no code, please").
Two or three examples in the words of your users are worth more than a careful definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from router.inference.executor import Overloaded
from router.inference.text import TextEncoder
from router.request.view import RequestView
from router.signals.anchors import NOT_A_NUMBER, AnchorClasses, read_ends, unit_interval
from router.signals.base import Cost, Evidence, Observation, SignalName, failed, observed, shed
from router.signals.settings import Phrase, Phrases, SignalSettings, Threshold
from router.signals.texts import WHICH_TEXTS, Over, texts_over

Description = Annotated[
    Phrases,
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}]}
    ),
]
"""One text or several."""


class PreferenceSettings(SignalSettings):
    """Settings of a `preference` signal."""

    of: Mapping[Phrase, Description] = Field(
        min_length=2, description="Kinds of request by name, each with a description, examples, or both."
    )
    any: tuple[Phrase, ...] | None = Field(None, min_length=1, description="Kinds that match; all if not given.")
    threshold: Threshold = Field(0.25, description="Cosine of the likeliest kind from which on it matches.")
    margin: float = Field(0.0, ge=0, le=1, description="Cosine by which it has to lead the next kind.")
    over: Over = Field(
        "latest",
        description=WHICH_TEXTS,
    )

    @model_validator(mode="after")
    def _names_its_own(self) -> PreferenceSettings:
        if strange := [name for name in self.any or () if name not in self.of]:
            raise ValueError(f"any: {strange[0]!r} is none of the kinds: {', '.join(self.of)}")
        return self

    @property
    def possible_labels(self) -> tuple[str, ...]:
        """See `SignalSettings`."""
        return self.any or tuple(self.of)


class PreferenceSignal:
    """The kind whose nearest text is nearest."""

    cost = Cost.TEXT_MODEL

    def __init__(self, name: SignalName, settings: PreferenceSettings, encoder: TextEncoder) -> None:
        self.name = name
        self._settings = settings
        self._encoder = encoder
        self._wanted = frozenset(settings.of if settings.any is None else settings.any)
        self._kinds = AnchorClasses(encoder, settings.of, nearest=1, temperature=1.0)

    async def prepare(self) -> None:
        """Embed descriptions and examples."""
        await self._kinds.prepare()

    async def observe(self, view: RequestView) -> Observation:
        """The likeliest kind of all texts together; not matched where there is no text."""
        pack = self._encoder.pack
        try:
            windows = await read_ends(self._encoder, texts_over(view, self._settings.over))
        except Overloaded:
            return shed(pack)
        if not windows:
            return observed(False, 0.0, pack=pack)
        rows = self._kinds.likeness(np.stack([window.embedding for window in windows]))
        if not np.isfinite(rows).all():
            return failed(NOT_A_NUMBER, (Evidence(windows[0].pointer, detail=NOT_A_NUMBER),), pack)
        likeness = rows.mean(axis=0)
        first, second = (int(index) for index in np.argsort(-likeness, kind="stable")[:2])
        lead = float(likeness[first] - likeness[second])
        label, score = self._kinds.labels[first], unit_interval(float(likeness[first]))
        matched = label in self._wanted and score >= self._settings.threshold and lead >= self._settings.margin
        most = windows[int(rows[:, first].argmax())]
        detail = f"leads {self._kinds.labels[second]} by {lead:.3f}"
        evidence = Evidence(most.pointer, label=label, score=score, span=most.span, detail=detail)
        return observed(matched, score, label=label, evidence=(evidence,), pack=pack)
