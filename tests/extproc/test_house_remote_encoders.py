"""A policy whose encoder is at a server: proven before it serves, waited for, and let fail while it serves."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from running_worker import running_worker

sys.path.append(str(Path(__file__).parents[1] / "inference" / "remote"))

from stand_in import MODEL, StandIn, hanging, refusing, saying, standing_in, until, well

from router.config.load import LoadedPolicy, parse_policy
from router.extproc.house import House, build_house, move_in
from router.extproc.machinery import SetupError, servers_of
from router.inference.remote import readiness
from router.inference.remote.server import RemoteServer
from router.packs.layout import lay_out
from router.packs.store import open_pack
from router.signals.base import Observation, SignalName

POLICY = """\
version: 1
upstreams: [{model: small, cluster: local}, {model: large, cluster: far}]
default_model: small
encoders: {text: {pack: starter, remote: "grpc://ADDRESS", model: MODEL, timeout_ms: 20000MORE}}
limits: {decision_ms: 60000}
signals:
  embedding:
    weather: {texts: [what will the weather be like], threshold: 0.6}
decisions:
  - {name: weather, when: {embedding: weather}, route: {models: [large]}}
"""
WEATHER = SignalName("embedding", "weather")


def written(address: str, more: str = "") -> str:
    return POLICY.replace("ADDRESS", address).replace("MODEL", MODEL).replace("MORE", more)


def loaded(address: str, more: str = "") -> LoadedPolicy:
    return parse_policy(written(address, more).encode(), Path("/nowhere/policy.yaml"))


@pytest.fixture(scope="module")
def graph() -> Path:
    return lay_out(open_pack("starter", "text", Path("/nowhere")), "text") / "text.onnx"


@pytest.fixture
async def server(graph: Path) -> AsyncIterator[StandIn]:
    async with standing_in(StandIn(graph, well)) as here:
        yield here


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "FIRST_SECONDS", 0.02)
    monkeypatch.setattr(readiness, "MOST_SECONDS", 0.05)


async def observed(house: House, text: str) -> Observation:
    body = json.dumps({"model": "any", "messages": [{"role": "user", "content": text}]}).encode()
    judgement = await house.pipeline.judge_body("openai.chat", body, {})
    return judgement.record.verdict.observations[WEATHER]


async def test_a_decision_rests_on_what_the_server_says(server: StandIn) -> None:
    async with build_house(loaded(server.address), 1) as house:
        assert (await observed(house, "What will the weather be like tomorrow?")).matched
        found = await observed(house, "Write a sorting function in C.")
        assert (found.status, found.matched) == ("observed", False)
        [remote] = house.machinery.encoders.remotes
        assert remote.client.ends["answered"] == server.inferred
        assert house.machinery.executor.shed == 0


FAULTS: dict[str, tuple[Any, str, str]] = {
    "down": (refusing(grpc.StatusCode.UNAVAILABLE), "failed", "RemoteUnavailableError"),
    "broken": (refusing(grpc.StatusCode.INTERNAL), "failed", "RemoteRefusedError"),
    "NaN": (saying(lambda rows: rows * np.nan), "failed", "RemoteAnswerError"),
    "another shape": (saying(lambda rows: rows[:, :9].copy()), "failed", "RemoteAnswerError"),
    "slow": (hanging, "timed_out", "deadline"),
    "busy": (refusing(grpc.StatusCode.RESOURCE_EXHAUSTED), "shed", "overloaded"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_an_observation_and_the_request_is_decided(server: StandIn, fault: str) -> None:
    async with build_house(loaded(server.address), 1) as house:
        [remote] = house.machinery.encoders.remotes
        behaves, status, reason = FAULTS[fault]
        if behaves is hanging:
            remote.client.server = server.server(timeout=0.2)
        server.behaves = behaves
        found = await observed(house, "What will the weather be like tomorrow?")
        assert (found.status, found.reason, found.matched) == (status, reason, None)


async def test_what_finds_no_place_is_shed(server: StandIn) -> None:
    async with build_house(loaded(server.address, ", concurrency: 1"), 1) as house:
        [remote] = house.machinery.encoders.remotes
        remote.lane._queue = 0
        free = asyncio.Event()

        async def waits(here: StandIn, asked: Any, context: Any) -> Any:
            await free.wait()
            return await well(here, asked, context)

        server.behaves = waits
        first = asyncio.create_task(observed(house, "What will the weather be like tomorrow?"))
        await until(lambda: server.running == 1)
        assert (await observed(house, "Is it going to rain?")).status == "shed"
        free.set()
        assert (await first).matched


async def test_a_drifted_remote_is_refused(server: StandIn) -> None:
    noise = np.random.default_rng(1).normal(size=384).astype(np.float32) / 100
    server.behaves = saying(lambda rows: (rows + noise).astype(np.float32))
    with pytest.raises(SetupError, match="drifted from its reference") as caught:
        await move_in(loaded(server.address), 1)
    assert caught.value.misses
    assert caught.value.mended is None


async def test_an_outage_in_the_middle_of_the_gate_is_no_drift(server: StandIn) -> None:
    server.behaves = refusing(grpc.StatusCode.UNAVAILABLE)
    with pytest.raises(SetupError, match=r"a remote encoder cannot be used: model 'tiny' at .*UNAVAILABLE") as caught:
        await move_in(loaded(server.address), 1)
    assert not caught.value.misses
    assert caught.value.mended is not None
    await caught.value.mended()


async def test_an_outage_while_signals_are_built_is_waited_for_too(server: StandIn) -> None:
    async def only_the_gate(here: StandIn, asked: Any, context: Any) -> Any:
        if here.inferred > 9:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED)
        return await well(here, asked, context)

    server.behaves = only_the_gate
    with pytest.raises(SetupError) as caught:
        await move_in(loaded(server.address), 1)
    assert caught.value.mended is not None


async def test_files_that_are_not_there_are_waited_for_as_well(server: StandIn, tmp_path: Path) -> None:
    token = tmp_path / "token"
    with pytest.raises(SetupError, match="token: No such file") as caught:
        await move_in(loaded(server.address, f", token_file: {token}"), 1)
    assert caught.value.mended is not None
    waiting = asyncio.create_task(caught.value.mended())
    await asyncio.sleep(0.1)
    assert not waiting.done()
    token.write_text("s3cr3t")
    await asyncio.wait_for(waiting, 60)


async def test_another_server_is_another_machinery_and_the_same_is_kept(server: StandIn, graph: Path) -> None:
    first = await move_in(loaded(server.address), 1)
    same = await move_in(loaded(server.address, " "), 1, first)
    assert same.machinery is first.machinery
    async with standing_in(StandIn(graph, well)) as other:
        moved = await move_in(loaded(other.address), 1, first)
        assert moved.machinery is not first.machinery
        moved.close()
        first.close()
        [remote] = first.machinery.encoders.remotes
        await until(lambda: remote.client._channel._closed)


def test_a_server_is_made_of_what_the_policy_says() -> None:
    policy = loaded("encoders.example.com:8001", ", concurrency: 3, retries: 0, batch: 4, version: 7a, output: out")
    [(kind, server)] = servers_of(policy)
    assert kind == "text"
    assert server == RemoteServer(
        "encoders.example.com:8001",
        False,
        MODEL,
        version="7a",
        output="out",
        timeout=20.0,
        retries=0,
        concurrency=3,
        queue=64,
        batch=4,
    )


async def test_a_worker_says_that_it_waits_for_a_server_and_serves_when_it_is_there(
    graph: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    here = StandIn(graph, well, ready=False)
    async with standing_in(here), running_worker(tmp_path, written(here.address)) as running:
        state = await running.until(ready=False)
        assert f"the server at {here.address} says that it is not ready" in state["why"][0]
        assert await running.status_of_a_request() != 0
        here.ready = True
        await running.until(ready=True)
        assert (await running.headers_of_a_chat())[0] == 0
        # A server that fails while we serve is the policy's business, and no reason to send no requests.
        here.behaves = refusing(grpc.StatusCode.UNAVAILABLE)
        for _ in range(3):
            text = [{"role": "user", "content": f"question {here.inferred}"}]
            assert (await running.headers_of_a_chat(messages=text))[0] == 0
        assert running.state()["state"] == "ready"
        said = [record.message for record in caplog.records if "remote encoder" in record.message]
        assert said.count("remote encoder fails") == 1


async def test_metrics_tell_how_calls_ended(server: StandIn, tmp_path: Path) -> None:
    async with running_worker(tmp_path, written(server.address, ", retries: 1")) as running:
        await running.until(ready=True)
        server.behaves = refusing(grpc.StatusCode.UNAVAILABLE)
        await running.headers_of_a_chat(messages=[{"role": "user", "content": "Is it going to rain?"}])
        ends = {labels["end"]: value for labels, value in running.counted("pointsman.remote.calls")}
        assert ends == {"answered": server.inferred - 2, "unavailable": 1, "retried": 1}
