"""Workers side by side, each behind an Envoy of its own before one upstream, and a client that asks them in turns.

What the machine does meanwhile falls on all alike. Used by the benchmarks beside it; not one itself.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import yaml

from router.config.bootstrap import Address, BootstrapInputs, UpstreamCluster, render_bootstrap
from router.config.envoy_binary import find_envoy
from router.extproc.supervisor import ALLOCATOR

HOST = "127.0.0.1"
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CLUSTER = "local"
ROUNDS_OF_WARMUP = 200
BLOCK = 20
"""Requests to one of them before the next has its turn: each runs with its caches warm, as it would in service."""


POLICY = """\
version: 1
upstreams: [{{model: m, modalities: [text, image], cluster: local, endpoint: "http://127.0.0.1:{port}"}}]
default_model: m
signals:
  keyword:
    medical: {{any: [radiograph, diagnosis, dosage, side effect]}}
    legal: {{any: [contract, liability, plaintiff]}}
    order: {{any: ['ORD-[0-9]{{6}}'], method: regex}}
decisions:
  - {{name: medical, priority: 3, when: {{keyword: medical}}, route: {{models: [m]}}}}
  - name: legal
    when: {{all: [{{keyword: legal}}, {{not: {{keyword: order}}}}]}}
    route: {{models: [m]}}
"""


class Client:
    """One keep-alive connection; a request is written and its answer read, nothing else."""

    def __init__(self, port: int, body: bytes) -> None:
        self._socket = socket.create_connection((HOST, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        self._request = head.encode() + body

    def ask(self) -> float:
        """Seconds from the first byte sent to the last byte read."""
        started = time.perf_counter()
        self._socket.sendall(self._request)
        answer = b""
        while not answer.endswith(b"{}"):
            data = self._socket.recv(65536)
            if not data:
                raise RuntimeError("the connection was closed")
            answer += data
        seconds = time.perf_counter() - started
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"not served: {answer[:60]!r}")
        return seconds


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens on {port}")


def bootstrap(run: Path, name: str, upstream: int, *, ext_proc: bool) -> tuple[Path, int]:
    port = free_port()
    text = render_bootstrap(
        BootstrapInputs(
            listen=Address(HOST, port),
            worker_sockets=(str(run / f"{name}.sock"),),
            clusters=(UpstreamCluster(CLUSTER, f"http://{HOST}:{upstream}"),),
            default_cluster=CLUSTER,
            on_failure="closed" if ext_proc else "open",
            body_bytes=32 << 20,
            message_timeout=5,
        )
    )
    tree = yaml.safe_load(text)
    if not ext_proc:
        manager = tree["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
        manager["http_filters"] = manager["http_filters"][1:]
        [host] = manager["route_config"]["virtual_hosts"]
        host["routes"] = [{"match": {"prefix": "/"}, "route": {"cluster": CLUSTER, "timeout": "0s"}}]
    path = run / f"{name}.yaml"
    path.write_text(yaml.safe_dump(tree))
    return path, port


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def request_body(size: int) -> bytes:
    frame = json.dumps({"model": "m", "messages": [{"role": "user", "content": ""}]})
    filler = ("Tell me something about railways and their signals. " * (size // 40 + 1))[: max(0, size - len(frame))]
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": filler}]}).encode()


def image_body(size: int) -> bytes:
    """A question about a picture: a JPEG's first bytes, and noise behind them."""
    data = base64.b64encode(b"\xff\xd8\xff\xe0\x00\x10JFIF" + random.Random(1).randbytes(size * 3 // 4)).decode()
    picture = {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}}
    content = [{"type": "text", "text": "What is in this picture?"}, picture]
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}).encode()


@dataclass(frozen=True)
class Worker:
    """How one is started: `{socket}` and `{folder}` are filled in; `policy` is written to `policy.yaml` in there."""

    command: tuple[str, ...]
    policy: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


def pointsman(policy: str = POLICY, environment: Mapping[str, str] | None = None) -> Worker:
    """A worker of ours, with the allocator that the supervisor sets up."""
    where = ("--config", "{folder}/policy.yaml", "--socket", "{socket}")
    command = (sys.executable, "-m", "router.extproc.worker", *where)
    return Worker(command, policy, {**ALLOCATOR, **(environment or {})})


def echo() -> Worker:
    """The floor."""
    return Worker((sys.executable, str(HERE / "echo_worker.py"), "{socket}", CLUSTER))


@dataclass(frozen=True)
class Running:
    """Ports of the Envoys, by name, `none` among them, and the workers' processes."""

    ports: Mapping[str, int]
    workers: Mapping[str, subprocess.Popen[bytes]]


@contextlib.contextmanager
def running(workers: Mapping[str, Worker]) -> Iterator[Running]:
    """Start everything, and end it."""
    processes: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        root = Path(temporary)

        def start(name: str, words: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
            log = (root / f"{name}.log").open("wb")
            process = subprocess.Popen(words, stdout=log, stderr=log, cwd=ROOT, env={**os.environ, **environment})
            processes.append(process)
            return process

        try:
            upstream = free_port()
            start("upstream", [sys.executable, str(HERE / "echo_upstream.py"), str(upstream)], {})
            started = {}
            for name, worker in workers.items():
                folder = root / name
                folder.mkdir()
                (folder / "policy.yaml").write_text(worker.policy.format(port=upstream))
                filled = {"socket": root / f"{name}.sock", "folder": folder}
                started[name] = start(name, [word.format(**filled) for word in worker.command], worker.environment)
            end = time.monotonic() + 60
            while not all((root / f"{name}.sock").exists() for name in workers):
                if time.monotonic() > end:
                    raise RuntimeError("\n".join((root / f"{name}.log").read_text() for name in workers))
                time.sleep(0.05)
            ports = {}
            for name in ("none", *workers):
                path, ports[name] = bootstrap(root, name, upstream, ext_proc=name != "none")
                envoy = [str(find_envoy()), "-c", str(path), "--use-dynamic-base-id", "--concurrency", "1"]
                start(f"envoy-{name}", [*envoy, "--log-level", "error"], {})
            for port in ports.values():
                wait_for_port(port)
            time.sleep(2)
            yield Running(ports, started)
        finally:
            for process in reversed(processes):
                process.terminate()
            for process in processes:
                process.wait()


def measure(
    place: Running, requests: int, body: bytes, connections: int = 1, block: int = BLOCK
) -> dict[str, dict[str, float]]:
    """For each: p50 and p99 in ms, what they are more than without a worker, and the worker's CPU in us a request."""
    clients = {name: [Client(port, body) for _ in range(connections)] for name, port in place.ports.items()}
    names = list(clients)
    for _ in range(ROUNDS_OF_WARMUP):
        for name in names:
            clients[name][0].ask()
    times: dict[str, list[float]] = {name: [] for name in names}
    before = {name: cpu_seconds(worker.pid) for name, worker in place.workers.items()}
    with ThreadPoolExecutor(connections) as pool:
        for _ in range(requests // (block * connections)):
            random.shuffle(names)
            for name in names:
                asked = pool.map(lambda client: [client.ask() for _ in range(block)], clients[name])
                times[name] += [seconds for row in asked for seconds in row]
    counted = len(times["none"])
    cpu = {name: (cpu_seconds(worker.pid) - before[name]) / counted for name, worker in place.workers.items()}
    found = {}
    for name, seconds in times.items():
        ordered = sorted(seconds)
        found[name] = {"p50_ms": median(ordered) * 1000, "p99_ms": ordered[len(ordered) * 99 // 100] * 1000}
    for name in place.workers:
        found[name]["added_p50_ms"] = found[name]["p50_ms"] - found["none"]["p50_ms"]
        found[name]["cpu_us"] = cpu[name] * 1e6
    return found


def ratio(found: Mapping[str, Mapping[str, float]], key: str, one: str, other: str) -> float:
    """How many times the other's figure this one's is."""
    return round(found[one][key] / found[other][key], 3)


def rounded(found: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """For printing."""
    return {name: {key: round(value, 3) for key, value in row.items()} for name, row in found.items()}
