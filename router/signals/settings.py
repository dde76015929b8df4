"""What the settings of every signal family have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints


class SignalSettings(BaseModel):
    """Settings of one signal, as a policy writes them; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def classifier_packs(self) -> tuple[str, ...]:
        """Packs, by name or by path, that the signal asks for classifications."""
        return ()

    @property
    def heads(self) -> tuple[str, ...]:
        """Heads of the text encoder that the signal asks, where its pack has them."""
        return ()

    @property
    def possible_labels(self) -> tuple[str, ...] | None:
        """Labels that observations can have; None where only the request or a pack can tell."""
        return None

    @property
    def has_number(self) -> bool:
        """Whether observations have a number, where the family has numbers at all."""
        return True

    @property
    def matching(self) -> tuple[float | None, float | None] | None:
        """The closed range of an observation's number in which it matches; None where there is more to it."""
        return None

    @property
    def counted(self) -> Mapping[str, tuple[int | None, int | None]] | None:
        """Counts of the request (`images`, `tools`, ...) and closed ranges: it matches exactly when all lie there."""
        return None

    @property
    def implied(self) -> Mapping[str, tuple[int | None, int | None]]:
        """Counts and closed ranges in which they lie whenever the signal matches."""
        return {}

    @property
    def trusted_headers(self) -> tuple[str, ...]:
        """Request headers, lower case, that the signal reads; the policy has to list them as trusted."""
        return ()

    @property
    def reads_images(self) -> bool:
        """Whether the signal needs the text inside images."""
        return False


Phrase = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""A word or phrase of the policy, never blank."""

Phrases = Annotated[tuple[Phrase, ...], Field(min_length=1)]
"""At least one phrase."""

Threshold = Annotated[float, Field(ge=0, le=1)]
"""A score from which on a signal matches."""
