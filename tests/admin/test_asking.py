"""Asking workers: their answers put together, and those left out that do not answer in time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from router.admin.asking import Asking
from router.admin.findings import Findings
from router.admin.insight import Filter, NobodyAnswersError, WrongFilterError
from router.proto.pointsman.v1 import explain_pb2, inspection_pb2
from router.telemetry.prometheus import SCRAPED

Answer = Callable[[Any], Awaitable[Any]]


def says(message: Any) -> Answer:
    async def answer(_request: Any) -> Any:
        return message

    return answer


def aborts(code: grpc.StatusCode) -> Answer:
    async def answer(_request: Any) -> Any:
        raise grpc.aio.AbortError(code)

    return answer


async def hangs(_request: Any) -> Any:
    await asyncio.Event().wait()


REQUESTS = {
    "Metrics": inspection_pb2.MetricsRequest,
    "Recent": inspection_pb2.RecentRequest,
    "Record": inspection_pb2.RecordRequest,
    "Policy": inspection_pb2.PolicyRequest,
    "Parity": inspection_pb2.ParityRequest,
    "Explain": explain_pb2.ExplainRequest,
}


def handler(method: str, answer: Answer) -> Any:
    async def call(request: Any, context: Any) -> Any:
        try:
            return await answer(request)
        except grpc.aio.AbortError as error:
            await context.abort(error.args[0], "PATH OF THIS MACHINE")

    return grpc.unary_unary_rpc_method_handler(
        call,
        request_deserializer=REQUESTS[method].FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


@asynccontextmanager
async def workers(folder: Path, *each: dict[str, Answer] | None, seconds: float = 20.0) -> AsyncIterator[Asking]:
    """Workers that answer so; None is one that is not there."""
    servers, sockets = [], []
    for index, answers in enumerate(each):
        sockets.append(folder / f"{index}.sock")
        if answers is not None:
            server = grpc.aio.server()
            for service, methods in (("Explain", {"Explain"}), ("Inspection", set(REQUESTS) - {"Explain"})):
                handlers = {name: handler(name, one) for name, one in answers.items() if name in methods}
                server.add_generic_rpc_handlers(
                    (grpc.method_handlers_generic_handler(f"pointsman.v1.{service}", handlers),)
                )
            server.add_insecure_port(f"unix:{sockets[-1]}")
            await server.start()
            servers.append(server)
    asking = Asking(sockets, findings := Findings(), 20.0, seconds)
    try:
        yield asking
    finally:
        await findings.close()
        await asking.close()
        for server in servers:
            await server.stop(0)


def recent(*moments: int) -> Answer:
    requests = [inspection_pb2.Remembered(at=at, document=json.dumps({"record": f"r{at}"}).encode()) for at in moments]
    return says(inspection_pb2.RecentResponse(requests=requests))


async def test_decisions_of_all_workers_are_merged_by_time(tmp_path: Path) -> None:
    async with workers(tmp_path, {"Recent": recent(9, 4, 1)}, {"Recent": recent(7, 5)}) as asking:
        found = await asking.decisions(Filter(limit=4))
    assert [(one["record"], one["worker"]) for one in found] == [("r9", 0), ("r7", 1), ("r5", 1), ("r4", 0)]


async def test_one_that_hangs_or_is_away_is_left_out_and_named(tmp_path: Path) -> None:
    async with workers(tmp_path, {"Recent": recent(9)}, {"Recent": hangs}, None, seconds=1.0) as asking:
        assert [one["record"] for one in await asking.decisions(Filter())] == ["r9"]
        silent = asking.silent()
        assert [one["worker"] for one in silent] == [1, 2]
        assert silent[0]["why"] == "it did not answer in time"
        assert str(tmp_path) not in json.dumps(silent)


@pytest.mark.parametrize("since", ["yesterday", "7x", "2026-13-01", "-5m", "99999999999d"])
async def test_a_filter_without_sense_is_refused(tmp_path: Path, since: str) -> None:
    async with workers(tmp_path, {"Recent": recent(1)}) as asking:
        with pytest.raises(WrongFilterError):
            await asking.decisions(Filter(since=since))


def policy(digest: str, hits: dict[str, int]) -> Answer:
    text = b"version: 1\nupstreams: [{model: m, cluster: c}]\ndefault_model: m\n"
    document = json.dumps({"decisions": []}).encode()
    return says(
        inspection_pb2.PolicyResponse(digest=digest, path="/x/policy.yaml", text=text, hits=hits, document=document)
    )


async def test_the_policy_of_most_is_shown_and_its_hits_are_added(tmp_path: Path) -> None:
    answers = [policy("new", {"a": 1, "b": 2}), policy("old", {"a": 100}), policy("new", {"a": 5})]
    async with workers(tmp_path, *({"Policy": one} for one in answers)) as asking:
        told = await asking.policy()
    assert (told["digest"], told["path"], told["hits"]) == ("new", "policy.yaml", {"a": 6, "b": 2})
    assert [one["digest"] for one in told["workers"]] == ["new", "old", "new"]


async def test_when_nobody_answers_it_is_raised(tmp_path: Path) -> None:
    async with workers(tmp_path, {"Policy": aborts(grpc.StatusCode.UNAVAILABLE)}, None) as asking:
        with pytest.raises(NobodyAnswersError):
            await asking.policy()
        with pytest.raises(NobodyAnswersError):
            await asking.parity()
        assert await asking.decisions(Filter()) == []
        assert await asking.record("r1") is None


EXPLAINED = explain_pb2.ExplainResponse(explanation=explain_pb2.Explanation(document=b'{"decision": "one"}'))


async def test_a_busy_worker_hands_on_to_the_next(tmp_path: Path) -> None:
    busy, free = {"Explain": aborts(grpc.StatusCode.RESOURCE_EXHAUSTED)}, {"Explain": says(EXPLAINED)}
    async with workers(tmp_path, busy, free) as asking:
        told = [await asking.explain("/v1/chat/completions", {}, b"{}") for _ in range(4)]
    assert [(one["decision"], one["worker"]) for one in told] == [("one", 1)] * 4


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "busy"),
        (grpc.StatusCode.UNAVAILABLE, "not_ready"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "deadline"),
        (grpc.StatusCode.INTERNAL, "failed"),
    ],
)
async def test_why_nobody_explains_is_told_in_our_own_words(tmp_path: Path, code: grpc.StatusCode, told: str) -> None:
    async with workers(tmp_path, {"Explain": aborts(code)}) as asking:
        error = (await asking.explain("/v1/chat/completions", {}, b"{}"))["error"]
    assert (error["status"], error["code"]) == (503, told)
    assert "MACHINE" not in error["message"]


async def test_metrics_say_which_worker_gave_none(tmp_path: Path) -> None:
    text = b"# HELP m M.\n# TYPE m gauge\nm 1.0\n"
    scraped = {"Metrics": says(inspection_pb2.MetricsResponse(text=text))}
    async with workers(tmp_path, scraped, None) as asking:
        page = (await asking.metrics()).decode()
    assert 'm{worker="0"} 1.0' in page
    assert f'{SCRAPED}{{worker="0"}} 1' in page and f'{SCRAPED}{{worker="1"}} 0' in page


async def test_findings_that_take_too_long_are_not_waited_for(tmp_path: Path) -> None:
    findings = Findings(seconds=0.0)
    assert await findings.of("d", tmp_path / "policy.yaml", b"version: 1\n", wait=30.0) is None
