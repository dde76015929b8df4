"""Real workers that must not be believed, behind real Envoy: nothing that they would judge reaches an upstream."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from e2e_harness import Child, RunningEnvoy, Upstream, ask, free_address, wait_until

from router.config.bootstrap import BootstrapInputs, UpstreamCluster, render_bootstrap
from router.packs.store import shipped_folder
from router.telemetry.worker_state import read_state, state_file

pytestmark = pytest.mark.slow

BODY = json.dumps({"model": "auto", "messages": [{"role": "user", "content": "Where is my order?"}]}).encode()
BODY_BYTES = 1 << 20


@pytest.fixture
def upstream(start_upstream: Callable[[str], Upstream]) -> Upstream:
    return start_upstream("a")


@pytest.fixture
def start_worker(tmp_path: Path, upstream: Upstream, start_child: Callable[..., Child]) -> Callable[..., Path]:
    """`start_worker(pack, interval)`: a worker that serves with this text pack; gives its socket."""
    sockets: list[Path] = []

    def start(pack: str, interval: float = 0.0) -> Path:
        number = len(sockets)
        config = tmp_path / f"policy-{number}.yaml"
        config.write_text(
            "version: 1\n"
            f'upstreams: [{{model: small, cluster: a, endpoint: "{upstream.url}"}}]\n'
            "default_model: small\n"
            f"encoders: {{text: {pack}}}\n"
            f"limits: {{body_bytes: {BODY_BYTES}}}\n"
            f"parity: {{interval: {interval}}}\n"
        )
        sockets.append(tmp_path / "run" / f"w{number}.sock")
        words = [sys.executable, "-m", "router.extproc.worker", "--config", config, "--socket", sockets[-1]]
        start_child(words, env={"POINTSMAN_CACHE": str(tmp_path / "cache")})
        return sockets[-1]

    return start


@pytest.fixture
def envoy_for(upstream: Upstream, start_envoy: Callable[..., RunningEnvoy]) -> Callable[..., RunningEnvoy]:
    """`envoy_for(*sockets)`: Envoy in front of these workers."""

    def start(*sockets: Path) -> RunningEnvoy:
        inputs = BootstrapInputs(
            listen=free_address(),
            admin=free_address(),
            worker_sockets=tuple(map(str, sockets)),
            clusters=(UpstreamCluster("a", upstream.url),),
            default_cluster="a",
            on_failure="closed",
            body_bytes=BODY_BYTES,
            message_timeout=5.0,
        )
        return start_envoy(render_bootstrap(inputs), inputs.listen, inputs.admin)

    return start


def says(socket: Path, state: Literal["ready", "not_ready"]) -> bool:
    """Whether this is what the worker says of itself."""
    said = read_state(state_file(socket))
    return said is not None and said.state == state


def _tampered_pack(folder: Path) -> str:
    shutil.copytree(shipped_folder() / "starter-text", folder)
    graph = bytearray((folder / "text.onnx").read_bytes())
    graph[len(graph) // 2] ^= 1
    (folder / "text.onnx").write_bytes(graph)
    return str(folder)


def test_envoy_asks_only_the_worker_whose_pack_holds(
    tmp_path: Path, upstream: Upstream, start_worker: Callable[..., Path], envoy_for: Callable[..., RunningEnvoy]
) -> None:
    good, bad = start_worker("starter"), start_worker(_tampered_pack(tmp_path / "pack"))
    wait_until(lambda: says(good, "ready") and says(bad, "not_ready"), "both workers")
    envoy = envoy_for(good, bad)
    assert [ask(envoy, BODY).status for _ in range(20)] == [200] * 20
    assert len(upstream.seen) == 20


def test_with_drifted_workers_alone_every_request_is_refused(
    tmp_path: Path, upstream: Upstream, start_worker: Callable[..., Path], envoy_for: Callable[..., RunningEnvoy]
) -> None:
    bad = start_worker(_tampered_pack(tmp_path / "pack"))
    wait_until(lambda: says(bad, "not_ready"), "the worker")
    assert ask(envoy_for(bad), BODY).status == 503
    assert upstream.seen == []


def test_weights_that_change_under_a_serving_worker_take_it_out(
    tmp_path: Path, start_worker: Callable[..., Path], envoy_for: Callable[..., RunningEnvoy]
) -> None:
    socket = start_worker("starter", interval=0.2)
    wait_until(lambda: says(socket, "ready"), "the worker")
    envoy = envoy_for(socket)
    assert ask(envoy, BODY).status == 200
    # The worker has this file mapped: what is written here is what it computes with.
    (weights,) = (tmp_path / "cache").glob("*/model.safetensors")
    with weights.open("r+b") as file:
        file.seek(1 << 16)
        file.write(bytes(weights.stat().st_size - (1 << 16)))
    wait_until(lambda: says(socket, "not_ready"), "the canary")
    said = read_state(state_file(socket))
    assert said is not None
    assert "the canary found that a pack has drifted while serving: pack 'starter-text'" in said.why[0]
    wait_until(lambda: ask(envoy, BODY).status == 503, "Envoy to take the worker out")
