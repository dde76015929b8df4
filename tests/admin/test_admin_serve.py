"""`pointsman serve --admin`: a real supervisor with a real worker, asked from outside."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import yaml
from tiny_packs import digest, write_vision_pack
from typer.testing import CliRunner

from router.cli.main import app
from router.selection.state_file import FILE_NAME, load
from router.telemetry.worker_state import read_state, state_file

PATIENCE = 60.0
POLICY = """\
version: 1
upstreams: [{model: small, cluster: local, endpoint: "http://127.0.0.1:8001"}]
default_model: small
encoders: {vision: ./pack}
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@dataclass
class Serving:
    """A `pointsman serve` with one worker."""

    process: subprocess.Popen[bytes]
    url: str
    runtime: Path
    log: Path

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, timeout=PATIENCE, trust_env=False)

    def until(self, holds: Callable[[dict[str, Any]], bool], what: str) -> httpx.Response:
        """The first answer of /readyz of which this holds."""
        limit = time.monotonic() + PATIENCE
        answer = None
        while time.monotonic() < limit:
            assert self.process.poll() is None, self.log.read_text()
            try:
                answer = self.get("/readyz")
            except httpx.ConnectError:
                answer = None
            if answer is not None and holds(answer.json()):
                return answer
            time.sleep(0.01)
        pytest.fail(f"waited for {what}; {answer and answer.text}; {self.log.read_text()}")

    def until_ready(self) -> httpx.Response:
        return self.until(lambda body: body["ready"], "a ready worker")

    def worker_pid(self) -> int:
        said = read_state(state_file(self.runtime / "worker-0.sock"))
        assert said is not None
        return said.pid

    def events(self) -> list[str]:
        return [json.loads(line)["event"] for line in self.log.read_text().splitlines()]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    """`serve()`: by default a policy with the pack in tmp_path; whatever is left of it is killed at teardown."""
    running: list[Serving] = []

    def start(policy: str = POLICY, *flags: object) -> Serving:
        config, runtime, log = tmp_path / "policy.yaml", tmp_path / "run", tmp_path / "log"
        config.write_text(policy)
        address = f"127.0.0.1:{free_port()}"
        words = ["-m", "router.cli.main", "serve", "-c", config, "--workers", "1", "--runtime-dir", runtime, *flags]
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, "POINTSMAN_ADMIN": address},
            )
        running.append(Serving(process, f"http://{address}", runtime, log))
        return running[-1]

    yield start
    for one in running:
        # The workers end with their supervisor.
        one.process.kill()
        one.process.wait()


def test_a_worker_with_a_good_pack_makes_it_ready_and_sigterm_ends_it_all(
    tmp_path: Path, serve: Callable[..., Serving]
) -> None:
    write_vision_pack(tmp_path / "pack")
    serving = serve()
    answer = serving.until_ready()
    assert answer.status_code == 200
    [worker] = answer.json()["workers"]
    assert (worker["worker"], worker["state"], worker["why"]) == (0, "ready", [])
    assert serving.get("/livez").status_code == 200
    assert serving.get("/livez/").status_code == 404
    assert httpx.post(serving.url + "/readyz", trust_env=False).status_code == 405
    assert "server" not in answer.headers
    serving.process.send_signal(signal.SIGTERM)
    drained = serving.until(lambda body: not body["ready"], "the drain")
    assert drained.json()["workers"][0]["why"] == ["it is draining"]
    assert serving.process.wait(PATIENCE) == 0
    with pytest.raises(httpx.ConnectError):
        serving.get("/livez")
    assert serving.events() == ["admin listens", "ready", "draining", "ended"]


def test_a_drifted_pack_is_not_ready_and_readyz_names_pack_and_stage(
    tmp_path: Path, serve: Callable[..., Serving]
) -> None:
    pack = write_vision_pack(tmp_path / "pack")
    golden = dict(np.load(pack / "golden/vision.npz"))
    np.savez(pack / "golden/vision.npz", pixels=golden["pixels"], embeddings=golden["embeddings"][:, ::-1])
    manifest = yaml.safe_load((pack / "pack.yaml").read_text())
    manifest["vision"]["golden"]["sha256"] = digest(pack / "golden/vision.npz")
    (pack / "pack.yaml").write_text(yaml.safe_dump(manifest))
    serving = serve()
    answer = serving.until(lambda body: body["workers"][0]["state"] == "not_ready", "the refusal")
    assert answer.status_code == 503
    why, *_ = answer.json()["workers"][0]["why"]
    assert "pack 'tiny-vision', embeddings" in why
    assert serving.get("/livez").status_code == 200


