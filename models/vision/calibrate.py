"""Fit the two numbers that turn a cosine into a decision: sigmoid(scale * cosine + bias) >= 0.5 means "matches".

Platt's method over pairs of a held-out image and one phrase, one against the rest, with phrases that trained and
phrases that did not. Pairs are weighed so that every class has the same say, and a true pair as much as prior odds of
one in `CLASSES_IN_DOUBT` suggest: a policy asks about a handful of things, not about two dozen at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .figures import Floats, sigmoid

CLASSES_IN_DOUBT = 8


@dataclass(frozen=True)
class Calibration:
    """The fit, and what it does at a half on the pairs it was fitted to."""

    scale: float
    bias: float
    pairs: int
    recall_at_half: float
    false_alarms_at_half: float


def fit(cosines: Floats, truth: NDArray[np.bool_], weight: NDArray[np.float64]) -> tuple[float, float]:
    """Newton's method on the weighted log likelihood; two parameters, convex."""
    scale, bias = 20.0, -8.0
    x = cosines.astype(np.float64)
    y = truth.astype(np.float64)
    for _ in range(100):
        p = 1 / (1 + np.exp(-(scale * x + bias)))
        error, curve = weight * (p - y), weight * p * (1 - p) + 1e-12
        gradient = np.array([(error * x).sum(), error.sum()])
        hessian = np.array([[(curve * x * x).sum(), (curve * x).sum()], [(curve * x).sum(), curve.sum()]])
        step = np.linalg.solve(hessian + 1e-9 * np.eye(2), gradient)
        step *= min(1.0, 10.0 / max(1e-9, float(np.abs(step).max())))
        scale, bias = scale - float(step[0]), bias - float(step[1])
        if np.abs(step).max() < 1e-7:
            break
    return scale, bias


def calibrate(images: Floats, labels: NDArray[np.int64], phrases: Floats, owners: NDArray[np.int64]) -> Calibration:
    """Fit on every pair of a held-out image and a phrase; owner -1 marks phrases that are true of no image."""
    cosines = images @ phrases.T
    truth = owners[None, :] == labels[:, None]
    per_image = 1.0 / np.bincount(labels, minlength=int(labels.max()) + 1)[labels]
    per_phrase = 1.0 / np.bincount(owners[owners >= 0], minlength=int(owners.max()) + 1)[np.maximum(owners, 0)]
    per_phrase = np.where(owners < 0, 1.0 / max(1, int((owners < 0).sum())), per_phrase)
    weight = per_image[:, None] * per_phrase[None, :]
    positive, negative = weight[truth].sum(), weight[~truth].sum()
    weight = np.where(truth, weight / positive, weight / negative * (CLASSES_IN_DOUBT - 1))
    scale, bias = fit(cosines.ravel(), truth.ravel(), weight.ravel())
    said = sigmoid(scale * cosines + bias) >= 0.5
    return Calibration(scale, bias, int(truth.size), float(said[truth].mean()), float(said[~truth].mean()))
