"""What checks of answers cost a streamed one: time to its first text, to its end, and the worker's CPU.

    python tests/bench/checked_stream.py [--answers 20] [--tokens 400] [--every-ms 5]

For each setting a worker and an Envoy of their own stand before a model that streams words of five characters at a
steady pace; one client reads one answer after the other. Without checks the same path is measured once more, so that
what is left is the hold-back and the judging.
"""

from __future__ import annotations

import argparse
import http.server
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

from router.config.envoy_binary import find_envoy

HOST = "127.0.0.1"
ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "router.cli.main"]
CHECKS = "checks: [{name: no-keys, when: {any: [{secret: key}, {keyword: word}, {pii: card}]}}]"
SETTINGS = {
    "no checks": "{}",
    "chars: 0": f"{{{CHECKS}, hold_back: {{chars: 0}}}}",
    "chars: 200": f"{{{CHECKS}, hold_back: {{chars: 200}}}}",
    "chars: 500": f"{{{CHECKS}, hold_back: {{chars: 500}}}}",
    "chars: 2000": f"{{{CHECKS}}}",
    "chars: 2000, ms: 300": f"{{{CHECKS}, hold_back: {{chars: 2000, ms: 300}}}}",
}
POLICY = """\
version: 1
upstreams: [{{model: m, cluster: local, endpoint: "http://127.0.0.1:{port}"}}]
default_model: m
signals:
  secret: {{key: {{}}}}
  keyword: {{word: {{any: [confidential], over: all}}}}
  pii: {{card: {{types: [CREDIT_CARD]}}}}
responses: {responses}
"""
REQUEST_BODY = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'


def model(tokens: int, pause: float) -> http.server.ThreadingHTTPServer:
    """A model at a free port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
            choice = {"index": 0, "delta": {"content": "word "}, "finish_reason": None}
            word = b"data: " + json.dumps({**chunk, "choices": [choice]}).encode() + b"\n\n"
            began = time.monotonic()
            for number in range(1, tokens + 1):
                self._send(word)
                # By the clock of the answer, so that what sending takes does not add up.
                time.sleep(max(began + number * pause - time.monotonic(), 0))
            last = {"index": 0, "delta": {}, "finish_reason": "stop"}
            self._send(b"data: " + json.dumps({**chunk, "choices": [last]}).encode() + b"\n\ndata: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")

        def _send(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = http.server.ThreadingHTTPServer((HOST, 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit("Envoy does not accept connections")


def ask(port: int) -> tuple[float, float]:
    """Seconds to the first text, and to the end."""
    with socket.create_connection((HOST, port), timeout=60) as client:
        began = time.perf_counter()
        client.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s"
            % (len(REQUEST_BODY), REQUEST_BODY)
        )
        read, first = b"", None
        while piece := client.recv(65536):
            read += piece
            if first is None and b'"content"' in read:
                first = time.perf_counter() - began
        if first is None or b"[DONE]" not in read:
            raise SystemExit(f"no answer: {read[:300]!r}")
        return first, time.perf_counter() - began


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def worker_of(supervisor: int) -> int:
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    (pid,) = [int(child) for child in children if "worker" in Path(f"/proc/{child}/cmdline").read_text()]
    return pid


def measure(responses: str, upstream: int, answers: int) -> dict[str, Any]:
    """One setting, by processes of its own."""
    with tempfile.TemporaryDirectory() as folder:
        policy, runtime, log = Path(folder, "policy.yaml"), Path(folder, "run"), Path(folder, "log")
        policy.write_text(POLICY.format(port=upstream, responses=responses))
        shared = ["--workers", "1", "--runtime-dir", str(runtime)]
        port = free_port()
        rendered = subprocess.run(
            [*COMMAND, "envoy", str(policy), *shared, "--listen", f"{HOST}:{port}"],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        bootstrap = Path(folder, "envoy.yaml")
        bootstrap.write_text(rendered.stdout)
        processes: list[subprocess.Popen[bytes]] = []
        try:
            with log.open("wb") as out:
                serve = [*COMMAND, "serve", "--config", str(policy), *shared]
                processes.append(subprocess.Popen(serve, stdout=out, stderr=out, cwd=ROOT))
                while b'"event":"ready"' not in log.read_bytes():
                    time.sleep(0.05)
                envoy = [
                    str(find_envoy()),
                    "-c",
                    str(bootstrap),
                    "--disable-hot-restart",
                    "--concurrency",
                    "1",
                    "-l",
                    "error",
                ]
                processes.append(subprocess.Popen(envoy, stdout=out, stderr=out))
            wait_for(port)
            ask(port)
            pid = worker_of(processes[0].pid)
            before = cpu_of(pid)
            times = [ask(port) for _ in range(answers)]
            cpu = cpu_of(pid) - before
        finally:
            for process in reversed(processes):
                process.terminate()
                process.wait(30)
    return {
        "first_ms": round(1000 * median(first for first, _ in times), 1),
        "whole_ms": round(1000 * median(whole for _, whole in times), 1),
        "cpu_ms_per_answer": round(1000 * cpu / answers, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--every-ms", type=float, default=5.0)
    options = parser.parse_args()
    upstream = model(options.tokens, options.every_ms / 1000)
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {options.tokens} words of 5 characters"
    )
    print(f"{'setting':<22}{'first text':>12}{'end':>10}{'CPU':>8}   (ms)")
    for name, responses in SETTINGS.items():
        row = measure(responses, upstream.server_address[1], options.answers)
        print(f"{name:<22}{row['first_ms']:>12}{row['whole_ms']:>10}{row['cpu_ms_per_answer']:>8}", flush=True)
    upstream.shutdown()


if __name__ == "__main__":
    main()
