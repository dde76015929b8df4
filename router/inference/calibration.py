"""Logits of a pack's heads to calibrated probabilities.

A window has only a handful of numbers for each head, so that what counts is how few operations on arrays it takes: all
sigmoids of heads that judge texts are one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from router.inference.activation import sigmoid, softmax
from router.packs.heads import Head

Floats = NDArray[np.float32]


class Calibration:
    """Of these heads, in their order."""

    def __init__(self, heads: Sequence[Head]) -> None:
        self._heads = tuple(heads)
        self._joined = [i for i, head in enumerate(heads) if (head.level, head.activation) == ("text", "sigmoid")]
        sizes = [len(heads[i].labels) for i in self._joined]
        self._ends = np.cumsum(sizes).tolist()
        self._scales = np.repeat([heads[i].scale for i in self._joined], sizes).astype(np.float32)
        self._biases = np.repeat([heads[i].bias for i in self._joined], sizes).astype(np.float32)

    def probabilities(self, logits: Sequence[Floats]) -> dict[str, Floats]:
        """Read-only, by the heads' names; `logits` are one window's of each head, (labels,) or (t, labels)."""
        found: list[Floats | None] = [None] * len(self._heads)
        if self._joined:
            every = np.concatenate([logits[i] for i in self._joined])
            every = sigmoid(every * self._scales + self._biases)
            every.flags.writeable = False
            for i, end in zip(self._joined, self._ends, strict=True):
                found[i] = every[end - len(self._heads[i].labels) : end]
        return {
            head.name: _alone(head, each) if known is None else known
            for head, each, known in zip(self._heads, logits, found, strict=True)
        }


def _alone(head: Head, logits: Floats) -> Floats:
    if head.activation == "softmax":
        found = softmax(logits * np.float32(1.0 / head.temperature))
    else:
        found = sigmoid(logits * np.float32(head.scale) + np.float32(head.bias))
    found.flags.writeable = False
    return found
