"""`bandit`: Thompson sampling over rewards in 0-1, for each decision by itself.

    select: {bandit: {prior: [1, 1]}}

Candidate i is believed to earn Beta(a + gained_i, b + missed_i), with (a, b) the prior and gained, missed the
discounted sums of its rewards r and of 1 - r (`learning.py`). It is chosen with the probability that it is the best:
the integral of f_i(x) times the product of F_j(x) over all others (Thompson 1933). That probability is computed on a
grid and one number drawn from it, which is the same lottery as a draw from each belief, and gives the propensity that
off-policy estimates need.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import lgamma
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.selection.choice import Choice, draw
from router.selection.model import Bandit
from router.selection.snapshot import Snapshot
from router.selection.upstream import Upstream

_SPAN: Final = 24.0
"""Log-odds at the grid's ends: a belief of Beta(0.5, 0.5), the widest that a policy may start from, has 4 in a million
of its mass beyond each."""

_LOG_ODDS: Final[NDArray[np.float64]] = np.linspace(-_SPAN, _SPAN, 2049)
"""Steps of 0.023. The sharpest belief, of 1,000 discounted rewards around 0.5, has a deviation of 0.063."""

_LOG_X: Final = -np.logaddexp(0.0, -_LOG_ODDS)
_LOG_REST: Final = -np.logaddexp(0.0, _LOG_ODDS)


def choose(select: Bandit, candidates: Sequence[Upstream], decision: str, snapshot: Snapshot, seed: int) -> Choice:
    """One of the candidates by its probability to be the best. Scores are the beliefs' means."""
    beliefs = []
    for one in candidates:
        arm = snapshot.arm(decision, one.model)
        beliefs.append((select.prior[0] + arm.gained, select.prior[1] + arm.missed))
    shares = dict(zip((one.model for one in candidates), best_probabilities(tuple(beliefs)), strict=True))
    means = {one.model: a / (a + b) for one, (a, b) in zip(candidates, beliefs, strict=True)}
    return Choice(draw(shares, seed), "drawn", shares, means)


@lru_cache(maxsize=1024)
def best_probabilities(beliefs: tuple[tuple[float, float], ...]) -> tuple[float, ...]:
    """For each Beta(a, b) the probability that its draw is the highest; they sum to 1, equal beliefs have equal ones.

    `a` and `b` are at least 0.5 and about 2,000 at most, see the grid.
    """
    # In log-odds the density is x^a (1 - x)^b / B(a, b): smooth whatever a and b, so that plain sums are accurate.
    mass = np.empty((len(beliefs), _LOG_ODDS.size))
    for i, (a, b) in enumerate(beliefs):
        mass[i] = np.exp(a * _LOG_X + b * _LOG_REST + (lgamma(a + b) - lgamma(a) - lgamma(b)))
    mass /= mass.sum(axis=1, keepdims=True)
    # The midpoint of each step: half of a point's own mass lies below it.
    below = np.cumsum(mass, axis=1) - 0.5 * mass
    best = np.array([(mass[i] * np.delete(below, i, axis=0).prod(axis=0)).sum() for i in range(len(beliefs))])
    best /= best.sum()
    return tuple(float(share) for share in best)
