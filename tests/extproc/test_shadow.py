from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keeping_house import keeping_house, kept_in
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from running_worker import PATIENCE, running_worker

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("policy", "records")]

from kept_records import TEXT_NEEDS, record_of
from policy_cases import NAMES, FakeSignal, all_observations, policies, view

from router.cli.check import check
from router.config.handling import ShadowSettings
from router.config.load import load_policy, parse_policy
from router.config.problems import PolicyError
from router.config.shadow import load_shadow
from router.extproc.shadow import Other, Shadow
from router.inference.executor import InferenceExecutor
from router.policy.engine import Engine
from router.policy.model import Policy
from router.records.basis import TEXT_ENCODER, StoredBasis
from router.records.redecide import Redecider
from router.records.store import ShadowRow
from router.signals.base import Cost, Observation, SignalName
from router.telemetry.instruments import create_instruments
from router.telemetry.names import Names

COMPARED, DIFFERENCES, LEFT_OUT = (f"pointsman.shadow.{name}" for name in ("compared", "differences", "left_out"))
BASE = """\
version: 1
upstreams: [{model: a, cluster: x}, {model: b, cluster: y}]
default_model: a
signals: {keyword: {trains: {any: [railway]}, proofs: {any: [proof]}}}
"""
RAIL = "  - {name: rail, priority: 3, when: {keyword: trains}, route: {models: [b]}}\n"
MATH = '  - {name: math, priority: 2, when: {keyword: proofs}, respond: {message: "No."}}\n'
REAL = f"{BASE}records: {{path: r.sqlite}}\nshadow: {{policy: other.yaml}}\ndecisions:\n{RAIL}"


def policy_in(folder: Path, other: str, real: str = REAL) -> Path:
    policy = folder / "policy.yaml"
    policy.write_text(real)
    (folder / "other.yaml").write_text(other)
    return policy


async def test_a_shadow_tells_what_it_would_have_done_and_changes_nothing(tmp_path: Path) -> None:
    other = f"{BASE}decisions:\n{RAIL}{MATH}"
    async with keeping_house(policy_in(tmp_path, other)) as keeping:
        answers = [await keeping.chat(text) for text in ("a railway", "a proof", "hello", "a railway proof")]
        assert [one["x-pointsman-cluster"] for one in answers] == ["y", "x", "x", "y"]
        assert keeping.counted(COMPARED) == {(): 4}
        assert keeping.counted(DIFFERENCES) == {("default", "math"): 1}
        assert keeping.counted(LEFT_OUT) == {}
    by_name = {stored.record: stored.shadow for stored in kept_in(tmp_path)}
    shadows = [by_name[one["x-pointsman-record"]] for one in answers]
    assert [one and (one.decision, one.outcome, one.models, one.differs) for one in shadows] == [
        ("rail", "route", ("b",), False),
        ("math", "refuse", (), True),
        ("default", "route", ("a",), False),
        ("rail", "route", ("b",), False),
    ]
    # The words about proofs were asked of nobody before; what the answers of then suffice for asks nothing.
    assert [one and one.exact for one in shadows] == [True, False, False, True]


async def test_the_policy_itself_as_its_shadow_never_differs(tmp_path: Path) -> None:
    async with keeping_house(policy_in(tmp_path, f"{BASE}decisions:\n{RAIL}")) as keeping:
        for text in ("a railway", "hello"):
            await keeping.chat(text)
        assert keeping.counted(COMPARED) == {(): 2}
        assert keeping.counted(DIFFERENCES) == keeping.counted(LEFT_OUT) == {}
    assert all(stored.shadow and stored.shadow.exact for stored in kept_in(tmp_path))


async def test_a_share_of_requests_is_compared(tmp_path: Path) -> None:
    real = REAL.replace("other.yaml}", "other.yaml, share: 0.3}")
    async with keeping_house(policy_in(tmp_path, f"{BASE}decisions:\n{RAIL}", real)) as keeping:
        for _ in range(200):
            await keeping.chat("hello")
        # Of 200 with a chance of 0.3 each, fewer than 20 or more than 100 are not seen in a lifetime.
        assert 20 < keeping.counted(COMPARED)[()] < 100


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (None, "other.yaml"),
        ("version: 1\nupstream: []\n", 'needs the key "default_model"'),
        (f"{BASE}encoders: {{text: nowhere}}\n", "nowhere"),
        (f"{BASE}trusted_headers: [x-team]\n", "x-team"),
    ],
)
async def test_a_shadow_that_cannot_be_had_costs_no_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, other: str | None, why: str
) -> None:
    policy = policy_in(tmp_path, other or "")
    if other is None:
        (tmp_path / "other.yaml").unlink()
    checked = check(policy)
    assert checked.problems
    assert why in checked.problems[0].message
    assert checked.problems[0].location == ("shadow", "policy")
    assert checked.problems[0].line == 6
    async with keeping_house(policy) as keeping:
        assert (await keeping.chat("a railway"))["x-pointsman-cluster"] == "y"
        assert keeping.counted(COMPARED) == {}
    [line, *_] = [one for one in caplog.records if one.getMessage().startswith("no shadow policy")]
    assert why in line.__dict__["fields"]["why"]


