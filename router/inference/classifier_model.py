"""A text classifier by itself: tokenise, forward, probabilities of its labels.

Synchronous and without caches, like `text_model.py`, whose tokenising and windows it shares. What a probability means
for a request is a signal's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from router.inference.activation import sigmoid, softmax
from router.inference.text_model import WindowModel
from router.packs.manifest import TextClassifier


class ClassifierModel(WindowModel):
    """Tokenizer and session of one classifier. Its methods may run in several threads at once."""

    def __init__(self, tower: TextClassifier, folder: Path) -> None:
        """Open what `lay_out` gave; raises PackError."""
        super().__init__(tower, folder)
        self.tower: TextClassifier = tower

    def probabilities(self, windows: Sequence[NDArray[np.int32]]) -> NDArray[np.float64]:
        """(n, labels) float64, or (n, t, labels) of a token classifier, whose rows of padding mean nothing."""
        return self.activate(self.forward(windows))

    def activate(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """Probabilities of logits (..., labels), calibrated by the temperature."""
        scaled = logits.astype(np.float64) / self.tower.temperature
        return sigmoid(scaled) if self.tower.activation == "sigmoid" else softmax(scaled)
