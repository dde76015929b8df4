"""Computes projections: from observations of signals to an observation of what is derived from them.

Pure functions. A projection answers as soon as everything it reads has answered, in the policy's order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, MutableMapping

from router.policy.predicate import leaf_truth, number
from router.policy.projection import NO_MEMBER, Band, Partition, Projection, ScoreInput, WeightedScore
from router.signals.base import Evidence, Observation, SignalName, failed, observed

Observations = Mapping[SignalName, Observation]


def derive(projections: Iterable[Projection], observations: MutableMapping[SignalName, Observation]) -> None:
    """Add every projection whose inputs have answered; those that stand there already stay."""
    for projection in projections:
        if projection.name not in observations and all(name in observations for name in projection.reads):
            observations[projection.name] = project(projection, observations)


def project(projection: Projection, observations: Observations) -> Observation:
    """The projection's answer; every signal that it reads must have answered."""
    match projection:
        case Partition():
            return _partition(projection, observations)
        case WeightedScore():
            return _score(projection, observations)
        case Band():
            return _band(projection, observations)


def _partition(partition: Partition, observations: Observations) -> Observation:
    for name in partition.reads:
        if observations[name].matched is None:
            return _unknown_through(name)
    if partition.method == "exclusive":
        return _exclusive(partition, observations)
    logits = [(_score_of(observations[member.signal]), member.label) for member in partition.members]
    if partition.none is not None:
        logits.append((partition.none, NO_MEMBER))
    highest = max(score for score, _ in logits)
    powers = [math.exp((score - highest) / partition.temperature) for score, _ in logits]
    shares = [power / sum(powers) for power in powers]
    # The first of equals, in the policy's order.
    best = max(range(len(shares)), key=lambda index: shares[index])
    label = logits[best][1]
    evidence = tuple(
        Evidence(f"signal:{member.signal}", label=member.label, score=share)
        for member, share in zip(partition.members, shares, strict=False)
    )
    matched = label != NO_MEMBER and shares[best] >= partition.threshold
    return observed(matched, shares[best], label=label if matched else NO_MEMBER, evidence=evidence)


def _exclusive(partition: Partition, observations: Observations) -> Observation:
    matched = [member for member in partition.members if observations[member.signal].matched]
    if not matched:
        return observed(False, label=NO_MEMBER)
    won = max(matched, key=lambda member: _score_of(observations[member.signal]))
    score = observations[won.signal].score
    return observed(
        True, score, label=won.label, evidence=(Evidence(f"signal:{won.signal}", label=won.label, score=score),)
    )


def _score_of(observation: Observation) -> float:
    """A signal without a score is as good as certain of its match."""
    return float(bool(observation.matched)) if observation.score is None else observation.score


def _score(score: WeightedScore, observations: Observations) -> Observation:
    total = score.offset
    for each in score.inputs:
        amount = _amount(each, observations[each.leaf.signal])
        if amount is not None:
            total += each.weight * amount
        elif score.missing == "unknown":
            return _unknown_through(each.leaf.signal)
    if not math.isfinite(total):
        return failed("the sum is not a finite number")
    matched = score.threshold is not None and total >= score.threshold
    return observed(matched, min(max(total, 0.0), 1.0), value=total)


def _amount(each: ScoreInput, observation: Observation) -> float | None:
    if observation.matched is None:
        return None
    match each.by:
        case "match":
            truth = leaf_truth(each.leaf, observation)
            return None if truth is None else float(truth)
        case "score":
            return observation.score
        case "value":
            return observation.value


def _band(band: Band, observations: Observations) -> Observation:
    source = observations[band.of]
    measured = None if source.matched is None else number(source)
    if measured is None:
        return _unknown_through(band.of)
    for label, interval in band.ranges:
        if interval.holds(measured):
            return observed(True, label=label)
    return observed(False)


def _unknown_through(name: SignalName) -> Observation:
    return failed(f"{name} is unknown")
