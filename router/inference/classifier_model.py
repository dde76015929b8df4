"""A text classifier by itself: tokenise, forward, probabilities of its labels.

Synchronous and without caches, like `text_model.py`, whose tokenising and windows it shares. What a probability means
for a request is a signal's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from router.inference.tagging import PlacedTokens
from router.inference.text_model import Piece, Tokens, WindowModel
from router.packs.manifest import TextClassifier


class ClassifierModel(WindowModel):
    """Tokenizer and session of one classifier. Its methods may run in several threads at once."""

    def __init__(self, tower: TextClassifier, folder: Path) -> None:
        """Open what `lay_out` gave; raises PackError."""
        super().__init__(tower, folder)
        self.tower: TextClassifier = tower

    def join(self, pieces: Sequence[Piece]) -> PlacedTokens:
        """As of any text, with each token's characters, which a token classifier's answer is about."""
        tokens = super().join(pieces)
        ranges = np.concatenate([piece.ranges for piece in pieces])
        return PlacedTokens(tokens.ids, tokens.starts, tokens.ends, tokens.spans, ranges)

    def body(self, row: NDArray[np.float32], tokens: Tokens, index: int) -> NDArray[np.float32]:
        """The part (t, labels) of a window's row that is about the text's own tokens."""
        start = len(self._prefix)
        return row[start : start + tokens.ends[index] - tokens.starts[index]]

    def probabilities(self, windows: Sequence[NDArray[np.int32]]) -> NDArray[np.float64]:
        """(n, labels) float64, or (n, t, labels) of a token classifier, whose rows of padding mean nothing."""
        return self.activate(self.forward(windows))

    def activate(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """Probabilities of logits (..., labels), calibrated by the temperature."""
        scaled = logits.astype(np.float64) / self.tower.temperature
        if self.tower.activation == "sigmoid":
            each: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-scaled))
            return each
        exponents = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
        shares: NDArray[np.float64] = exponents / exponents.sum(axis=-1, keepdims=True)
        return shares
