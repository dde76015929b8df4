"""From logits to probabilities, in the precision of the logits."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

FloatT = TypeVar("FloatT", np.float32, np.float64)


def sigmoid(logits: NDArray[FloatT]) -> NDArray[FloatT]:
    """Each logit's own probability."""
    # Of this form, because it overflows nowhere.
    each: NDArray[FloatT] = np.tanh(logits * 0.5)
    each += 1.0
    each *= 0.5
    return each


def softmax(logits: NDArray[FloatT]) -> NDArray[FloatT]:
    """Shares along the last axis."""
    shares: NDArray[FloatT] = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares
