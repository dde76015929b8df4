"""Starts and ends what the demo needs: stub upstreams, Pointsman, Envoy. Every process it started ends with it.

The ports of the policy are used where they are free; where one is taken, a free one takes its place in the copy of the
policy that this run uses.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from router.config.envoy_binary import find_envoy
from router.config.load import load_policy

POLICY = Path(__file__).with_name("policy.yaml")
ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
READY_SECONDS = 60.0
END_SECONDS = 10.0

Say = Callable[[str], None]


class StackError(Exception):
    """Something that the demo needs did not come up; the text says what, and quotes its last words."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A running demo."""

    url: str
    policy: Path
    log: Path
    supervisor_pid: int
    runtime_dir: Path
    port_taken: bool

    def records(self) -> dict[str, dict[str, Any]]:
        """The decision records that the workers have logged so far, by record id."""
        found = {}
        for line in self.log.read_text().splitlines():
            if line.startswith("{") and '"event":"decision"' in line:
                row = json.loads(line)
                found[row["record"]] = row
        return found

    def record(self, identifier: str) -> dict[str, Any]:
        """One record; it is logged before the request goes on, so it is here within moments."""
        end = time.monotonic() + 5
        while time.monotonic() < end:
            found = self.records().get(identifier)
            if found is not None:
                return found
            time.sleep(0.02)
        raise StackError(f"no record {identifier} in {self.log}")


@contextmanager
def running_stack(say: Say, *, workers: int = 2, preferred_port: int = 10000) -> Iterator[Stack]:
    """Bring everything up, yield, and end everything, whatever happens in between."""
    processes: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="pointsman-", ignore_cleanup_errors=True) as folder:
        run = Path(folder)
        try:
            yield _bring_up(run, processes, say, workers, preferred_port)
        finally:
            _end(processes)


def _bring_up(run: Path, processes: list[subprocess.Popen[bytes]], say: Say, workers: int, preferred: int) -> Stack:
    policy, clusters = _policy_with_free_ports(run)
    stubs = [f"{cluster}={port}" for cluster, port in clusters.items()]
    say(f"starting {len(stubs)} stub upstreams: {', '.join(stubs)}")
    processes.append(_start([sys.executable, "-m", "examples.demo.upstreams", *stubs], run / "upstreams.log"))

    say(f"starting Pointsman with {workers} workers")
    command = [sys.executable, "-m", "router.cli.main"]
    place = ["--workers", str(workers), "--runtime-dir", str(run / "run")]
    log = run / "pointsman.log"
    processes.append(_start([*command, "serve", "-c", str(policy), *place], log))
    supervisor = processes[-1]

    port = _free_port(preferred)
    bootstrap = run / "envoy.yaml"
    rendered = subprocess.run(
        [*command, "envoy", str(policy), "--listen", f"{HOST}:{port}", *place],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if rendered.returncode != 0:
        raise StackError(f"pointsman envoy failed:\n{rendered.stderr.decode()}")
    bootstrap.write_bytes(rendered.stdout)
    say("starting Envoy")
    # A base id of its own lets Envoys of other users and tests run beside this one.
    arguments = [str(find_envoy()), "-c", str(bootstrap), "--use-dynamic-base-id", "--log-level", "warning"]
    processes.append(_start(arguments, run / "envoy.log"))

    url = f"http://{HOST}:{port}"
    _wait_until_served(url, processes, run)
    return Stack(url, policy, log, supervisor.pid, run / "run", port != preferred)


def _policy_with_free_ports(run: Path) -> tuple[Path, dict[str, int]]:
    text = POLICY.read_text()
    clusters = {}
    for upstream in load_policy(POLICY).policy.upstreams:
        wanted = int(str(upstream.endpoint).rpartition(":")[2])
        port = _free_port(wanted)
        text = re.sub(rf":{wanted}\b", f":{port}", text)
        clusters[upstream.cluster] = port
    copy = run / "policy.yaml"
    copy.write_text(text)
    return copy, clusters


def _free_port(preferred: int) -> int:
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise StackError("no free port on loopback")


def _start(arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    # A session of its own: Ctrl-C reaches the demo alone, which then ends everything in order.
    with log.open("wb") as file:
        return subprocess.Popen(arguments, cwd=ROOT, stdout=file, stderr=file, start_new_session=True)


def _wait_until_served(url: str, processes: list[subprocess.Popen[bytes]], run: Path) -> None:
    """Until a request passes Envoy, Pointsman and an upstream."""
    body = json.dumps({"model": "any", "messages": [{"role": "user", "content": "hello"}]}).encode()
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        for process in processes:
            if process.poll() is not None:
                raise StackError(f"{Path(process.args[0]).name} ended early:\n{_last_words(run)}")  # type: ignore[index]
        request = urllib.request.Request(
            f"{url}/v1/chat/completions", data=body, headers={"content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise StackError(f"nothing was served within {READY_SECONDS:.0f} s:\n{_last_words(run)}")


def _last_words(run: Path) -> str:
    words = []
    for log in sorted(run.glob("*.log")):
        tail = log.read_text(errors="replace").splitlines()[-8:]
        words += [f"--- {log.name}", *tail]
    return "\n".join(words)


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Envoy first, so that no request meets a half-ended house; then Pointsman, then the stubs."""
    for process in reversed(processes):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
