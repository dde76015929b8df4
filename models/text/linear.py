"""Logistic regression with weights for rows and a pull towards nothing, by L-BFGS: small, exact enough and seedless."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional


def fit(
    features: NDArray[np.float32], targets: NDArray[np.int64], weights: NDArray[np.float32], classes: int, decay: float
) -> nn.Linear:
    """The linear layer (d, classes) of least weighted cross entropy plus `decay` times the squared weights.

    `weights` need not add up to anything. With one class the targets are 0 or 1 and the loss is the binary one.
    """
    torch.manual_seed(0)
    x, y, w = torch.from_numpy(features), torch.from_numpy(targets), torch.from_numpy(weights / weights.sum())
    layer = nn.Linear(x.shape[1], classes)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    optimiser = torch.optim.LBFGS(
        layer.parameters(), max_iter=300, line_search_fn="strong_wolfe", tolerance_change=1e-7
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        logits = layer(x)
        if classes == 1:
            each = functional.binary_cross_entropy_with_logits(logits[:, 0], y.float(), reduction="none")
        else:
            each = functional.cross_entropy(logits, y, reduction="none")
        loss = (each * w).sum() + decay * layer.weight.square().sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    return layer.eval()


def balanced(groups: list[tuple[int, float]], labels: NDArray[np.int64]) -> NDArray[np.float32]:
    """Weights of rows: each source (its size, its share of the whole) weighs its share, its labels alike within it."""
    weights = np.zeros(len(labels), np.float32)
    start = 0
    for size, share in groups:
        own = labels[start : start + size]
        counts = np.bincount(own)
        present = (counts > 0).sum()
        weights[start : start + size] = share / present / counts[own]
        start += size
    return weights
