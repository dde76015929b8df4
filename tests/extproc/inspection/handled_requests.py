"""Handled requests as a worker tells of them, without a worker."""

from __future__ import annotations

from collections.abc import Mapping

from router.extproc.telling.handled import Handled
from router.policy.verdict import Verdict
from router.records.record import DecisionRecord, OutcomeKind
from router.signals.base import Evidence, Observation, SignalName, Status


def observed(matched: bool | None = True, status: Status = "observed", pieces: int = 0) -> Observation:
    evidence = tuple(Evidence(f"/messages/{number}/content", span=(0, 5)) for number in range(pieces))
    return Observation(status, matched, evidence=evidence)


def decided(
    number: int = 0,
    decision: str = "one",
    outcome: OutcomeKind = "route",
    model: str | None = "small",
    signals: Mapping[str, Observation] | None = None,
    policy: str = "p",
) -> Handled:
    """A request that was judged; it came `number` seconds after the epoch."""
    named = {SignalName(*name.split("/")): one for name, one in (signals or {}).items()}
    verdict = Verdict(decision, None, "priority", 1.0, False, True, named, (), (), 0.0, (), {})
    record = DecisionRecord(
        record=f"r{number}",
        policy=policy,
        api="openai.chat",
        requested_model=None,
        decision=decision,
        outcome=outcome,
        model=model,
        cluster="c",
        verdict=verdict,
        body_bytes=10,
        turns=1,
        images=0,
        stream=False,
        parse=0.0,
        decide=0.0,
        duration=0.0,
    )
    return Handled("decision", "openai.chat", f"r{number}", record, policy, outcome, number * 10**9, 0.001, 10)


def failed(number: int = 0, kind: str = "deadline", policy: str = "p") -> Handled:
    """A request that could not be judged."""
    return Handled(
        "failure", "openai.chat", f"r{number}", None, policy, "refuse", number * 10**9, 0.5, failure=kind, status=503
    )
