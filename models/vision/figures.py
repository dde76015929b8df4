"""What is counted about a tower: accuracy, confusion, recall at a rate of false alarms, and how good a threshold is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from router.evaluation.statistics import wilson

Floats = NDArray[np.float32]


def unit(vectors: Floats) -> Floats:
    """Scale to length one."""
    scaled: Floats = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return scaled


def confusion(truth: Sequence[int], chosen: Sequence[int], count: int) -> NDArray[np.int64]:
    """Rows are the truth."""
    table = np.zeros((count, count), dtype=np.int64)
    np.add.at(table, (np.asarray(truth), np.asarray(chosen)), 1)
    return table


def recall_at(scores: Floats, positive: NDArray[np.bool_], false_alarms: float) -> float:
    """The share of positives above the threshold that lets through at most this share of the negatives."""
    negatives = np.sort(scores[~positive])[::-1]
    allowed = int(false_alarms * len(negatives))
    return float((scores[positive] > negatives[allowed]).mean())


def interval(right: int, count: int) -> tuple[float, float]:
    """Wilson's interval that holds a share in 95 % of cases; everything, of nothing."""
    found = wilson(right, count)
    return (0.0, 1.0) if found is None else (found.low, found.high)


def macro_interval(right: NDArray[np.bool_], truth: NDArray[np.int64], draws: int = 2000) -> tuple[float, float]:
    """The same for the mean over classes, by drawing images anew within each class."""
    rng = np.random.default_rng(0)
    groups = [right[truth == index] for index in np.unique(truth)]
    means = np.mean([rng.binomial(len(group), group.mean(), draws) / len(group) for group in groups], axis=0)
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)


def sigmoid(logits: Floats) -> Floats:
    """The logistic function."""
    values: Floats = (1 / (1 + np.exp(-logits))).astype(np.float32)
    return values


def top1(scores: Floats, truth: NDArray[np.int64], names: Sequence[str]) -> dict[str, object]:
    """Accuracy over all images, its mean over classes, and each class."""
    chosen = scores.argmax(1)
    per_class: Mapping[str, float] = {
        name: float((chosen[truth == index] == index).mean())
        for index, name in enumerate(names)
        if (truth == index).any()
    }
    return {
        "top1": float((chosen == truth).mean()),
        "macro": float(np.mean(list(per_class.values()))),
        "per_class": per_class,
    }
