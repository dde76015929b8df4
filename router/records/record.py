"""The decision record: what was seen, decided and done for one request, without its content.

Enough to re-derive the decision: the policy's and the packs' digests, every observation, every decision's tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from router.policy.resolve import Resolution
from router.policy.verdict import NodeTrace, Verdict
from router.selection.choice import Choice
from router.signals.base import Evidence, Observation

OutcomeKind = Literal["route", "refuse", "clarify"]

NO_CAPABLE_MODEL = "no_capable_model"
"""Reason of a request that no model of its route can take, and code of its refusal."""

MAX_EVIDENCE = 16
"""Pieces of evidence that a record keeps of one observation; a request may hold thousands."""


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One request's record. `record` is its identifier, `policy` the digest of the policy; durations are in seconds.

    `requested_model` is None unless the policy knows the model: any other word there is the client's own.
    """

    record: str
    policy: str
    api: str
    requested_model: str | None
    decision: str
    outcome: OutcomeKind
    model: str | None
    cluster: str | None
    verdict: Verdict
    body_bytes: int
    turns: int
    images: int
    stream: bool
    parse: float
    decide: float
    duration: float
    resolution: Resolution | None = None
    """How the upstream was found, or that none was; None for an answer that needs none."""
    enforced: bool = True
    """Whether what was decided was done, or only recorded."""
    select: float = 0.0
    """Of the time in `decide`, what the choice of the upstream took."""

    def summary(self) -> dict[str, Any]:
        """What a log line holds: all but the trees."""
        return {
            "record": self.record,
            "policy": self.policy,
            "api": self.api,
            "requested_model": self.requested_model,
            "decision": self.decision,
            "outcome": self.outcome,
            "enforced": self.enforced,
            "reason": self.verdict.reason,
            "model": self.model,
            "cluster": self.cluster,
            "signals": {str(name): observation_json(o) for name, o in sorted(self.verdict.observations.items())},
            "profile": self.verdict.profile,
            "selection": None if self.resolution is None else resolution_json(self.resolution),
            "skipped": [str(name) for name in self.verdict.skipped],
            "body_bytes": self.body_bytes,
            "turns": self.turns,
            "images": self.images,
            "stream": self.stream,
            "parse_ms": milliseconds(self.parse),
            "decide_ms": milliseconds(self.decide),
            "select_ms": milliseconds(self.select),
            "duration_ms": milliseconds(self.duration),
        }

    def whole(self) -> dict[str, Any]:
        """The summary and the trees."""
        trees = [
            {
                "name": trace.name,
                "guard": trace.guard,
                "priority": trace.priority,
                "considered": trace.considered,
                "matched": trace.matched,
                "tree": node_json(trace.tree),
            }
            for trace in self.verdict.trace
        ]
        return {**self.summary(), "decisions": trees}


def observation_json(observation: Observation) -> dict[str, Any]:
    """An observation, without the keys that say nothing."""
    # Each added by itself, since a line of the log has many of them, and of most keys they say nothing.
    said: dict[str, Any] = {"status": observation.status, "matched": observation.matched}
    for key, number in (("score", observation.score), ("value", observation.value)):
        if number is not None and math.isfinite(number):
            said[key] = round(number, 6)
    if observation.label:
        said["label"] = observation.label
    if observation.reason:
        said["reason"] = observation.reason
    if observation.pack:
        said["pack"] = observation.pack
    if observation.evidence:
        said["evidence"] = [dict(_evidence(e)) for e in observation.evidence[:MAX_EVIDENCE]]
        if len(observation.evidence) > MAX_EVIDENCE:
            said["evidence_left_out"] = len(observation.evidence) - MAX_EVIDENCE
    said["ms"] = milliseconds(observation.duration)
    for key, seconds in (("waited_ms", observation.waited), ("at_ms", observation.at)):
        if spent := milliseconds(seconds):
            said[key] = spent
    return said


def resolution_json(resolution: Resolution) -> dict[str, Any]:
    """How the upstream was found, without the keys that say nothing. A seed is written in hex, it has 64 bits."""
    choice, needs = resolution.choice, resolution.needs
    pairs: dict[str, Any] = {
        "by": resolution.select or None,
        "from": resolution.source,
        "reason": choice.reason if choice else NO_CAPABLE_MODEL,
        "propensity": _rounded(choice.propensities[choice.model]) if choice else None,
        "candidates": choice and [_candidate(choice, model) for model in choice.propensities],
        "filtered": {model: [need.word for need in unmet] for model, unmet in resolution.filtered.items()} or None,
        "seed": f"{resolution.seed:016x}" if choice else None,
        "state": {"version": resolution.state_version, "digest": resolution.state_digest}
        if resolution.state_version
        else None,
        "text_tokens": needs.text_tokens,
        "output_tokens": needs.output_tokens,
    }
    return {key: value for key, value in pairs.items() if value is not None}


def node_json(node: NodeTrace) -> dict[str, Any]:
    """A tree, nodes as nested objects."""
    result: dict[str, Any] = {"kind": node.kind, "state": node.state, "confidence": _rounded(node.confidence)}
    if node.leaf is not None:
        result["signal"] = str(node.leaf.signal)
        if node.leaf.within is not None:
            result["within"] = str(node.leaf.within)
        if node.leaf.labels:
            result["labels"] = sorted(node.leaf.labels)
    if node.least is not None:
        result["least"] = node.least
    if node.children:
        result["children"] = [node_json(child) for child in node.children]
    return result


def milliseconds(seconds: float) -> float:
    """To the microsecond."""
    # A third of what `round` takes; a line of the log has a dozen of them.
    return int(seconds * 1e6 + 0.5) / 1000


def _candidate(choice: Choice, model: str) -> dict[str, Any]:
    score = choice.scores.get(model)
    pairs = {"model": model, "propensity": _rounded(choice.propensities[model]), "score": _rounded(score)}
    return {key: value for key, value in pairs.items() if value is not None}


def _evidence(evidence: Evidence) -> Iterator[tuple[str, Any]]:
    yield "pointer", evidence.pointer
    if evidence.label:
        yield "label", evidence.label
    if evidence.score is not None:
        yield "score", _rounded(evidence.score)
    if evidence.span is not None:
        yield "span", list(evidence.span)
    if evidence.image is not None:
        yield "image", evidence.image
    if evidence.detail:
        yield "detail", evidence.detail


def _rounded(score: float | None) -> float | None:
    # A score that is no number would make the line no JSON.
    return None if score is None or not math.isfinite(score) else round(score, 6)
