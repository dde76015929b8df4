"""The decision record: what was seen, decided and done for one request, without its content.

Enough to re-derive the decision: the policy's and the packs' digests, every observation, every decision's tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from router.policy.verdict import NodeTrace, Verdict
from router.signals.base import Evidence, Observation

OutcomeKind = Literal["route", "refuse", "clarify"]

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

    def summary(self) -> dict[str, Any]:
        """What a log line holds: all but the trees."""
        return {
            "record": self.record,
            "policy": self.policy,
            "api": self.api,
            "requested_model": self.requested_model,
            "decision": self.decision,
            "outcome": self.outcome,
            "reason": self.verdict.reason,
            "model": self.model,
            "cluster": self.cluster,
            "signals": {str(name): observation_json(o) for name, o in sorted(self.verdict.observations.items())},
            "skipped": [str(name) for name in self.verdict.skipped],
            "body_bytes": self.body_bytes,
            "turns": self.turns,
            "images": self.images,
            "stream": self.stream,
            "parse_ms": milliseconds(self.parse),
            "decide_ms": milliseconds(self.decide),
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
    pairs: dict[str, Any] = {
        "status": observation.status,
        "matched": observation.matched,
        "score": _rounded(observation.score),
        "label": observation.label or None,
        "reason": observation.reason or None,
        "pack": observation.pack or None,
        "evidence": [dict(_evidence(e)) for e in observation.evidence[:MAX_EVIDENCE]] or None,
        "evidence_left_out": max(0, len(observation.evidence) - MAX_EVIDENCE) or None,
        "ms": milliseconds(observation.duration),
    }
    return {key: value for key, value in pairs.items() if value is not None or key == "matched"}


def node_json(node: NodeTrace) -> dict[str, Any]:
    """A tree, nodes as nested objects."""
    result: dict[str, Any] = {"kind": node.kind, "state": node.state, "confidence": _rounded(node.confidence)}
    if node.signal is not None:
        result["signal"] = str(node.signal)
    if node.children:
        result["children"] = [node_json(child) for child in node.children]
    return result


def milliseconds(seconds: float) -> float:
    """To the microsecond."""
    return round(seconds * 1000, 3)


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
