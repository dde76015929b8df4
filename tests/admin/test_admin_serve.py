"""`pointsman serve --admin`: a real supervisor with a real worker, asked from outside."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
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
import trustme
import yaml
from tiny_packs import digest, write_vision_pack
from typer.testing import CliRunner

from router.cli.main import app
from router.extproc.feeding import Feed
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
    """A `pointsman serve` with one worker, or as many as its flags say."""

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

    def worker_pid(self, index: int = 0) -> int:
        said = read_state(state_file(self.runtime / f"worker-{index}.sock"))
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
        tls = "--admin-cert" in flags
        words = ["-m", "router.cli.main", "serve", "-c", config, "--workers", "1", "--runtime-dir", runtime, *flags]
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, "POINTSMAN_ADMIN": address},
            )
        running.append(Serving(process, f"http{'s' if tls else ''}://{address}", runtime, log))
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
    assert serving.events() == ["admin listens", "keeper listens", "ready", "draining", "ended"]


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
    assert "can be reached from other machines" in result.stderr
    assert "--admin-token-file" in result.stderr
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


DECIDES = """\
version: 1
upstreams: [{model: small, cluster: c}, {model: large, cluster: d}]
default_model: small
trusted_headers: [x-team]
signals: {keyword: {depth: {any: [proof]}}, header: {blue: {name: x-team, any: [blue]}}}
decisions:
  - {name: deep, when: {any: [{keyword: depth}, {header: blue}]}, route: {models: [large]}}
