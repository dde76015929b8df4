"""The pii head: a label for each token, from four depths of the encoder, how it is written, and its neighbours."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.text.encoder import LAYERS, WIDTH
from router.inference.head_features import SHAPES

INNER = 64
REACH = 5


class Tagger(nn.Module):
    """(n, t, 384) four times and shapes (n, t, S) to logits (n, t, labels)."""

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.depths = nn.ModuleList([nn.Linear(WIDTH, INNER, bias=False) for _ in LAYERS])
        self.written = nn.Linear(SHAPES, INNER)
        self.neighbours = nn.Conv1d(INNER, INNER, REACH, padding=REACH // 2)
        self.shapes_nearby = nn.Conv1d(SHAPES, 16, REACH, padding=REACH // 2)
        self.out = nn.Linear(2 * INNER + 16, labels)
        self.dropout = nn.Dropout(0.25)

    def forward(self, hidden: list[Tensor], shapes: Tensor, there: Tensor) -> Tensor:
        """`there` (n, t) is 1 for tokens and 0 for padding."""
        mixed = self.written(shapes)
        for depth, states in zip(self.depths, hidden, strict=True):
            mixed = mixed + depth(self.dropout(states))
        own = functional.gelu(mixed) * there[:, :, None]
        near = functional.gelu(self.neighbours(self.dropout(own).transpose(1, 2))).transpose(1, 2)
        looks = functional.gelu(self.shapes_nearby(shapes.transpose(1, 2))).transpose(1, 2)
        return self.out(torch.cat([own, near, looks], 2))
