"""What signals are given to see with. Which towers there are is the policy's choice."""

from __future__ import annotations

from dataclasses import dataclass

from router.inference.text import TextEncoder
from router.inference.vision import VisionEncoder


@dataclass(frozen=True, slots=True)
class Encoders:
    """The towers that the policy names; None where it names none."""

    text: TextEncoder | None
    vision: VisionEncoder | None
