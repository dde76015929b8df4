"""What all sections of the policy file share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A mapping of the policy: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)
