"""A worker that must not be believed says so, stays, and says why."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import yaml
from grpc_health.v1 import health_pb2
from PIL import Image
from running_worker import PATIENCE, Running, running_worker
from tiny_packs import copy_text_pack, give_text_pack_another_tokenizer, write_vision_pack

from router.extproc import life
from router.inference.preprocess import Preprocessor
from router.inference.vision_model import VisionModel
from router.telemetry.worker_state import read_state, state_file

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
POLICY = """\
version: 1
upstreams: [{{model: small, cluster: local, endpoint: "http://127.0.0.1:8001"}}]
default_model: small
encoders: {{{encoders}}}
parity: {{interval: {interval}}}
"""


Start = Callable[..., AbstractAsyncContextManager[Running]]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """`start(encoders, interval=0)`: a worker under a policy with these encoders."""
    monkeypatch.setattr(life, "DRAIN_NOTICE", 0.0)

    @asynccontextmanager
    async def starting(encoders: str, interval: float = 0) -> AsyncIterator[Running]:
        async with running_worker(tmp_path, POLICY.format(encoders=encoders, interval=interval)) as running:
            yield running

    return starting


@pytest.fixture
def vision(tmp_path: Path) -> Path:
    return write_vision_pack(tmp_path / "vision")


async def test_a_pack_that_holds_makes_the_worker_ready(start: Start, vision: Path) -> None:
    async with start("vision: ./vision") as running:
        state = await running.until(ready=True)
        assert state["why"] == []
        assert await running.health() == SERVING
        assert running.counted("pointsman.worker.ready") == [({}, 1)]


def _tamper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    graph = write_vision_pack(tmp_path / "pack") / "vision.onnx"
    data = bytearray(graph.read_bytes())
    data[-400] ^= 1
    graph.write_bytes(data)
    return "vision: ./pack"


def _other_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    give_text_pack_another_tokenizer(copy_text_pack(tmp_path / "pack"))
    return "text: ./pack"


def _other_resize(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    write_vision_pack(tmp_path / "pack")

    def resize(self: Preprocessor, image: Image.Image) -> Any:
        return np.asarray(image.resize((16, 16), Image.Resampling.BILINEAR))

    monkeypatch.setattr(Preprocessor, "resize", resize)
    return "vision: ./pack"


def _fallen_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    write_vision_pack(tmp_path / "pack")
    fallen = ["AzureExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime.InferenceSession, "get_providers", lambda session: fallen)
    return "vision: ./pack"


@pytest.mark.parametrize(
    ("fault", "says", "counted"),
    [
        (_tamper, "vision.onnx has sha256", {"stage": "setup"}),
        (
            _other_tokenizer,
            "has other token ids than the reference tokeniser",
            {"pack": "starter-text", "stage": "tokens"},
        ),
        (_other_resize, "decoding or resizing is not what it was", {"pack": "tiny-vision", "stage": "pixels"}),
        (_fallen_back, "runs on AzureExecutionProvider", {"stage": "setup"}),
    ],
)
async def test_a_pack_that_drifted_stops_readiness_and_the_reason_is_told(
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: Callable[[Path, pytest.MonkeyPatch], str],
    says: str,
    counted: dict[str, str],
) -> None:
    async with start(fault(tmp_path, monkeypatch)) as running:
        state = await running.until(ready=False)
        assert says in " ".join(state["why"])
        assert await running.health() == NOT_SERVING
        assert counted in [attributes for attributes, _ in running.counted("pointsman.parity.misses")]
        assert running.counted("pointsman.worker.ready") == []


async def test_a_request_that_comes_to_an_unready_worker_gets_the_failure_outcome(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start(_tamper(tmp_path, monkeypatch)) as running:
        await running.until(ready=False)
        assert await running.status_of_a_request() == 503


async def test_the_canary_takes_a_worker_out_when_its_model_goes_wrong(
    start: Start, vision: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start("vision: ./vision", interval=0.05) as running:
        await running.until(ready=True)
        assert await running.health() == SERVING
        assert await running.status_of_a_request() == 0
        forward = VisionModel.forward
        monkeypatch.setattr(VisionModel, "forward", lambda self, pixels: forward(self, pixels)[:, ::-1])
        state = await running.until(ready=False)
        assert (
            "the canary found that a pack has drifted while serving: pack 'tiny-vision', embeddings" in state["why"][0]
        )
        assert await running.health() == NOT_SERVING
        ((attributes, count),) = running.counted("pointsman.parity.misses")
        assert attributes == {"pack": "tiny-vision", "stage": "embeddings"}
        assert count == 1
        assert running.counted("pointsman.worker.ready") == []
        async with asyncio.timeout(PATIENCE):
            while await running.status_of_a_request() != 503:
                pass


async def test_a_state_that_cannot_be_written_leaves_no_older_one_behind(
    start: Start, vision: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start("vision: ./vision", interval=0.05) as running:
        await running.until(ready=True)
        (tmp_path / "worker-0.state.tmp").mkdir()
        forward = VisionModel.forward
        monkeypatch.setattr(VisionModel, "forward", lambda self, pixels: forward(self, pixels)[:, ::-1])
        async with asyncio.timeout(PATIENCE):
            while await running.health() != NOT_SERVING or running.state():
                pass


async def test_what_a_killed_worker_left_behind_is_not_believed(start: Start, tmp_path: Path) -> None:
    state_file(tmp_path / "worker-0.sock").write_text('{"state": "ready"}')
    (tmp_path / "pack").mkdir()
    async with start("vision: ./pack") as running:
        state = await running.until(ready=False)
        assert "pack.yaml cannot be read" in state["why"][0]


async def test_serving_a_pack_whose_drift_was_allowed_is_warned_of(
    start: Start, vision: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manifest = yaml.safe_load((vision / "pack.yaml").read_text())
    figures = {"inputs": 8, "measure": "cosine", "worst": 0.9, "mean": 0.95, "gate": 0.998, "drift_allowed": True}
    manifest["vision"]["parity"] = {"reference": "PyTorch", **figures}
    (vision / "pack.yaml").write_text(yaml.safe_dump(manifest))
    async with start("vision: ./vision") as running:
        await running.until(ready=True)
    (warned,) = [record for record in caplog.records if record.getMessage() == "pack with drift that was allowed"]
    assert warned.__dict__["fields"] == {"pack": "tiny-vision", "worst": 0.9, "gate": 0.998}


def test_a_worker_process_with_a_drifted_pack_stays_and_ends_when_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, socket = tmp_path / "policy.yaml", tmp_path / "worker-0.sock"
    config.write_text(POLICY.format(encoders=_tamper(tmp_path, monkeypatch), interval=0))
    words = ["-m", "router.extproc.worker", "--config", config, "--socket", socket]
    log = tmp_path / "log"
    with log.open("wb") as out:
        process = subprocess.Popen([sys.executable, *map(str, words)], stderr=out)
    try:
        limit = time.monotonic() + PATIENCE
        while (said := read_state(state_file(socket))) is None or said.state != "not_ready":
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < limit
            time.sleep(0.02)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (refused,) = [line for line in lines if line["event"] == "not ready"]
    assert refused["level"] == "error"
    assert "vision.onnx has sha256" in refused["why"]
