"""What signals are given to see with. Which towers and classifiers there are is the policy's choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from router.inference.classifier import Classifier
from router.inference.head import TextHead
from router.inference.remote.session import RemoteSession
from router.inference.text import TextEncoder
from router.inference.vision import VisionEncoder


@dataclass(frozen=True, slots=True)
class Encoders:
    """The towers that the policy names, None where it names none, and the classifiers that its signals name.

    A pack that two references name is one classifier under both.
    """

    text: TextEncoder | None
    vision: VisionEncoder | None
    classifiers: Mapping[str, Classifier] = field(default_factory=dict)
    heads: Mapping[str, TextHead] = field(default_factory=dict)
    """Those of the text encoder that were asked for, by their names."""

    @property
    def remotes(self) -> tuple[RemoteSession, ...]:
        """The models that other servers run."""
        given = (encoder.remote for encoder in (self.text, self.vision) if encoder is not None)
        return tuple(remote for remote in given if remote is not None)

    @property
    def distinct_classifiers(self) -> tuple[Classifier, ...]:
        """Each classifier once."""
        return tuple({each.pack: each for each in self.classifiers.values()}.values())