"""
ASKED = {"model": "auto", "messages": [{"role": "user", "content": "a proof"}]}
TOKEN = "a-token-that-is-long-enough"


def post(serving: Serving, path: str, **more: Any) -> httpx.Response:
    return httpx.post(serving.url + path, timeout=PATIENCE, trust_env=False, **more)


def all_ready(body: dict[str, Any]) -> bool:
    return all(worker["state"] == "ready" for worker in body["workers"])


def timeless(value: Any) -> Any:
    seen = ("record", "seed", "worker", "would")
    if isinstance(value, dict):
        return {key: timeless(each) for key, each in value.items() if not (key in seen or key.endswith("ms"))}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def test_two_workers_take_turns_and_explain_as_the_command_does(tmp_path: Path, serve: Callable[..., Serving]) -> None:
    serving = serve(DECIDES, "--workers", "2")
    serving.until(all_ready, "two ready workers")
    command = ["explain", str(tmp_path / "policy.yaml"), "-", "--json"]
    expected = json.loads(CliRunner().invoke(app, command, input=json.dumps(ASKED)).stdout)
    sent: dict[str, Any] = {"content": json.dumps(ASKED), "headers": {"content-type": "application/json"}}
    answers = [post(serving, "/explain", **sent) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert {answer.json()["worker"] for answer in answers} == {0, 1}
    assert [timeless(answer.json()) for answer in answers] == [timeless(expected)] * 4
    assert serving.get("/api/decisions").json() == {"decisions": [], "silent": []}
    assert post(serving, "/explain", content=b"{", headers={"content-type": "application/json"}).status_code == 422
    metrics = serving.get("/metrics").text
    assert 'pointsman_worker_scraped{worker="0"} 1' in metrics and 'pointsman_worker_scraped{worker="1"} 1' in metrics
    policy = serving.get("/policy").json()
    assert [worker["worker"] for worker in policy["workers"]] == [0, 1]
    assert (policy["document"], policy["digest"]) == (DECIDES, policy["served"][0])


def test_while_a_worker_is_dead_the_other_answers_and_the_dead_is_named(
    tmp_path: Path, serve: Callable[..., Serving]
) -> None:
    serving = serve(DECIDES, "--workers", "2")
    serving.until(all_ready, "two ready workers")
    # Stopped, not killed: the supervisor has nothing to start again until the silence is noticed.
    os.kill(serving.worker_pid(1), signal.SIGSTOP)
    listed = serving.get("/api/decisions").json()
    assert [one["worker"] for one in listed["silent"]] == [1]
    assert serving.get("/metrics").text.count('pointsman_worker_scraped{worker="1"} 0') == 1
    assert [worker["worker"] for worker in serving.get("/policy").json()["workers"]] == [0]
    os.kill(serving.worker_pid(1), signal.SIGKILL)
    serving.until(all_ready, "the worker to be back")
    wait_for(lambda: serving.get("/api/decisions").json()["silent"] == [], "it to answer again")


def test_the_probe_address_has_health_and_metrics_and_nothing_else(serve: Callable[..., Serving]) -> None:
    probe = f"127.0.0.1:{free_port()}"
    serving = serve(DECIDES, "--probe", probe)
    serving.until_ready()
    found = {path: httpx.get(f"http://{probe}{path}", trust_env=False).status_code for path in PROBED}
    assert found == dict.fromkeys(PROBED, 404) | {"/livez": 200, "/readyz": 200, "/metrics": 200}
    named = httpx.get(f"http://{probe}/readyz", headers={"host": "pod-7.example"}, trust_env=False)
    assert named.status_code == 200
    assert httpx.post(f"http://{probe}/rewards", json={}, trust_env=False).status_code == 404


PROBED = (
    "/livez",
    "/readyz",
    "/metrics",
    "/",
    "/policy",
    "/api/policy",
    "/decisions",
    "/explain",
    "/login",
    "/rewards",
)


def test_with_a_token_nothing_is_shown_without_it_and_workers_tell_their_measurements_still(
    tmp_path: Path, serve: Callable[..., Serving]
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    serving = serve(LEARNS, "--admin-token-file", file)
    wait_for(lambda: "ready" in serving.events(), "a ready worker")
    for path in ("/", "/policy", "/readyz", "/metrics", "/api/decisions"):
        assert serving.get(path).status_code == 401
    bearer = {"authorization": f"Bearer {TOKEN}"}
    shown = httpx.get(serving.url + "/api/decisions", headers=bearer, timeout=PATIENCE, trust_env=False)
    assert shown.json() == {"decisions": [], "silent": []}
    assert post(serving, "/rewards", json=reward("r1")).status_code == 401
    assert post(serving, "/rewards", json=reward("r1"), headers=bearer).json() == {"received": 1, "new": 1}
    asyncio.run(_measure(serving.runtime / "feedback.sock"))
    kept = tmp_path / "run" / FILE_NAME
    wait_for(lambda: kept.exists() and load(kept).speed("small").ttft == (12.5,), "the measurement to be kept")
    assert TOKEN not in serving.log.read_text()


async def _measure(socket: Path) -> None:
    feed = Feed(socket)
    feed.take({"model": "small", "ttft_ms": 12.5})
    await feed.send()


def test_with_client_certificates_only_who_has_one_gets_in(tmp_path: Path, serve: Callable[..., Serving]) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    files = ("--admin-cert", tmp_path / "cert.pem", "--admin-key", tmp_path / "key.pem")
    serving = serve(DECIDES, *files, "--admin-client-ca", tmp_path / "ca.pem")
    wait_for(lambda: "ready" in serving.events(), "a ready worker")
    stranger = ssl.create_default_context()
    authority.configure_trust(stranger)
    with pytest.raises(httpx.TransportError):
        httpx.get(serving.url + "/livez", verify=stranger, trust_env=False)
    known = ssl.create_default_context()
    authority.configure_trust(known)
    authority.issue_cert("operator@example.org").configure_cert(known)
    assert httpx.get(serving.url + "/readyz", verify=known, trust_env=False).json()["ready"] is True


def run_with(tmp_path: Path, *flags: object) -> Any:
    (tmp_path / "policy.yaml").write_text(DECIDES)
    words = ["serve", "-c", tmp_path / "policy.yaml", "--runtime-dir", tmp_path / "run", *flags]
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--admin-token-file", "token"), "go with --admin"),
        (("--admin", "127.0.0.1:9902", "--admin-cert", "c"), "--admin-cert and --admin-key go together"),
        (("--admin", "127.0.0.1:9902", "--admin-client-ca", "c"), "--admin-cert and --admin-key go together"),
        (("--admin", "0.0.0.0:9902", "--admin-cert", "c", "--admin-key", "k"), "c and k:"),
        (("--probe", "0.0.0.0"), "--probe takes an IP address and a port"),
    ],
)
def test_flags_that_cannot_be_meant_are_refused(tmp_path: Path, flags: tuple[str, ...], told: str) -> None:
    result = run_with(tmp_path, *flags)
    assert result.exit_code in (1, 2)
    assert told in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("token", "told"),
    [
        (b"short", "at least 16 characters"),
        (b"", "at least 16 characters"),
        (b"with spaces in it, and long", "no spaces"),
        (b"two-lines-of-it\nand-another-one", "one line of printable ASCII"),
        ("nicht-druckbar-\u00e4\u00f6".encode(), "one line of printable ASCII"),
        (b"x" * 5000, "one line of printable ASCII"),
    ],
)
def test_a_token_that_is_none_is_refused_without_being_shown(tmp_path: Path, token: bytes, told: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(token)
    result = run_with(tmp_path, "--admin", "127.0.0.1:9902", "--admin-token-file", file)
    assert (result.exit_code, told in result.stderr) == (2, True)
    assert not token or token.decode() not in result.stderr


def test_a_token_file_that_others_can_read_is_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o644)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        admin = f"127.0.0.1:{taken.getsockname()[1]}"
        result = run_with(tmp_path, "--admin", admin, "--admin-token-file", file)
    assert "can be read by others on this machine" in result.stderr
    assert TOKEN not in result.stderr
