"""What signals are built from: encoders, heads, classifiers, a reader of text in images, and the policy's folder.

Made by the composition root; a family takes what it needs and says so where that is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from router.inference.classifier import Classifier
from router.inference.head import TextHead
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
    heads: Mapping[str, TextHead] = field(default_factory=dict)
    """Of the text encoder, by name: those that the policy's signals ask for and its pack has."""

    def text_for(self, name: SignalName) -> TextEncoder:
        """The text encoder; raises SignalSetupError where there is none."""
        if self.text is None:
            raise SignalSetupError(f"{name}: needs a text encoder; name one under `encoders`")
        return self.text

    def vision_for(self, name: SignalName) -> VisionEncoder:
        """The vision encoder; raises SignalSetupError where there is none."""
        if self.vision is None:
            raise SignalSetupError(f"{name}: needs a vision encoder; name one under `encoders`")
        return self.vision

    def reader_for(self, name: SignalName, wanted: bool) -> ImageReader | None:
        """The reader where the signal's settings want one, else None; raises SignalSetupError where there is none."""
        if wanted and self.reader is None:
            raise SignalSetupError(
                f"{name}: `read_images` needs a reader of text in images: pip install 'pointsman[ocr]'"
            )
        return self.reader if wanted else None