def test_a_policy_is_no_shadow_of_itself(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, "", REAL.replace("other.yaml", "policy.yaml"))
    with pytest.raises(PolicyError, match="itself"):
        load_shadow(load_policy(policy))


async def test_a_worker_takes_another_shadow_up_with_its_policy(tmp_path: Path) -> None:
    real, other = REAL.replace("records: {path: r.sqlite}\n", ""), f"{BASE}decisions:\n{RAIL}"
    (tmp_path / "other.yaml").write_text(other)
    async with running_worker(tmp_path, real) as worker:
        await worker.until(ready=True)
        await worker.headers_of_a_chat(messages=[{"role": "user", "content": "a proof"}])
        while worker.counted(COMPARED) != [({}, 1)]:
            await worker.health()
        assert worker.counted(DIFFERENCES) == []
        (tmp_path / "other.yaml").write_text(other + MATH)
        changed = real + "# changed\n"
        worker.config.write_text(changed)
        worker.reload.set()
        await worker.until_policy(load_policy(worker.config).policy.digest)
        await worker.headers_of_a_chat(messages=[{"role": "user", "content": "a proof"}])
        while worker.counted(DIFFERENCES) != [({"from": "default", "to": "math"}, 1)]:
            await worker.health()


SAME = {**{str(name): "same" for name in NAMES}, TEXT_ENCODER: "same"}


def basis_of(policy: Policy, definitions: Mapping[str, str]) -> StoredBasis:
    profiles = tuple((one.name, repr(sorted(one.models))) for one in policy.profiles)
    known = tuple(one.model for one in policy.upstreams)
    return StoredBasis(policy.digest, b"", dict(definitions), "apis", known, profiles, False)


class Watched:
    """A shadow over signals with given answers, and what it told."""

    def __init__(
        self,
        real: Policy,
        other: Policy,
        answers: Mapping[SignalName, Observation],
        definitions: Mapping[str, str] | None = None,
        queue: int = 64,
    ) -> None:
        same = {**{str(name): "same" for name in answers}, TEXT_ENCODER: "same"}
        self.asked = {name: FakeSignal(name, one, Cost.TEXT_MODEL, 0) for name, one in answers.items()}
        self.rows: list[ShadowRow] = []
        self.executor = InferenceExecutor(1, 1)
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider([self.reader])
        instruments = create_instruments(self.provider.get_meter("test"))
        self.shadow = Shadow(
            ShadowSettings(policy="other.yaml", queue=queue),
            Other(other, self.asked, Redecider(other, basis_of(other, definitions or same)), 60.0),
            real,
            basis_of(real, same),
            [self.executor],
            instruments,
            self.rows.append,
            lambda: None,
        )

    def counted(self, name: str) -> dict[tuple[str, ...], int]:
        data = self.reader.get_metrics_data()
        found = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics] if data else []
        points = [p for m in found if m.name == name for p in m.data.data_points]
        return {tuple(map(str, p.attributes.values())): p.value for p in points if p.value}

    def close(self) -> None:
        self.shadow.close()
        self.executor.close()
        self.provider.shutdown()


models = st.sampled_from([None, "small", "large", "stranger", "virtual"])


@settings(max_examples=60, deadline=None)
@given(policies(), all_observations, models)
def test_a_shadow_with_the_same_policy_never_differs(
    policy: Policy, observations: dict[SignalName, Observation], model: str | None
) -> None:
    async def run() -> None:
        watched = Watched(policy, policy, observations)
        signals = {name: FakeSignal(name, observations[name], Cost.TEXT_MODEL, 0) for name in NAMES}
        verdict = await Engine(policy, signals).decide(view(model), 60.0)
        watched.shadow.take(record_of(policy, verdict, view(model), TEXT_NEEDS), view(model), b"")
        await watched.shadow.settled()
        assert watched.counted(DIFFERENCES) == watched.counted(LEFT_OUT) == {}
        [row] = watched.rows
        assert not row.differs
        assert json.loads(row.body)["decision"] == (verdict.decision or "default")
        watched.close()

    asyncio.run(run())


