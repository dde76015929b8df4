"""A running worker, asked at its private socket and at its own: what it decided, what it would decide, by what."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from running_worker import Running, running_worker
from typer.testing import CliRunner

from router.admin.asking import Asking
from router.admin.findings import Findings
from router.admin.insight import Document, Filter, NobodyAnswersError
from router.cli.main import app
from router.config.runtime import inspect_socket
from router.extproc import life
from router.extproc.inspection.explaining import METHOD
from router.proto.pointsman.v1 import explain_pb2 as pb
from router.records.wire import OUTCOMES, from_message

POLICY = """\
version: 1
upstreams:
  - {model: small, cluster: c}
  - {model: large, cluster: d}
default_model: small
trusted_headers: [x-team]
signals:
  keyword: {greeting: {any: [hello]}, depth: {any: [proof, theorem]}}
  header: {blue: {name: x-team, any: [blue]}}
decisions:
  - {name: tools, priority: 9, guard: true, when: {conversation: has_tools}, respond: {status: 403, message: No tools.}}
  - {name: deep, priority: 5, when: {any: [{keyword: depth}, {header: blue}]}, route: {models: [large, small]}}
  - {name: greet, priority: 1, when: {all: [{keyword: greeting}, {not: {keyword: depth}}]}, route: {models: [small]}}
