"""What the settings of every signal family have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints


class SignalSettings(BaseModel):
    """Settings of one signal, as a policy writes them; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Phrase = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""A word or phrase of the policy, never blank."""

Phrases = Annotated[tuple[Phrase, ...], Field(min_length=1)]
"""At least one phrase."""

Threshold = Annotated[float, Field(ge=0, le=1)]
"""A score from which on a signal matches."""
