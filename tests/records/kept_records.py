"""Records of requests that were never sent, and what a store and a writer are asked in the tests of this folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from router.config.handling import RecordSettings
from router.config.load import parse_policy
from router.policy.model import Policy, Route
from router.policy.resolve import offers, resolve, shortlist
from router.policy.verdict import Verdict
from router.records.basis import Basis, basis_of
from router.records.record import DecisionRecord, OutcomeKind
from router.records.record_id import new_record_id
from router.records.sqlite_store import SqliteStore, StoreReader
from router.records.store import Filter, Row, StoreError
from router.records.stored import encode, to_stored
from router.records.writer import RecordWriter
from router.request.view import RequestView
from router.selection.needs import Needs
from router.signals.base import Observation, SignalName
from router.telemetry.instruments import create_instruments

PATIENCE = 30.0
POLICY = b"""\
version: 1
upstreams: [{model: a, cluster: x}, {model: b, cluster: y}]
default_model: a
signals: {keyword: {words: {any: [word]}}}
decisions: [{name: one, when: {keyword: words}, route: {models: [b]}}]
"""
LOADED = parse_policy(POLICY, Path("policy.yaml"))
WORDS = SignalName("keyword", "words")
TEXT_NEEDS = Needs(frozenset(("text",)), frozenset(("text",)), frozenset(), 7, None)


def basis_at(path: Path, **settings: object) -> Basis:
    return basis_of(LOADED, {}, RecordSettings.model_validate({"path": str(path), **settings}))


def record_of(
    policy: Policy, verdict: Verdict, view: RequestView, needs: Needs = TEXT_NEEDS, identifier: str | None = None
) -> DecisionRecord:
    """The record that a pipeline would have made."""
    identifier = identifier or new_record_id()
    routed = verdict.outcome is None or isinstance(verdict.outcome, Route)
    resolution = None
    if routed:
        resolution = resolve(shortlist(offers(policy, verdict, view), needs), verdict, view, identifier)
    upstream = resolution.upstream if resolution else None
    outcome: OutcomeKind = "route" if upstream else "refuse"
    if not routed and type(verdict.outcome).__name__ == "Clarify":
        outcome = "clarify"
    known = {one.model for one in policy.upstreams}
    return DecisionRecord(
        record=identifier,
        policy=policy.digest,
        api="openai.chat",
        requested_model=view.requested_model if view.requested_model in known else None,
        decision=verdict.decision or "default",
        outcome=outcome,
        model=upstream.model if upstream else None,
        cluster=upstream.cluster if upstream else None,
        verdict=verdict,
        body_bytes=10,
        turns=1,
        images=0,
        stream=False,
        parse=0.1,
        decide=0.2,
        duration=0.3,
        resolution=resolution,
    )


def record(
    identifier: str | None = None, observations: Mapping[SignalName, Observation] | None = None
) -> DecisionRecord:
    [one] = LOADED.policy.decisions
    seen = {WORDS: Observation("observed", True, 1.0)} if observations is None else observations
    verdict = Verdict("one", one.outcome, "priority", 1.0, False, True, seen, (), (), 0.001, (one,), {})
    view = RequestView("openai.chat", None, (), (), False, 10, None)
    return record_of(LOADED.policy, verdict, view, identifier=identifier)


def row(basis: Basis, identifier: str | None = None, decision: str = "one", padding: int = 0) -> Row:
    made = record(identifier)
    return Row(made.record, decision, "b", basis.digest, encode(to_stored(made)) + b" " * padding)


def fill(store: SqliteStore, basis: Basis, rows: list[Row]) -> None:
    store.append(rows, {basis.digest: basis.body})


def kept(path: Path) -> list[str]:
    """Identifiers of what is in the store, the newest first; none where there is no store yet."""
    try:
        with StoreReader(path) as reader:
            return [stored.record for stored, _ in reader.newest(Filter())]
    except StoreError as error:
        if "no such" in str(error) or "something else" in str(error):
            return []
        raise


class Counted:
    """A writer's counter and what it came to."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self._provider = MeterProvider([self._reader])
        self.counter = create_instruments(self._provider.get_meter("test")).records_dropped

    def dropped(self, kind: str = "record") -> dict[str, int]:
        data = self._reader.get_metrics_data()
        if data is None:
            return {}
        metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
        points = [p for m in metrics for p in m.data.data_points if p.attributes["kind"] == kind]
        return {p.attributes["reason"]: p.value for p in points}

    def close(self) -> None:
        self._provider.shutdown()


def until(holds: Callable[[], object], what: str) -> None:
    limit = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > limit:
            raise AssertionError(f"waited for {what}")
        time.sleep(0.01)


def quick_writer(counted: Counted, limit: int = 8192) -> RecordWriter:
    return RecordWriter(counted.counter, limit=limit, pause=0.01)
