"""Figures about answers, with intervals that say how much they can be trusted. Plain functions of plain numbers.

Intervals are at 95 %: Wilson's score interval for shares, the percentile bootstrap, with a seed, for the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Z: Final = 1.959963984540054
"""The normal distribution's 97.5th percentile."""

RESAMPLES: Final = 1000
SEED: Final = 20_240_601
BINS: Final = 10


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its interval, all three in 0-1, and the number of answers that it rests on."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Bin:
    """Scores from `low` up to `high`: how many, their mean, and the share of them that is truly positive."""

    low: float
    high: float
    n: int
    mean: float
    share: float


@dataclass(frozen=True, slots=True)
class Point:
    """What a threshold does: the share of negatives and of positives whose score reaches it."""

    threshold: float
    false_positives: float
    recall: float


def wilson(hits: int, n: int) -> Figure | None:
    """A share with Wilson's score interval (Wilson 1927); None of nothing. ValueError unless 0 <= hits <= n."""
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} of {n} is no share")
    return None if n == 0 else Figure(hits / n, *_wilson(hits / n, n), n)


def _wilson(share: float, n: int) -> tuple[float, float]:
    middle = share + Z * Z / (2 * n)
    half = Z * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    whole = 1 + Z * Z / n
    # Rounding may put an end a hair beyond the share itself.
    return max(0.0, min(share, (middle - half) / whole)), min(1.0, max(share, (middle + half) / whole))


def auc(positives: Floats, negatives: Floats) -> float:
    """The probability that a positive has a higher score than a negative, ties half; neither may be empty."""
    ordered = np.sort(negatives)
    below = np.searchsorted(ordered, positives, "left")
    upto = np.searchsorted(ordered, positives, "right")
    return float((below + upto).sum() / (2 * len(positives) * len(negatives)))


def recall_at(positives: Floats, negatives: Floats, rate: float) -> float:
    """The highest recall of any threshold that at most a share `rate` of the negatives reaches; neither may be empty.

    With fewer than 1 / rate negatives that is the share of positives above every negative.
    """
    return float(np.mean(positives > highest_allowed(negatives, rate)))


def highest_allowed(negatives: Floats, rate: float) -> float:
    """The score that a threshold must lie above so that at most a share `rate` of the negatives reaches it."""
    allowed = math.floor(rate * len(negatives) + 1e-9)
    return -math.inf if allowed >= len(negatives) else float(np.sort(negatives)[::-1][allowed])


def auc_figure(positives: Floats, negatives: Floats) -> Figure | None:
    """`auc` with its interval; None unless there are both."""
    return _bootstrapped(auc, positives, negatives, min(len(positives), len(negatives)))


def recall_figure(positives: Floats, negatives: Floats, rate: float) -> Figure | None:
    """`recall_at` with its interval; None unless there are both."""
    return _bootstrapped(lambda p, n: recall_at(p, n, rate), positives, negatives, len(positives))


def _bootstrapped(
    measure: Callable[[Floats, Floats], float], positives: Floats, negatives: Floats, weight: int
) -> Figure | None:
    """Both classes are resampled by themselves, so that their sizes stay what they are.

    A bootstrap of answers without an error knows of none, however few they are: the interval is never narrower than
    Wilson's for a share of `weight` answers.
    """
    if not len(positives) or not len(negatives):
        return None
    rng = np.random.default_rng(SEED)
    value = measure(positives, negatives)
    values = [
        measure(rng.choice(positives, len(positives)), rng.choice(negatives, len(negatives))) for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(values, (2.5, 97.5))
    least, most = _wilson(value, weight)
    return Figure(value, min(float(low), least), max(float(high), most), len(positives) + len(negatives))


def curve(positives: Floats, negatives: Floats) -> tuple[Point, ...]:
    """The ROC curve, from the threshold that nothing reaches to the lowest score; empty unless there are both."""
    if not len(positives) or not len(negatives):
        return ()
    thresholds = np.unique(np.concatenate((positives, negatives)))[::-1]
    up, down = np.sort(positives), np.sort(negatives)
    recall = 1 - np.searchsorted(up, thresholds, "left") / len(up)
    alarms = 1 - np.searchsorted(down, thresholds, "left") / len(down)
    points = zip(thresholds, alarms, recall, strict=True)
    return (Point(math.inf, 0.0, 0.0), *(Point(float(t), float(a), float(r)) for t, a, r in points))


def reliability(scores: Sequence[float], truths: Sequence[bool], bins: int = BINS) -> tuple[Bin, ...]:
    """Scores, in 0-1, in bins of equal width; bins that hold none are left out."""
    values, true = np.asarray(scores, np.float64), np.asarray(truths, np.bool_)
    index = np.minimum((values * bins).astype(np.int64), bins - 1)
    found = []
    for each in range(bins):
        inside = index == each
        n = int(inside.sum())
        if n:
            mean, share = float(values[inside].mean()), float(true[inside].mean())
            found.append(Bin(each / bins, (each + 1) / bins, n, mean, share))
    return tuple(found)


def calibration_error(bins: Sequence[Bin]) -> float | None:
    """Expected calibration error: the mean distance of score and share, by the bins' sizes; None of no bins."""
    n = sum(each.n for each in bins)
    return sum(each.n * abs(each.mean - each.share) for each in bins) / n if n else None


def percentile(values: Sequence[float], rank: float) -> float | None:
    """The value that `rank` percent of the values do not exceed, by linear interpolation; None of none."""
    return float(np.percentile(np.asarray(values, np.float64), rank)) if len(values) else None
