"""The jailbreak head: one encoder layer of its own over pairs of tokens, pooled with what else is known of a window.

It begins as a copy of the encoder's fifth layer and reads the output of the fourth. Two tokens are one place, which
halves what it costs; what stands in a window counts, hardly where.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.text.encoder import WIDTH
from router.inference.head_features import PATTERNS

HEADS = 12
SIZE = WIDTH // HEADS
FAR = -1e4


class Layer(nn.Module):
    """BERT's encoder layer; queries, keys and values in one product."""

    def __init__(self, inner: int = 4 * WIDTH) -> None:
        super().__init__()
        self.mixed = nn.Linear(WIDTH, 3 * WIDTH)
        self.joined = nn.Linear(WIDTH, WIDTH)
        self.first_norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.wide = nn.Linear(WIDTH, inner)
        self.narrow = nn.Linear(inner, WIDTH)
        self.second_norm = nn.LayerNorm(WIDTH, eps=1e-12)

    def begin_as(self, weights: Mapping[str, Tensor], layer: int) -> None:
        """Take the encoder's own layer, counted from 0, out of its official weights."""
        under = f"encoder.layer.{layer}."

        def both(linear: nn.Linear | nn.LayerNorm, *names: str) -> None:
            for kind in ("weight", "bias"):
                getattr(linear, kind).data.copy_(torch.cat([weights[f"{under}{name}.{kind}"] for name in names]))

        both(self.mixed, "attention.self.query", "attention.self.key", "attention.self.value")
        both(self.joined, "attention.output.dense")
        both(self.first_norm, "attention.output.LayerNorm")
        both(self.wide, "intermediate.dense")
        both(self.narrow, "output.dense")
        both(self.second_norm, "output.LayerNorm")

    def forward(self, states: Tensor, blocked: Tensor | None = None) -> Tensor:
        """(n, p, 384) to the same; `blocked` (n, 1, 1, p) is 0 where there is something, which is everywhere if not
        given."""
        n = int(states.shape[0])
        query, key, value = self.mixed(states).view(n, -1, 3, HEADS, SIZE).permute(2, 0, 3, 1, 4).unbind(0)
        likeness = query @ key.transpose(-1, -2) * SIZE**-0.5
        shares = torch.softmax(likeness if blocked is None else likeness + blocked, -1)
        seen = (shares @ value).transpose(1, 2).reshape(n, -1, WIDTH)
        states = self.first_norm(states + self.joined(seen))
        return self.second_norm(states + self.narrow(functional.gelu(self.wide(states))))


class Branch(nn.Module):
    """Window in, logit out."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = Layer()
        self.hidden = nn.Linear(3 * WIDTH + PATTERNS, 64)
        self.out = nn.Linear(64, 1)
        self.dropout = nn.Dropout(0.2)

    def forward(self, pairs: Tensor, means: Tensor, patterns: Tensor, there: Tensor | None = None) -> Tensor:
        """(n, 1) for pairs (n, p, 384), means of layer 6 (n, 384), patterns (n, P); `there` (n, p) is 0 for padding."""
        if there is None:
            states = self.layer(pairs)
            mean, greatest = states.mean(1), states.amax(1)
        else:
            beyond = (1.0 - there) * FAR
            states = self.layer(pairs, beyond[:, None, None, :])
            mean = (states * there[:, :, None]).sum(1) / there.sum(1, keepdim=True)
            greatest = (states + beyond[:, :, None]).amax(1)
        known = self.dropout(torch.cat([mean, greatest, means], 1))
        return self.out(functional.gelu(self.hidden(torch.cat([known, patterns], 1))))