"""
SEEN = {"record", "seed", "at", "worker", "remembered", "captured", "status", "failure", "would"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "DRAIN_NOTICE", 0.0)


@asynccontextmanager
async def inspected(folder: Path, policy: str = POLICY) -> AsyncIterator[tuple[Running, Asking]]:
    findings = Findings()
    async with running_worker(folder, policy) as running:
        await running.until(ready=True)
        asking = Asking([inspect_socket(folder / "worker-0.sock")], findings, 30.0, seconds=30.0)
        try:
            yield running, asking
        finally:
            await findings.close()
            await asking.close()


def body(text: str, **more: object) -> bytes:
    return json.dumps({"model": "auto", "messages": [{"role": "user", "content": text}], **more}).encode()


def timeless(value: Any) -> Any:
    """The document without times, chance, and what only a worker that did it knows."""
    if isinstance(value, dict):
        return {key: timeless(each) for key, each in value.items() if not (key in SEEN or key.endswith("ms"))}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def commanded(policy: Path, request: bytes, *flags: str) -> Document:
    result = CliRunner().invoke(app, ["explain", str(policy), "-", "--json", *flags], input=request)
    assert result.exit_code == 0, result.output
    told: Document = json.loads(result.stdout)
    return told


async def explain(channel: grpc.aio.Channel, request: pb.ExplainRequest) -> pb.ExplainResponse:
    call = channel.unary_unary(
        METHOD,
        request_serializer=pb.ExplainRequest.SerializeToString,
        response_deserializer=pb.ExplainResponse.FromString,
    )
    answer: pb.ExplainResponse = await call(request, timeout=30)
    return answer


async def until_remembered(asking: Asking, count: int) -> list[Document]:
    """Telling is done off the request path; a request is remembered soon after."""
    async with asyncio.timeout(60):
        while len(found := await asking.decisions(Filter())) < count:
            pass
    return found


@pytest.mark.parametrize(
    ("text", "header", "more"),
    [("hello", {}, {}), ("hello", {"x-team": "blue"}, {}), ("a proof", {}, {}), ("x", {}, {"tools": [{"type": "f"}]})],
)
async def test_a_worker_explains_as_the_command_does(
    tmp_path: Path, text: str, header: dict[str, str], more: dict[str, Any]
) -> None:
    if more:
        more = {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}
    request = body(text, **more)
    flags = [word for name, value in header.items() for word in ("-H", f"{name}: {value}")]
    async with inspected(tmp_path) as (running, asking):
        expected = timeless(await asyncio.to_thread(commanded, running.config, request, *flags))
        over_private = await asking.explain("/v1/chat/completions", header, request)
        answer = await explain(running.channel, pb.ExplainRequest(body=request, headers=header))
    assert timeless(over_private) == expected
    assert timeless(json.loads(answer.explanation.document)) == expected
    record = answer.explanation.record
    assert [tree.name for tree in record.trees] == [tree["name"] for tree in expected["decisions"]]
    assert (record.decision, OUTCOMES.word(record.outcome)) == (expected["decision"], expected["outcome"])
    assert {str(name) for name in from_message(record).observations} == set(expected["signals"])


async def test_what_would_be_done_is_told_without_the_body(tmp_path: Path) -> None:
    async with inspected(tmp_path) as (_, asking):
        routed = await asking.explain("/v1/chat/completions", {}, body("a proof"))
        tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
        refused = await asking.explain("/v1/chat/completions", {}, body("a proof", tools=tools))
    headers = dict(routed["would"]["headers"])
    assert (headers["x-pointsman-cluster"], headers["x-pointsman-model"]) == ("d", "large")
    assert (routed["would"]["status"], routed["would"]["body_changed"]) == (None, True)
    assert (refused["would"]["status"], refused["would"]["body_changed"]) == (403, False)


@pytest.mark.parametrize(
    ("path", "sent", "status", "code", "pointer"),
    [
        ("/v1/chat/completions", b"{", 400, "invalid_json", None),
        ("/v1/chat/completions", b'{"model": "m", "messages": 7}', 400, None, "/messages"),
        ("/v1/audio/speech", b"{}", 501, "unsupported_api", None),
        ("/healthz", b"{}", 0, "no_llm_request", None),
    ],
)
async def test_what_cannot_be_explained_is_told_as_the_client_would_be(
    tmp_path: Path, path: str, sent: bytes, status: int, code: str | None, pointer: str | None
) -> None:
    async with inspected(tmp_path) as (_, asking):
        told = (await asking.explain(path, {}, sent))["error"]
    assert (told["status"], told["pointer"]) == (status, pointer)
    assert code is None or told["code"] == code


async def test_explaining_leaves_nothing_behind(tmp_path: Path) -> None:
    kept = f"{POLICY}records: {{path: records.db}}\n"
    async with inspected(tmp_path, kept) as (running, asking):
        for _ in range(3):
            await asking.explain("/v1/chat/completions", {}, body("hello CANARY"))
        await running.headers_of_a_chat()
        found = await until_remembered(asking, 1)
        policy = await asking.policy()
        assert [count for _, count in running.counted("pointsman.requests")] in ([1], [])
    assert (len(found), policy["hits"]) == (1, {"greet": 1})
    result = CliRunner().invoke(app, ["records", "list", "--store", str(tmp_path / "records.db"), "--json"])
    assert [one["record"] for one in json.loads(result.stdout)] == [found[0]["record"]]


async def test_what_was_decided_is_listed_and_shown_with_its_trees(tmp_path: Path) -> None:
    async with inspected(tmp_path) as (running, asking):
        _, headers = await running.headers_of_a_chat()
        [listed] = await until_remembered(asking, 1)
        shown = await asking.record(headers["x-pointsman-record"])
        assert await asking.record("0" * 36) is None
        assert asking.silent() == []
    assert shown is not None
    assert (listed["record"], listed["decision"], listed["worker"]) == (headers["x-pointsman-record"], "greet", 0)
    assert [tree["name"] for tree in shown["decisions"]] == ["tools", "deep", "greet"]
    assert (shown["remembered"], shown["captured"], shown["failure"], shown["status"]) == ("worker", None, None, None)


async def test_a_record_of_a_former_worker_comes_out_of_the_store_with_what_was_captured(tmp_path: Path) -> None:
    capturing = "records: {path: records.db, capture: {decisions: all, encrypt: false, redact: false}}\n"
    async with inspected(tmp_path, POLICY + capturing) as (running, asking):
        _, headers = await running.headers_of_a_chat()
        [listed] = await until_remembered(asking, 1)
    async with inspected(tmp_path, POLICY + capturing) as (_, asking):
        assert await asking.decisions(Filter()) == []
        shown = await asking.record(headers["x-pointsman-record"])
    assert shown is not None
    assert (shown["remembered"], shown["worker"], shown["decision"]) == ("store", None, "greet")
    assert [tree["name"] for tree in shown["decisions"]] == ["tools", "deep", "greet"]
    assert shown["captured"] == {"text": ["hello"], "images": []}
    assert shown["at"][:19] == listed["at"][:19]


async def test_the_policy_is_shown_as_written_with_its_findings(tmp_path: Path) -> None:
    never = "  - {name: never, when: {all: [{keyword: depth}, {not: {keyword: depth}}]}, route: {models: [small]}}\n"
    async with inspected(tmp_path, POLICY + never) as (_, asking):
        told = await _complete(asking)
    assert told["document"] == POLICY + never
    assert [one["name"] for one in told["decisions"]] == ["tools", "deep", "greet", "never"]
    finding = next(one for one in told["findings"] if one["kind"] == "never-true")
    assert (finding["line"], finding["severity"]) == (len(told["document"].splitlines()), "error")
    deep = told["decisions"][1]
    assert deep["condition"]["children"][0] == {"kind": "signal", "signal": "keyword/depth"}
    assert (deep["outcome"], deep["models"], deep["guard"], deep["on_unknown"]) == (
        "route",
        ["large", "small"],
        False,
        "no_match",
    )


async def _complete(asking: Asking) -> Document:
    async with asyncio.timeout(60):
        while not (told := await asking.policy())["findings_complete"]:
            pass
    return told


async def test_a_worker_that_is_not_ready_says_so(tmp_path: Path) -> None:
    broken = POLICY.replace("trusted_headers", "encoders: {text: ./missing}\ntrusted_headers").replace(
        "signals:\n", "signals:\n  embedding: {p: {texts: [a passport], threshold: 0.5}}\n"
    )
    async with running_worker(tmp_path, broken) as running:
        await running.until(ready=False)
        asking = Asking([inspect_socket(tmp_path / "worker-0.sock")], Findings(), 30.0, seconds=30.0)
        told = await asking.explain("/v1/chat/completions", {}, body("hello"))
        assert (told["error"]["status"], told["error"]["code"]) == (503, "not_ready")
        with pytest.raises(NobodyAnswersError):
            await asking.policy()
        assert [one["worker"] for one in asking.silent()] == [0]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await explain(running.channel, pb.ExplainRequest(body=body("hello")))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        await asking.close()


async def test_the_private_socket_is_its_users_alone(tmp_path: Path) -> None:
    async with inspected(tmp_path):
        assert inspect_socket(tmp_path / "worker-0.sock").stat().st_mode & 0o777 == 0o600
