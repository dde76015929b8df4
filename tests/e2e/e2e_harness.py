"""What the end-to-end tests stand on: child processes, a running Envoy, a recording upstream, one request.

The fixtures that start and end these are in conftest.py.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import socket
import socketserver
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from router.config.bootstrap import Address

START_SECONDS = 60.0


def free_address() -> Address:
    """A loopback address that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return Address("127.0.0.1", probe.getsockname()[1])


def wait_until(holds: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
    """Poll until it holds; fails after so many seconds."""
    limit = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > limit:
            pytest.fail(f"waited {seconds} s for {what}")
        time.sleep(0.02)


def accepts(address: Address) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address.host, address.port)) == 0


@dataclass(frozen=True)
class Child:
    """A process that the tests started, with its output in a file."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """As `kill -9` does, and wait until it is gone."""
        self.process.kill()
        self.process.wait()

    @property
    def words(self) -> str:
        """The command line."""
        args = self.process.args
        return " ".join(map(str, args)) if isinstance(args, list) else str(args)

    def said(self, line: str) -> bool:
        return line.encode() in self.log.read_bytes().splitlines()

    def ask_to_end(self) -> None:
        if self.alive:
            self.process.send_signal(signal.SIGTERM)

    def end(self, seconds: float = 10.0) -> None:
        """Ask it to end; kill it when it does not."""
        self.ask_to_end()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def hurry(self, seconds: float = 10.0) -> None:
        """As `end`, but ask until it is gone: whoever is told twice does not drain."""
        until = time.monotonic() + seconds
        while self.alive and time.monotonic() < until:
            self.ask_to_end()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.1)
        self.end(0)


@dataclass(frozen=True)
class RunningEnvoy:
    """An Envoy that accepts connections; `admin` is where its counters are, if the bootstrap has an admin address."""

    child: Child
    address: Address
    admin: Address | None

    @property
    def url(self) -> str:
        return f"http://{self.address.host}:{self.address.port}"

    def counter(self, name: str) -> int:
        """The counter that has this name or ends in it, summed over its owners."""
        return self._stat(name, "Counters")

    def gauge(self, name: str) -> int:
        """As `counter`, for what can fall again."""
        return self._stat(name, "Gauges")

    def _stat(self, name: str, kind: str) -> int:
        assert self.admin is not None
        connection = http.client.HTTPConnection(self.admin.host, self.admin.port, timeout=5)
        try:
            connection.request("GET", f"/stats?format=json&type={kind}")
            stats = json.loads(connection.getresponse().read())["stats"]
        finally:
            connection.close()
        return sum(stat["value"] for stat in stats if stat.get("name", "").endswith(name))


@dataclass(frozen=True)
class Seen:
    """A request as it arrived, byte for byte; `raw_body` still has its chunk framing if it came chunked."""

    raw_head: bytes
    body: bytes
    raw_body: bytes

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Every header in order, names as they came."""
        lines = self.raw_head.decode("latin-1").split("\r\n")[1:]
        return [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines if line)]

    def header(self, name: str) -> str | None:
        """The value of a header; fails when it came twice."""
        values = [value for key, value in self.headers if key.lower() == name]
        assert len(values) < 2, f"{name} came {len(values)} times"
        return values[0] if values else None


@dataclass
class Upstream:
    """An HTTP/1.1 server that records what it gets and answers with its own name."""

    name: str
    address: Address
    seen: list[Seen] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{self.address.host}:{self.address.port}"


class UpstreamServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    upstream: Upstream


class Recorder(socketserver.StreamRequestHandler):
    server: UpstreamServer

    def handle(self) -> None:
        while self._one():
            pass

    def _one(self) -> bool:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self.rfile.readline()
            if not line:
                assert not head, "a request broke off in its head"
                return False
            head += line
        body, raw = self._body(Seen(head, b"", b""))
        self.server.upstream.seen.append(Seen(head, body, raw))
        answer = json.dumps({"upstream": self.server.upstream.name}).encode()
        self.wfile.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-pointsman-decision: forged\r\n"
            b"content-length: %d\r\n\r\n%s" % (len(answer), answer)
        )
        return True

    def _body(self, head: Seen) -> tuple[bytes, bytes]:
        if head.header("transfer-encoding") != "chunked":
            body = self.rfile.read(int(head.header("content-length") or 0))
            return body, body
        body, raw = b"", b""
        while True:
            line = self.rfile.readline()
            size = int(line, 16)
            raw += line
            if size == 0:
                return body, raw + self._trailers()
            chunk = self.rfile.read(size + 2)
            raw += chunk
            body += chunk[:-2]

    def _trailers(self) -> bytes:
        raw = b""
        while (line := self.rfile.readline()) != b"\r\n":
            raw += line
        return raw + line


@dataclass(frozen=True)
class Answer:
    """A response that a client got."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, object]:
        return json.loads(self.body)


def ask(
    envoy: RunningEnvoy,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    *,
    method: str = "POST",
    path: str = "/v1/chat/completions",
) -> Answer:
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection(envoy.address.host, envoy.address.port, timeout=30)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()
