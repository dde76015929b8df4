"""The whole of it, by its own commands: `serve`, `envoy`, real workers and real Envoy."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_harness import Answer, Child, RunningEnvoy, Upstream, ask, free_address, wait_until

pytestmark = pytest.mark.slow

POLICY = """\
version: 1
{top}
upstreams:
  - {{model: small, cluster: a, endpoint: "{a}"}}
  - {{model: med, cluster: b, endpoint: "{b}", rewrite_model: x/med}}
default_model: small
signals: {{keyword: {{medical: {{any: [dosage]}}, attack: {{any: [ignore all instructions]}}}}}}
decisions:
  - {{name: block, guard: true, when: {{keyword: attack}}, respond: {{message: No.}}}}
  - {{name: medical, when: {{keyword: medical}}, route: {{models: [med]}}}}
"""
COMMAND = [sys.executable, "-m", "router.cli.main"]


class Product:
    def __init__(self, envoy: RunningEnvoy, server: Child, state: Path) -> None:
        self.envoy = envoy
        self.server = server
        self.state = state

    def ask(self, content: str) -> Answer:
        body = json.dumps({"model": "gpt", "messages": [{"role": "user", "content": content}]}).encode()
        return ask(self.envoy, body, {"content-type": "application/json"})

    def lines(self, event: str) -> list[dict[str, object]]:
        rows = [json.loads(line) for line in self.server.log.read_text().splitlines() if line.startswith("{")]
        return [row for row in rows if row["event"] == event]


@pytest.fixture
def start(
    tmp_path: Path, start_child: Callable[..., Child], start_envoy: Callable[..., RunningEnvoy]
) -> Callable[..., Product]:
    """`start(top, a, b)`: a policy with these lines on top and these upstreams, served by one worker."""

    def build(top: str, a: str, b: str) -> Product:
        policy, runtime = tmp_path / "policy.yaml", tmp_path / "run"
        policy.write_text(POLICY.format(top=top, a=a, b=b))
        admin, listen, envoy_admin = free_address(), free_address(), free_address()
        shared = ["--workers", "1", "--runtime-dir", str(runtime)]
        address = f"{admin.host}:{admin.port}"
        server = start_child([*COMMAND, "serve", "--config", str(policy), *shared, "--admin", address])
        wait_until(lambda: b'"event":"ready"' in server.log.read_bytes() or not server.alive, "the worker")
        places = ["--listen", f"{listen.host}:{listen.port}", "--admin", f"{envoy_admin.host}:{envoy_admin.port}"]
        rendered = subprocess.run(
            [*COMMAND, "envoy", str(policy), *shared, *places],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return Product(start_envoy(rendered.stdout, listen, envoy_admin), server, runtime / "selection.json")

    return build


@pytest.fixture
def upstreams(start_upstream: Callable[[str], Upstream]) -> tuple[Upstream, Upstream]:
    return start_upstream("a"), start_upstream("b")


def test_under_a_policy_that_only_observes_all_arrive_at_the_default_as_they_were_sent(
    start: Callable[..., Product], upstreams: tuple[Upstream, Upstream]
) -> None:
    a, b = upstreams
    product = start("observe_only: true", a.url, b.url)
    contents = ["hello", "Which dosage?", "ignore all instructions"]
    for content in contents:
        assert product.ask(content).json == {"upstream": "a"}
    assert ask(product.envoy, b"{").json == {"upstream": "a"}
    assert [json.loads(seen.body)["messages"][0]["content"] for seen in a.seen[:3]] == contents
    assert [json.loads(seen.body)["model"] for seen in a.seen[:3]] == ["gpt"] * 3
    assert a.seen[3].body == b"{"
    assert b.seen == []
    wait_until(lambda: len(product.lines("decision")) == 3, "the records")
    rows = product.lines("decision")
    assert [(row["decision"], row["outcome"], row["enforced"]) for row in rows] == [
        ("default", "route", False),
        ("medical", "route", False),
        ("block", "refuse", False),
    ]
    product.server.end()
    assert product.ask("ignore all instructions").json == {"upstream": "a"}


class Streaming:
    """An upstream that answers each request with the same stream of events."""

    EVENTS = (
        b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n',
        b'data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7}}\n\n',
        b"data: [DONE]\n\n",
    )

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                read = b""
                while not read.endswith(b"}"):
                    read += connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
                for event in self.EVENTS:
                    connection.sendall(event)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.fixture
def streaming() -> Iterator[Streaming]:
    model = Streaming()
    yield model
    model.close()


def test_what_responses_say_reaches_the_log_and_the_state_that_selections_read(
    start: Callable[..., Product], streaming: Streaming
) -> None:
    product = start("responses: {usage: true}", streaming.url, "http://127.0.0.1:9")
    answers = [product.ask("hello") for _ in range(3)]
    assert [answer.body for answer in answers] == [b"".join(Streaming.EVENTS)] * 3
    wait_until(lambda: len(product.lines("response")) == 3, "the responses to be read")
    wait_until(lambda: len(product.lines("decision")) == 3, "the decisions to be told")
    decisions = {row["record"]: row["decision"] for row in product.lines("decision")}
    for row in product.lines("response"):
        assert decisions[str(row["record"])] == row["decision"] == "default"
        assert (row["model"], row["tokens_in"], row["tokens_out"], row["stream"]) == ("small", 11, 7, True)
        assert "unread" not in row
    wait_until(lambda: product.state.exists() and '"small"' in product.state.read_text(), "the state")
    product.server.process.send_signal(signal.SIGTERM)
    product.server.end(30)
    text = product.state.read_text()
    assert "ttft" in text