@settings(max_examples=60, deadline=None)
@given(policies(), policies(), all_observations, models, st.sets(st.sampled_from(NAMES), max_size=3))
def test_a_shadow_decides_as_its_policy_would_have(
    real: Policy,
    other: Policy,
    observations: dict[SignalName, Observation],
    model: str | None,
    redefined: set[SignalName],
) -> None:
    async def run() -> None:
        definitions = {**SAME, **{str(name): "another" for name in redefined}}
        watched = Watched(real, other, observations, definitions)
        signals = {name: FakeSignal(name, observations[name], Cost.TEXT_MODEL, 0) for name in NAMES}
        verdict = await Engine(real, signals).decide(view(model), 60.0)
        expected = await Engine(other, signals).decide(view(model), 60.0)
        watched.shadow.take(record_of(real, verdict, view(model), TEXT_NEEDS), view(model), b"")
        await watched.shadow.settled()
        late = {name for name, one in observations.items() if one.status in ("shed", "timed_out")}
        if watched.rows:
            assert json.loads(watched.rows[0].body)["decision"] == (expected.decision or "default")
        else:
            assert late or watched.counted(LEFT_OUT) == {("undecidable",): 1}
        watched.close()

    asyncio.run(run())


@pytest.mark.parametrize("busy", [True, False])
async def test_what_finds_no_room_or_no_time_is_left_out(busy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.extproc.shadow.IDLE_SECONDS", 0.02)
    base = parse_policy(BASE.encode(), Path("policy.yaml")).policy
    other = parse_policy(f"{BASE}decisions:\n{RAIL}".encode(), Path("policy.yaml")).policy
    answers = {SignalName("keyword", "trains"): Observation("observed", True, 1.0)}
    watched = Watched(base, other, answers, queue=1)
    record = record_of(base, await Engine(base, {}).decide(view(), 60.0), view(), TEXT_NEEDS)
    if busy:
        gate, began = threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        running = asyncio.create_task(
            watched.executor.run(lambda: (loop.call_soon_threadsafe(began.set), gate.wait(PATIENCE)))
        )
        await began.wait()
        watched.shadow.take(record, view(), b"")
        await watched.shadow.settled()
        gate.set()
        await running
    else:
        # The second finds the queue full, as the first has not begun.
        watched.shadow.take(record, view(), b"")
        watched.shadow.take(record, view(), b"")
        await watched.shadow.settled()
    assert watched.counted(LEFT_OUT) == {("shed",): 1}
    assert watched.counted(COMPARED) == ({} if busy else {(): 1})
    assert [row.differs for row in watched.rows] == ([] if busy else [True])
    watched.close()


async def test_a_shadow_that_raises_is_left_out_and_the_next_request_is_compared(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = parse_policy(BASE.encode(), Path("policy.yaml")).policy
    watched = Watched(base, base, {})
    record = record_of(base, await Engine(base, {}).decide(view(), 60.0), view(), TEXT_NEEDS)
    with monkeypatch.context() as patch:
        patch.setattr(watched.shadow._other.redecider, "decide", lambda *_: 1 / 0)
        watched.shadow.take(record, view(), b"")
        await watched.shadow.settled()
    watched.shadow.take(record, view(), b"")
    await watched.shadow.settled()
    assert watched.counted(LEFT_OUT) == {("failed",): 1}
    assert watched.counted(COMPARED) == {(): 1}
    watched.close()


async def test_names_of_a_shadow_take_no_place_of_those_of_the_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As many as the policy itself has, with `default` and `failure`.
    monkeypatch.setattr(Names.__init__, "__defaults__", (3,))
    many = "".join(
        f"  - {{name: d{number}, when: {{keyword: trains}}, route: {{models: [a]}}}}\n" for number in range(9)
    )
    async with keeping_house(policy_in(tmp_path, f"{BASE}decisions:\n{MATH}{many}")) as keeping:
        for text in ("a railway", "a proof"):
            await keeping.chat(text)
        assert keeping.counted(DIFFERENCES) == {("rail", "d0"): 1, ("default", "math"): 1}
