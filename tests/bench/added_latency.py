"""What Pointsman adds to a request, against a bare ext_proc that only names a cluster; all in one paired run.

    python tests/bench/added_latency.py [--requests 2000] [--body 1024]

Three Envoys stand before the same upstream: without ext_proc, with the echo, with Pointsman and a keyword-only policy.
One client on one keep-alive connection to each sends blocks of requests to the three in a shuffled order, again and
again; so what the machine does meanwhile falls on all three alike. Goal: added p50 at most 1.25 times the echo's.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import yaml

from router.config.bootstrap import Address, BootstrapInputs, UpstreamCluster, render_bootstrap
from router.config.envoy_binary import find_envoy

HOST = "127.0.0.1"
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CLUSTER = "local"
ROUNDS_OF_WARMUP = 200
BLOCK = 20
"""Requests to one of the three before the next has its turn: each runs with its caches warm, as it would in service."""

POLICY = """\
version: 1
upstreams: [{{model: m, cluster: local, endpoint: "http://127.0.0.1:{port}"}}]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000, help="counted requests to each of the three")
    parser.add_argument("--body", type=int, default=1024, help="bytes of a request's body")
    options = parser.parse_args()
    processes: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        run = Path(folder)

        def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
            log = (run / f"{name}.log").open("wb")
            processes.append(subprocess.Popen(arguments, stdout=log, stderr=log, cwd=ROOT))
            return processes[-1]

        try:
            upstream = free_port()
            start("upstream", sys.executable, str(HERE / "echo_upstream.py"), str(upstream))
            policy = run / "policy.yaml"
            policy.write_text(POLICY.format(port=upstream))
            workers = {
                "echo": start("echo", sys.executable, str(HERE / "echo_worker.py"), str(run / "echo.sock"), CLUSTER),
                "pointsman": start(
                    "pointsman",
                    *(sys.executable, "-m", "router.extproc.worker"),
                    *("--config", str(policy), "--socket", str(run / "pointsman.sock")),
                ),
            }
            end = time.monotonic() + 30
            while not all((run / f"{name}.sock").exists() for name in workers):
                if time.monotonic() > end:
                    raise RuntimeError((run / "pointsman.log").read_text())
                time.sleep(0.05)
            ports = {}
            for name in ("none", "echo", "pointsman"):
                path, ports[name] = bootstrap(run, name, upstream, ext_proc=name != "none")
                envoy = [str(find_envoy()), "-c", str(path), "--use-dynamic-base-id", "--concurrency", "1"]
                start(f"envoy-{name}", *envoy, "--log-level", "error")
            for port in ports.values():
                wait_for_port(port)
            time.sleep(1.5)
            print(json.dumps(measure(ports, workers, options.requests, options.body), indent=2))
        finally:
            for process in reversed(processes):
                process.terminate()
            for process in processes:
                process.wait()


def request_body(size: int) -> bytes:
    frame = json.dumps({"model": "m", "messages": [{"role": "user", "content": ""}]})
    filler = ("Tell me something about railways and their signals. " * (size // 40 + 1))[: max(0, size - len(frame))]
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": filler}]}).encode()


def measure(
    ports: dict[str, int], workers: dict[str, subprocess.Popen[bytes]], requests: int, size: int
) -> dict[str, object]:
    body = request_body(size)
    clients = {name: Client(port, body) for name, port in ports.items()}
    names = list(clients)
    for _ in range(ROUNDS_OF_WARMUP):
        for name in names:
            clients[name].ask()
    times: dict[str, list[float]] = {name: [] for name in names}
    before = {name: cpu_seconds(worker.pid) for name, worker in workers.items()}
    for _ in range(requests // BLOCK):
        random.shuffle(names)
        for name in names:
            times[name] += [clients[name].ask() for _ in range(BLOCK)]
    cpu = {name: (cpu_seconds(worker.pid) - before[name]) / requests for name, worker in workers.items()}
    p50 = {name: median(values) * 1000 for name, values in times.items()}
    added = {name: p50[name] - p50["none"] for name in ("echo", "pointsman")}
    return {
        "machine": f"{platform.machine()}, {platform.python_implementation()} {platform.python_version()}",
        "requests": requests,
        "body_bytes": len(body),
        "p50_ms": {name: round(value, 3) for name, value in p50.items()},
        "added_p50_ms": {name: round(value, 3) for name, value in added.items()},
        "added_ratio": round(added["pointsman"] / added["echo"], 3),
        "cpu_us": {name: round(value * 1e6) for name, value in cpu.items()},
        "cpu_ratio": round(cpu["pointsman"] / cpu["echo"], 3),
    }


if __name__ == "__main__":
    main()
