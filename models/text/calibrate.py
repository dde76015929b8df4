"""Calibration: a temperature for softmax heads, Platt's scale and bias for sigmoid heads, thresholds, reliability."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from router.evaluation import statistics

Floats = NDArray[np.float64]


def temperature(logits: NDArray[np.floating], labels: NDArray[np.int64]) -> float:
    """The divisor of logits (n, c) with the least log loss, by a search on a fine grid."""
    grid = np.exp(np.linspace(math.log(0.2), math.log(8), 120))
    return float(min(grid, key=lambda divisor: _log_loss(logits.astype(np.float64) / divisor, labels)))


def _log_loss(logits: Floats, labels: NDArray[np.int64]) -> float:
    shifted = logits - logits.max(axis=1, keepdims=True)
    own = shifted[np.arange(len(labels)), labels]
    return float((np.log(np.exp(shifted).sum(axis=1)) - own).mean())


def platt(negative: Floats, positive: Floats) -> tuple[float, float]:
    """Scale and bias with the least log loss where both sides weigh the same, by Newton's method.

    Targets are Platt's, a little less than sure, so that sides that part cleanly have an answer too.
    """
    x = np.concatenate([negative, positive])
    low, high = 1 / (len(negative) + 2), (len(positive) + 1) / (len(positive) + 2)
    y = np.concatenate([np.full(len(negative), low), np.full(len(positive), high)])
    w = np.concatenate([np.full(len(negative), 0.5 / len(negative)), np.full(len(positive), 0.5 / len(positive))])
    design = np.stack([x, np.ones_like(x)], axis=1)
    found = np.array([1.0, 0.0])
    for _ in range(100):
        p = sigmoid(design @ found)
        gradient = design.T @ (w * (p - y))
        hessian = (design * (w * p * (1 - p))[:, None]).T @ design + 1e-9 * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        found = found - step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-9:
            break
    return float(found[0]), float(found[1])


def sigmoid(x: NDArray[np.floating]) -> Floats:
    """Without overflow."""
    halves: Floats = 0.5 * (1 + np.tanh(0.5 * np.asarray(x, np.float64)))
    return halves


def threshold(negative: Floats, rate: float = 0.01) -> float:
    """The least bound that at most `rate` of the negatives reach, halfway to the next one above it."""
    ordered = np.sort(negative)[::-1]
    allowed = int(len(ordered) * rate)
    above = ordered[allowed - 1] if allowed else 1.0
    return float((ordered[allowed] + above) / 2)


def rising(values: Floats) -> Floats:
    """The curve that never falls and is nearest to the values in squares (isotonic regression), (n,) of (n,)."""
    blocks: list[tuple[float, int]] = []
    for value in values:
        total, count = float(value), 1
        while blocks and blocks[-1][0] * count >= total * blocks[-1][1]:
            before, several = blocks.pop()
            total, count = total + before, count + several
        blocks.append((total, count))
    return np.repeat([total / count for total, count in blocks], [count for _, count in blocks])


def reliability(
    probabilities: Floats, hits: NDArray[np.bool_], weights: Floats, bins: int = 10
) -> list[tuple[float, float, int]]:
    """By tenths of probability: mean probability, weighted share of hits, how many; empty tenths are left out."""
    rows = []
    places = np.minimum((probabilities * bins).astype(int), bins - 1)
    for number in range(bins):
        here = places == number
        if here.any():
            share = np.average(hits[here], weights=weights[here])
            rows.append((float(np.average(probabilities[here], weights=weights[here])), float(share), int(here.sum())))
    return rows


def softmax(logits: NDArray[np.floating]) -> Floats:
    """Shares along the last axis."""
    shares: Floats = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share, Wilson's; everything, of nothing."""
    found = statistics.wilson(hits, of)
    return (0.0, 1.0) if found is None else (found.low, found.high)


def share(hits: int, of: int) -> dict[str, Any]:
    """A share with its interval."""
    low, high = wilson(hits, of)
    return {"share": round(hits / max(of, 1), 4), "n": of, "low": round(low, 4), "high": round(high, 4)}
