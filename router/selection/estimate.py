"""What a decision's requests would have earned under a bandit, estimated from records and rewards of another selection.

Inverse propensity scoring over what was logged. The bandit is walked through the log in its order and learns from
each reward after it was weighed, so that no reward judges a belief that it has shaped. Nothing here reads files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from router.selection.bandit import best_probabilities
from router.selection.learning import Reward, learn
from router.selection.snapshot import EMPTY

Z: Final = 1.96
"""Standard deviations of a normal distribution that hold 95 %."""

SUPPORT: Final = 0.01
"""Share of the bandit's choices that may lie where the log never went, before an estimate says nothing."""


@dataclass(frozen=True, slots=True)
class Logged:
    """One rewarded request: who was chosen, with which probability each candidate would have been, and the reward."""

    record: str
    model: str
    propensities: Mapping[str, float]
    reward: float


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with the ends of its 95 % confidence interval, by the normal approximation; not clipped to 0-1."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """`logged` is what was earned, `ips` and `snips` what the bandit would have earned; None where nothing was logged.

    `requests` were weighed; `effective` is how many of them the weights leave, (sum w)^2 / sum w^2. `unsupported` is
    the mean probability, 0-1, with which the bandit would have chosen what the log could not have. `tried` counts
    requests by model.
    """

    requests: int
    effective: float
    unsupported: float
    logged: Interval | None
    ips: Interval | None
    snips: Interval | None
    tried: Mapping[str, int]

    @property
    def supported(self) -> bool:
        """Whether the estimates speak of the bandit at all."""
        return self.requests > 0 and self.unsupported <= SUPPORT


def estimate(decision: str, log: Iterable[Logged], prior: tuple[float, float] = (1.0, 1.0)) -> Estimate:
    """Walk a bandit with this prior through the log, which is in the order of time.

    IPS is the mean of w r, SNIPS the sum of w r over the sum of w, w = bandit's probability / logged propensity
    (Horvitz and Thompson 1952; Swaminathan and Joachims 2015, with the delta method for the interval).
    """
    state = EMPTY
    weights: list[float] = []
    rewards: list[float] = []
    tried: dict[str, int] = {}
    missing = 0.0
    for one in log:
        models = tuple(one.propensities)
        arms = (state.arm(decision, model) for model in models)
        beliefs = tuple((prior[0] + arm.gained, prior[1] + arm.missed) for arm in arms)
        wanted = dict(zip(models, best_probabilities(beliefs), strict=True))
        missing += sum(share for model, share in wanted.items() if one.propensities[model] <= 0)
        weights.append(wanted[one.model] / one.propensities[one.model])
        rewards.append(one.reward)
        tried[one.model] = tried.get(one.model, 0) + 1
        state = learn(state, Reward(one.record, decision, one.model, one.reward))
    count, total = len(weights), sum(weights)
    if not count:
        return Estimate(0, 0.0, 0.0, None, None, None, {})
    return Estimate(
        requests=count,
        effective=total**2 / sum(weight**2 for weight in weights),
        unsupported=missing / count,
        logged=_mean(rewards),
        ips=_mean([weight * reward for weight, reward in zip(weights, rewards, strict=True)]),
        snips=_ratio(weights, rewards),
        tried=tried,
    )


def _mean(values: Sequence[float]) -> Interval:
    count = len(values)
    mean = sum(values) / count
    variance = sum((value - mean) ** 2 for value in values) / (count - 1) if count > 1 else math.inf
    return _around(mean, math.sqrt(variance / count))


def _ratio(weights: Sequence[float], rewards: Sequence[float]) -> Interval:
    total = sum(weights)
    value = sum(weight * reward for weight, reward in zip(weights, rewards, strict=True)) / total
    spread = sum((weight * (reward - value)) ** 2 for weight, reward in zip(weights, rewards, strict=True))
    return _around(value, math.sqrt(spread) / total if len(weights) > 1 else math.inf)


def _around(value: float, deviation: float) -> Interval:
    return Interval(value, value - Z * deviation, value + Z * deviation)
