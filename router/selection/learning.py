"""How feedback changes the state: rewards, comparisons of two models, measurements. Pure functions on snapshots.

Everything is bounded: sums are discounted, ratings clipped, times kept for the latest only. Who may feed it and where
it is kept is the writer's matter (`router.admin.feedback`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from router.selection.snapshot import START_RATING, Arm, Snapshot, Speed

MEMORY: Final = 1000
"""Rewards of one decision that count, about: each new one discounts all before it, of every model, by 1 - 1/MEMORY
(discounted Thompson sampling, Raj and Kalyani 2017). Models that are not asked any more grow uncertain again."""

ELO_K: Final = 16.0
"""How far one comparison moves a rating at most."""

RATING_SPREAD: Final = 800.0
"""How far a rating may get from the first: beyond, the odds are 100 to 1 and a model could not come back in time."""

TIMES_KEPT: Final = 200
"""Latest times of a model: the 95th percentile then rests on ten."""


@dataclass(frozen=True, slots=True)
class Reward:
    """How good the answer of a record was, in 0-1, to a decision's request by a model.

    With `against` it is a comparison with another model's answer to the same request: 1 won, 0.5 drawn, 0 lost.
    """

    record: str
    decision: str
    model: str
    reward: float
    against: str = ""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Times of one answer of a model in milliseconds, and its load in 0-1; what is None was not measured."""

    model: str
    ttft_ms: float | None = None
    latency_ms: float | None = None
    load: float | None = None


def learn(snapshot: Snapshot, event: Reward | Measurement) -> Snapshot:
    """The state after the event. `digest` is that of no file yet."""
    match event:
        case Measurement():
            speeds = {**snapshot.speeds, event.model: _measured(snapshot.speed(event.model), event)}
            return replace(snapshot, version=snapshot.version + 1, speeds=MappingProxyType(speeds), digest="")
        case Reward(against=""):
            arms = _rewarded(snapshot.arms.get(event.decision, {}), event)
        case Reward():
            arms = _compared(snapshot.arms.get(event.decision, {}), event)
    every = {**snapshot.arms, event.decision: MappingProxyType(arms)}
    return replace(snapshot, version=snapshot.version + 1, arms=MappingProxyType(every), digest="")


def _rewarded(arms: Mapping[str, Arm], event: Reward) -> dict[str, Arm]:
    keep = 1 - 1 / MEMORY
    faded = {model: replace(arm, gained=arm.gained * keep, missed=arm.missed * keep) for model, arm in arms.items()}
    arm = faded.get(event.model, Arm())
    faded[event.model] = replace(
        arm,
        gained=arm.gained + event.reward,
        missed=arm.missed + (1 - event.reward),
        rewards=arm.rewards + 1,
    )
    return faded


def _compared(arms: Mapping[str, Arm], event: Reward) -> dict[str, Arm]:
    one, other = arms.get(event.model, Arm()), arms.get(event.against, Arm())
    expected = 1 / (1 + 10 ** ((other.rating - one.rating) / 400))
    step = ELO_K * (event.reward - expected)
    return {
        **arms,
        event.model: replace(one, rating=_clipped(one.rating + step), comparisons=one.comparisons + 1),
        event.against: replace(other, rating=_clipped(other.rating - step), comparisons=other.comparisons + 1),
    }


def _clipped(rating: float) -> float:
    return min(max(rating, START_RATING - RATING_SPREAD), START_RATING + RATING_SPREAD)


def _measured(speed: Speed, event: Measurement) -> Speed:
    return Speed(
        ttft=_with(speed.ttft, event.ttft_ms),
        latency=_with(speed.latency, event.latency_ms),
        load=speed.load if event.load is None else event.load,
    )


def _with(times: tuple[float, ...], time: float | None) -> tuple[float, ...]:
    return times if time is None else (*times, time)[-TIMES_KEPT:]
