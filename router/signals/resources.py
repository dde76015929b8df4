"""What signals are built from: encoders, classifiers, a reader of text in images, and the policy's folder.

Made by the composition root; a family takes what it needs and says so where that is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from router.inference.classifier import Classifier
from router.inference.reading import ImageReader
from router.inference.text import TextEncoder
from router.inference.vision import VisionEncoder
from router.signals.base import SignalName


class SignalSetupError(Exception):
    """A signal that can't work with what is at hand; the message is for the policy's author."""


@dataclass(frozen=True, slots=True)
class Resources:
    """`classifiers` has a key for each pack that a signal's settings name; relative paths start from `base`."""

    text: TextEncoder | None = None
    vision: VisionEncoder | None = None
    classifiers: Mapping[str, Classifier] = field(default_factory=dict)
    reader: ImageReader | None = None
    base: Path = field(default_factory=Path)

    def reader_for(self, name: SignalName, wanted: bool) -> ImageReader | None:
        """The reader where the signal's settings want one, else None; raises SignalSetupError where there is none."""
        if wanted and self.reader is None:
            raise SignalSetupError(
                f"{name}: `read_images` needs a reader of text in images: pip install 'pointsman[ocr]'"
            )
        return self.reader if wanted else None
