"""The domain head as a part of the graph."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from models.text.encoder import WIDTH
from router.signals.domain_anchors import SUBJECTS

NEAREST = 8
UNIT = 0.04
"""Of cosine, in the softmax over likenesses; as for the `domain` signal's topics."""
NOBODY = -4.0


class DomainHead(nn.Module):
    """Unit vectors (n, 384) to log-probabilities (n, fields): a linear layer's plus those of the nearest neighbours.

    Labelled texts stand field by field, each field filled up to the size of the largest by rows that nothing is like.
    """

    def __init__(self, places: int) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, len(SUBJECTS))
        self.register_buffer("neighbours", torch.zeros(len(SUBJECTS) * places, WIDTH))
        self.register_buffer("missing", torch.zeros(len(SUBJECTS) * places))
        self.places = places

    @classmethod
    def of(cls, linear: nn.Linear, vectors: NDArray[np.float32], labels: NDArray[np.int64]) -> DomainHead:
        """With these labelled texts."""
        places = int(np.bincount(labels, minlength=len(SUBJECTS)).max())
        head = cls(places)
        head.linear.load_state_dict(linear.state_dict())
        head.missing.fill_(NOBODY)
        for label in range(len(SUBJECTS)):
            own = torch.from_numpy(vectors[labels == label])
            start = label * places
            head.neighbours[start : start + len(own)] = own
            head.missing[start : start + len(own)] = 0.0
        return head.eval()

    def forward(self, embedding: Tensor) -> Tensor:
        """See the class."""
        likeness = embedding @ self.neighbours.T + self.missing
        nearest = likeness.reshape(-1, len(SUBJECTS), self.places).topk(NEAREST, dim=2).values.mean(2)
        return torch.log_softmax(self.linear(embedding), 1) + torch.log_softmax(nearest / UNIT, 1)