def test_a_killed_worker_is_not_ready_until_it_is_back(tmp_path: Path, serve: Callable[..., Serving]) -> None:
    write_vision_pack(tmp_path / "pack")
    serving = serve()
    serving.until_ready()
    killed = serving.worker_pid()
    os.kill(killed, signal.SIGKILL)
    answer = serving.until(lambda body: not body["ready"], "the death to be seen")
    assert answer.status_code == 503
    assert answer.json()["workers"][0]["state"] in ("ended", "starting")
    assert serving.until_ready().status_code == 200
    assert serving.worker_pid() != killed


def run(tmp_path: Path, admin: str) -> Any:
    write_vision_pack(tmp_path / "pack")
    (tmp_path / "policy.yaml").write_text(POLICY)
    words = ["serve", "-c", tmp_path / "policy.yaml", "--runtime-dir", tmp_path / "run", "--admin", admin]
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.mark.parametrize("admin", ["0.0.0.0:9902", "[::]:9902", "10.0.0.5:9902", "[::ffff:10.0.0.5]:9902"])
def test_an_address_that_others_could_reach_is_refused(tmp_path: Path, admin: str) -> None:
    result = run(tmp_path, admin)
    assert result.exit_code == 2
    assert "--admin takes a loopback address only" in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("admin", ["9902", "localhost:9902", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:70000", "[::1]"])
def test_what_is_no_address_is_refused(tmp_path: Path, admin: str) -> None:
    result = run(tmp_path, admin)
    assert result.exit_code == 2
    assert "--admin takes an IP address and a port" in result.stderr


def test_a_port_in_use_is_said_and_no_worker_started(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        admin = f"127.0.0.1:{taken.getsockname()[1]}"
        result = run(tmp_path, admin)
    assert result.exit_code == 1
    assert result.stderr.strip().endswith(f"error: --admin {admin}: Address already in use")
    assert not list((tmp_path / "run").glob("worker-*"))


LEARNS = """\
version: 1
upstreams:
  - {model: small, cluster: local, endpoint: "http://127.0.0.1:8001"}
  - {model: large, cluster: remote, endpoint: "http://127.0.0.1:8002"}
default_model: small
decisions:
  - {name: one, when: {conversation: has_images}, route: {models: [small, large], select: bandit}}
"""


def reward(record: str, **change: object) -> dict[str, object]:
    return {"record": record, "decision": "one", "model": "large", "reward": 1.0, **change}


def test_rewards_survive_a_kill_and_are_there_after_a_restart(tmp_path: Path, serve: Callable[..., Serving]) -> None:
    (tmp_path / "state").mkdir()
    serving = serve(LEARNS, "--state", tmp_path / "state")
    serving.until_ready()
    rows = [reward(f"r{n}") for n in range(20)]
    answer = httpx.post(serving.url + "/rewards", json=rows, timeout=PATIENCE, trust_env=False)
    assert answer.json() == {"received": 20, "new": 20}
    assert httpx.post(serving.url + "/rewards", json=reward("x", decision="two"), trust_env=False).status_code == 422
    file = tmp_path / "state" / FILE_NAME
    wait_for(file.exists, "the state to be saved")
    serving.process.kill()
    serving.process.wait()
    assert load(file).arm("one", "large").rewards == 20
    again = serve(LEARNS, "--state", tmp_path / "state")
    again.until_ready()
    httpx.post(again.url + "/rewards", json=reward("r20"), timeout=PATIENCE, trust_env=False)
    again.process.send_signal(signal.SIGTERM)
    assert again.process.wait(PATIENCE) == 0
    assert load(file).arm("one", "large").rewards == 21


def wait_for(holds: Callable[[], bool], what: str) -> None:
    limit = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < limit, f"waited for {what}"
        time.sleep(0.01)


def test_two_may_not_keep_one_state(tmp_path: Path, serve: Callable[..., Serving]) -> None:
    first = serve(LEARNS, "--state", tmp_path / "state")
    first.until_ready()
    words = ["serve", "-c", tmp_path / "policy.yaml", "--runtime-dir", tmp_path / "run2", "--state", tmp_path / "state"]
    result = CliRunner().invoke(app, [*map(str, words), "--admin", f"127.0.0.1:{free_port()}"])
    assert result.exit_code == 1
    assert "is in use by another `pointsman serve`; name another folder with --state" in result.stderr


def test_a_state_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    (tmp_path / "policy.yaml").write_text(LEARNS)
    words = [
        "serve",
        "-c",
        tmp_path / "policy.yaml",
        "--runtime-dir",
        tmp_path / "run",
        "--state",
        tmp_path / "taken/x",
    ]
    result = CliRunner().invoke(app, [*map(str, words), "--admin", f"127.0.0.1:{free_port()}"])
    assert result.exit_code == 1
    assert "name a folder that can be written with --state" in result.stderr
