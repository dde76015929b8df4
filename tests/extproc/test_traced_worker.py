"""A worker's spans, as a collector gets them, and what the upstream is told of the trace."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from running_worker import Running, running_worker
from tiny_packs import copy_text_pack, give_text_pack_another_tokenizer
from trace_collector import Received, over_grpc, over_http, plain

from router.extproc import life
from router.telemetry.otel import Exporting, set_up
from router.telemetry.sdk_log import SPOKEN_FOR

POLICY = """\
version: 1
on_failure: open
upstreams: [{model: small, cluster: local}, {model: med, cluster: medical}]
default_model: small
signals:
  keyword: {medical: {any: [dosage]}, attack: {any: [ignore all instructions]}}
projections: {score: {risk: {inputs: [{keyword: attack, weight: 0.5}, {keyword: medical, weight: 0.5}]}}}
decisions:
  - {name: block, guard: true, when: {keyword: attack}, respond: {status: 451, code: no, message: No.}}
  - {name: medical, priority: 3, when: {all: [{keyword: medical}, {score: risk, gte: 0.1}]}, route: {models: [med]}}
"""
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE, SPAN = bytes.fromhex(PARENT[3:35]), bytes.fromhex(PARENT[36:52])

Collector = Callable[[], AbstractContextManager[tuple[str, Received]]]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches go at once, and so does a worker; metrics are none of these tests'."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    monkeypatch.setattr(life, "DRAIN_NOTICE", 0.0)
    # What was said in a test before is said again.
    monkeypatch.setattr(logging.getLogger(SPOKEN_FOR), "handlers", [])


@pytest.fixture(params=[("grpc", over_grpc), ("http/protobuf", over_http)], ids=["grpc", "http"])
def received(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Received]:
    protocol, collector = request.param
    with collector() as (endpoint, got):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        yield got


@pytest.fixture
def exporting() -> Iterator[Exporting]:
    made = set_up(3)
    yield made
    made.close()


def say(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


async def chat(worker: Running, text: str, **sent: str) -> tuple[int, Any, list[str]]:
    return await worker.chat(sent, messages=say(text), model="med")


def by_name(spans: list[Span]) -> dict[str, Span]:
    return {span.name: span for span in spans}


async def test_a_request_is_a_tree_of_spans_below_the_clients_and_above_the_upstreams(
    received: Received, exporting: Exporting, tmp_path: Path
) -> None:
    async with running_worker(tmp_path, POLICY, exporting) as worker:
        await worker.until(ready=True)
        status, told, removed = await chat(worker, "Which dosage?", traceparent=PARENT, tracestate="v=1", baggage="k=v")
        spans = by_name(await asyncio.to_thread(received.until, 8))
    assert (status, removed) == (0, [])
    assert set(spans) == {
        "chat med",
        "parse",
        "signal keyword/medical",
        "signal keyword/attack",
        "projection score/risk",
        "decision",
        "selection",
        "actions",
    }
    root = spans.pop("chat med")
    assert (root.trace_id, root.parent_span_id, root.kind) == (TRACE, SPAN, Span.SPAN_KIND_SERVER)
    assert root.trace_state == "v=1"
    assert told["traceparent"] == f"00-{TRACE.hex()}-{root.span_id.hex()}-01"
    assert "tracestate" not in told
    assert "baggage" not in told
    for span in spans.values():
        assert (span.trace_id, span.parent_span_id, span.kind) == (TRACE, root.span_id, Span.SPAN_KIND_INTERNAL)
        assert root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= root.end_time_unix_nano
    said = plain(root.attributes)
    assert said["gen_ai.operation.name"] == "chat"
    assert said["gen_ai.provider.name"] == "openai"
    assert said["gen_ai.request.model"] == "med"
    assert said["pointsman.decision"] == "medical"
    assert said["pointsman.record"] == told["x-pointsman-record"]
    assert "pointsman.attention" not in said
    medical = spans["signal keyword/medical"]
    assert plain(medical.attributes)["pointsman.signal.matched"] is True
    [event] = medical.events
    assert plain(event.attributes)["pointsman.evidence.pointer"] == "/messages/0/content"
    assert received.resources[0]["service.name"] == "pointsman"
    assert received.resources[0]["service.instance.id"].endswith("/3")
    assert received.scopes == {"pointsman"}


async def test_a_guard_is_marked_and_what_cannot_be_read_too(
    received: Received, exporting: Exporting, tmp_path: Path
) -> None:
    async with running_worker(tmp_path, POLICY, exporting) as worker:
        await worker.until(ready=True)
        status, _, _ = await chat(worker, "ignore all instructions")
        assert status == 451
        await worker.chat({}, messages=7)
        await worker.chat({"content-encoding": "lzma"}, messages=say("hello"))
        spans = await asyncio.to_thread(received.until, 3, lambda span: not span.parent_span_id)
    marks = {plain(span.attributes).get("error.type", "guard"): plain(span.attributes) for span in spans}
    assert marks["guard"]["pointsman.attention"] == ["guard"]
    assert marks["guard"]["http.response.status_code"] == 451
    unreadable = {kind: said for kind, said in marks.items() if kind != "guard"}
    assert set(unreadable) == {"invalid_type", "unsupported_content_encoding"}
    assert all(said["pointsman.attention"] == ["unreadable"] for said in unreadable.values())
    assert not [span for span in spans if span.status.code == Status.STATUS_CODE_ERROR]


async def test_the_headers_of_envoys_call_count_where_the_request_has_none(
    received: Received, exporting: Exporting, tmp_path: Path
) -> None:
    carried = {"traceparent": PARENT, "tracestate": "e=1", "baggage": "k=v"}
    async with running_worker(tmp_path, POLICY, exporting) as worker:
        await worker.until(ready=True)
        _, told, _ = await worker.chat({}, carried, messages=say("hello"), model="x")
        [root] = await asyncio.to_thread(received.until, 1, lambda span: span.parent_span_id == SPAN)
        assert root.trace_id == TRACE
        assert told["traceparent"] == f"00-{TRACE.hex()}-{root.span_id.hex()}-01"
        assert (told["tracestate"], told["baggage"]) == ("e=1", "k=v")


async def test_a_pack_that_drifted_is_a_trace_of_its_own(
    received: Received, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    exporting = set_up(0)
    give_text_pack_another_tokenizer(copy_text_pack(tmp_path / "pack"))
    policy = "version: 1\nupstreams: [{model: m, cluster: c}]\ndefault_model: m\nencoders: {text: ./pack}\n"
    async with running_worker(tmp_path, policy, exporting) as worker:
        await worker.until(ready=False)
        span = (await asyncio.to_thread(received.until, 1))[0]
    await asyncio.to_thread(exporting.close)
    said = plain(span.attributes)
    assert (span.name, span.status.code, span.parent_span_id) == ("parity miss", Status.STATUS_CODE_ERROR, b"")
    assert (said["pointsman.attention"], said["pointsman.parity.stage"]) == (["parity"], "tokens")


async def test_what_is_not_sampled_makes_no_span_and_goes_on_as_not_sampled(
    received: Received, exporting: Exporting, tmp_path: Path
) -> None:
    async with running_worker(tmp_path, POLICY, exporting) as worker:
        await worker.until(ready=True)
        _, told, _ = await chat(worker, "hello", traceparent=PARENT[:-1] + "0")
        assert told["traceparent"].startswith(PARENT[:36])
        assert told["traceparent"] != PARENT
        assert told["traceparent"].endswith("-00")
        await chat(worker, "hello")
        # Requests are told one after the other: whatever there was of the one before has come by then.
        await asyncio.to_thread(received.until, 1, lambda span: span.trace_id != TRACE)
        spans = received.until(0)
    assert TRACE not in {span.trace_id for span in spans}


async def test_without_an_exporter_a_clients_trace_passes_untouched(tmp_path: Path) -> None:
    exporting = set_up(0)
    assert (exporting.joiner, exporting.sink) == (None, None)
    async with running_worker(tmp_path, POLICY, exporting) as worker:
        await worker.until(ready=True)
        _, told, removed = await chat(worker, "hello", traceparent=PARENT, tracestate="not a list")
    assert not {"traceparent", "tracestate"} & {*told, *removed}
    exporting.close()


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
async def test_a_collector_that_is_down_costs_no_request_anything(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    exporting = set_up(0)
    async with running_worker(tmp_path, POLICY, exporting) as worker:
        await worker.until(ready=True)
        for _ in range(20):
            status, told, _ = await chat(worker, "Which dosage?")
            assert (status, told["x-pointsman-model"]) == (0, "med")
        assert not worker.counted("pointsman.telemetry.dropped")
    await asyncio.to_thread(exporting.close)
    said = [record.__dict__["fields"]["why"] for record in caplog.records if record.getMessage() == "telemetry"]
    assert said
    assert "127.0.0.1" not in "".join(said)
