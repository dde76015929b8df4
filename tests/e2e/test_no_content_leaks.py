"""Nothing that a client or a model wrote reaches logs, spans, metrics, records, state files, pages or error texts.

Real Envoy, the real supervisor and workers, logs at DEBUG, records kept, traces and metrics sent by OTLP. Requests of
every API, readable and not, have a canary in every place; then everything that the product gave is searched for them.
"""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import re
import socket
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest
from canaries import START, Canaries, forms, opened
from canary_requests import BODY_BYTES, Sent, broken_requests, whole_requests
from e2e_harness import Child, RunningEnvoy, free_address, wait_until
from e2e_product import COMMAND, count_ready, start_product_envoy
from trace_collector import Received, over_http

from router.config.bootstrap import Address

pytestmark = pytest.mark.slow

WORKERS = 2
POLICY = """\
version: 1
on_failure: closed
evaluation: full
upstreams:
  - {{model: small, cluster: a, endpoint: "{url}", modalities: [text, image], price: {price}}}
  - {{model: med, cluster: b, endpoint: "{url}", modalities: [text, image], rewrite_model: x/med, price: {price}}}
default_model: small
trusted_headers: [x-tenant]
encoders: {{text: starter, vision: starter}}
limits: {{body_bytes: {body_bytes}, decoded_bytes: {body_bytes}, decision_ms: 20000}}
responses: {{usage: true{checks}}}
{shadow}
records: {{path: records.sqlite}}
signals:
  keyword:
    medical: {{any: [dosage], over: all}}
    near: {{any: [dosages], method: fuzzy, over: all}}
    ranked: {{any: [instructions of the system], method: bm25, over: all}}
    pattern: {{any: ['zqv[a-z]+', 'ZQV[A-Z]+'], method: regex, over: all}}
    image_words: {{any: ['zqv[a-z]+'], method: regex, over: all}}
  structure:
    bullets: {{count: bullets, min: 1, over: all}}
    links: {{count: urls, min: 1, over: all}}
    words: {{pattern: '\\bzqv\\w+', min: 1, over: all}}
  context: {{long: {{min_tokens: 10}}}}
  conversation: {{files: {{min_files: 1}}, calls: {{min_tool_calls: 1}}}}
  header: {{tenant: {{name: x-tenant, any: [acme]}}}}
  pii: {{personal: {{types: [CREDIT_CARD, EMAIL_ADDRESS]}}}}
  secret: {{credential: {{}}}}
  jailbreak: {{attack: {{threshold: 0.7}}}}
  tool_call:
    destructive: {{destructive: true}}
    member: {{names: ['zqv*'], method: glob, members: {{command: 'rm|zqv[a-z]+'}}}}
    offered: {{names: ['zqv*'], method: glob, offered: true}}
  tool_result: {{injected: {{threshold: 0.5}}}}
  memory_write: {{rule: {{tools: ['zqv*'], arguments: ['zqv[a-z]+']}}}}
  embedding: {{clinical: {{texts: [interpret a test result], threshold: 0.45}}}}
  reask: {{again: {{}}}}
  image: {{passport: {{concepts: [a passport], against: [a page of printed text], threshold: 0.5}}}}
decisions:
  - name: attack
    priority: 9
    guard: true
    when: {{all: [{{jailbreak: attack}}, {{tool_result: injected}}]}}
    respond: {{message: No.}}
  - name: personal
    priority: 8
    when: {{any: [{{pii: personal}}, {{secret: credential}}]}}
    respond: {{clarify: Sure?}}
  - name: everything
    priority: 7
    when:
      any:
        - any: [{{keyword: near}}, {{keyword: ranked}}, {{keyword: pattern}}, {{keyword: image_words}}]
        - any: [{{structure: bullets}}, {{structure: links}}, {{structure: words}}, {{context: long}}]
        - any: [{{conversation: files}}, {{conversation: calls}}, {{header: tenant}}, {{memory_write: rule}}]
        - any: [{{tool_call: destructive}}, {{tool_call: member}}, {{tool_call: offered}}]
        - any: [{{embedding: clinical}}, {{reask: again}}, {{image: passport}}]
    route: {{models: [med, small], select: {{cheapest: {{}}}}}}
  - {{name: medical, when: {{keyword: medical}}, route: {{models: [med]}}}}
"""

PRICE = "{input_per_million: 1, output_per_million: 2}"
CHECKS = """, checks: [{name: leaked-secret, when: {secret: credential}}, {name: said, when: {keyword: medical}}]"""
SHADOW = """\
version: 1
upstreams: [{model: small, cluster: a}]
default_model: small
signals: {keyword: {other: {any: ['zqv[a-z]+'], method: regex, over: all}}}
decisions: [{name: other-way, when: {keyword: other}, respond: {message: No.}}]
"""

TRACE_STATE = "/tracestate"
"""A trace's own header: the conventions have it stand in every span, as it came, and nowhere else."""

PLANTED = re.compile(r"x-pointsman-(cluster|model|decision|record)")


class Model:
    """An upstream that says a canary, in JSON or as a stream, and counts tokens."""

    def __init__(self, word: str) -> None:
        self._word = word
        self.heads: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as stream:
                head = b""
                while (line := stream.readline()) not in (b"\r\n", b""):
                    head += line
                self.heads.append(head)
                length = re.search(rb"(?i)content-length: (\d+)", head)
                body = stream.read(int(length[1])) if length else b""
                connection.sendall(self._answer(b'"stream": true' in body))

    def _answer(self, streamed: bool) -> bytes:
        usage = {"prompt_tokens": 11, "completion_tokens": 7}
        said = {"choices": [{"delta": {"content": self._word}, "message": {"content": self._word}}], "usage": usage}
        body = json.dumps({**said, "id": self._word, "model": self._word}).encode()
        kind = b"application/json"
        if streamed:
            body, kind = b"data: " + body + b"\n\ndata: [DONE]\n\n", b"text/event-stream"
        head = (
            b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\nx-upstream: %s\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        )
        return head % (kind, self._word.encode(), len(body)) + body

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.fixture(scope="module")
def canaries() -> Canaries:
    return Canaries()


@pytest.fixture
def model(canaries: Canaries) -> Iterator[Model]:
    upstream = Model(canaries.plant("the model's answer"))
    yield upstream
    upstream.close()


@pytest.fixture
def collector() -> Iterator[tuple[str, Received]]:
    with over_http() as endpoint_and_received:
        yield endpoint_and_received


def request(address: Address, sent: Sent) -> tuple[int, bytes, bytes]:
    """Status, head and body of the answer."""
    connection = http.client.HTTPConnection(address.host, address.port, timeout=60)
    try:
        connection.request(sent.method, sent.path, sent.body, sent.headers)
        response = connection.getresponse()
        return response.status, str(response.headers).encode(), response.read()
    finally:
        connection.close()


def get(address: Address, path: str, accept: str = "*/*") -> bytes:
    connection = http.client.HTTPConnection(address.host, address.port, timeout=60)
    try:
        connection.request("GET", path, headers={"accept": accept})
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200, (path, response.status)
        return body
    finally:
        connection.close()


def explain(address: Address, sent: Sent, kind: str) -> tuple[int, bytes, bytes]:
    """What the admin address says to the request's body under this content type."""
    path = f"/explain?path={urllib.parse.quote(sent.path, safe='')}"
    return request(address, Sent(sent.name, path, sent.body, {**sent.headers, "content-type": kind}))


def test_the_search_finds_a_canary_however_it_is_written(canaries: Canaries) -> None:
    word = canaries.plant("planted")
    for before in ("", "a", "ab", "abc", "ä"):
        for text in (
            f"{before}{word}",
            f"{before}{word}behind",
            f"{before}{word.upper()}!",
            f"{before}{word.capitalize()}x",
        ):
            raw = text.encode()
            for haystack in (
                raw,
                base64.b64encode(raw),
                base64.urlsafe_b64encode(raw),
                raw.hex().encode(),
                raw.hex().upper().encode(),
                json.dumps({"a": [text]}).encode(),
                urllib.parse.quote(text).encode(),
                "".join(f"%{byte:02X}" for byte in raw).encode(),
                "".join(f"\\u{ord(letter):04x}" for letter in text).encode(),
                text.encode("utf-16"),
                text[::-1].encode(),
            ):
                assert any(place.endswith(": planted") for place in canaries.found_in(b"x" * 9 + haystack + b"x" * 9))
            assert [part for part in opened(b"zz" + gzip.compress(raw) + b"zz") if canaries.found_in(part)]
    assert canaries.found_in(f"cut short: {word[:-3]}".encode()) == ["plain: ?"]
    assert canaries.found_in(START[:-1].encode()) == []
    assert canaries.found_in(b"nothing" * 1000) == []
    assert len(dict(forms(word))) == len(list(forms(word)))


@pytest.mark.parametrize(
    ("checks", "shadow"), [("", ""), (CHECKS, "shadow: {policy: shadow.yaml}")], ids=["plain", "all"]
)
def test_no_content_leaves_by_any_other_way(
    tmp_path: Path,
    start_child: Callable[..., Child],
    start_envoy: Callable[..., RunningEnvoy],
    canaries: Canaries,
    model: Model,
    collector: tuple[str, Received],
    checks: str,
    shadow: str,
) -> None:
    (tmp_path / "shadow.yaml").write_text(SHADOW)
    policy, runtime, admin = tmp_path / "policy.yaml", tmp_path / "run", free_address()
    policy.write_text(POLICY.format(url=model.url, body_bytes=BODY_BYTES, price=PRICE, checks=checks, shadow=shadow))
    words = ["serve", "--config", policy, "--workers", str(WORKERS), "--runtime-dir", runtime]
    words += ["--admin", f"{admin.host}:{admin.port}", "--log-level", "DEBUG"]
    endpoint, received = collector
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_METRIC_EXPORT_INTERVAL": "1000",
        "OTEL_BSP_SCHEDULE_DELAY": "200",
    }
    server = start_child([*COMMAND, *words], env=environment)
    wait_until(lambda: count_ready(server) == WORKERS or not server.alive, "the workers")
    envoy = start_product_envoy(start_envoy, policy, runtime, WORKERS)

    texts: dict[str, bytes] = {}
    records = set()
    statuses: dict[int, int] = {}
    for number, sent in enumerate((*whole_requests(canaries), *broken_requests(canaries))):
        status, head, body = request(envoy.address, sent)
        statuses[status] = statuses.get(status, 0) + 1
        texts[f"head {number} ({sent.name})"] = b"\n".join(
            line for line in head.splitlines() if not line.lower().startswith(b"x-upstream:")
        )
        if b"x-upstream:" not in head.lower():
            texts[f"answer {number} ({sent.name}, {status})"] = body
        if found := re.search(rb"(?i)x-pointsman-record: (\S+)", head):
            records.add(found[1].decode())
    assert {200, 400, 403, 413, 415} <= statuses.keys(), statuses
    assert len(records) > 200

    def told() -> bool:
        """Whether the log has a line about every request that has a record."""
        return set(re.findall(rb'"record":"([^"]+)"', server.log.read_bytes())) >= {r.encode() for r in records}

    wait_until(told, "the log's lines")
    for path in ("/metrics", "/readyz", "/livez", "/policy", "/decisions?limit=500", "/parity"):
        texts[f"admin {path}"] = get(admin, path)
    explained = set()
    for number, sent in enumerate((*whole_requests(canaries), *islice(broken_requests(canaries), 0, None, 3))):
        for kind in ("application/json", "application/vnd.pointsman.explain+json"):
            status, head, body = explain(admin, sent, kind)
            explained.add(status)
            texts[f"explained {number} ({sent.name}, {kind}, {status})"] = head + body
    assert {200, 413, 422} <= explained
    one = sorted(records)[0]
    for path in ("/", "/decisions", "/policy", "/parity", "/graph"):
        texts[f"page {path}"] = get(admin, path, "text/html")
    listed = json.loads(texts["admin /decisions?limit=500"])
    for identifier in sorted(str(row["record"]) for row in _rows(listed)):
        texts[f"record {identifier}"] = get(admin, f"/decisions/{identifier}")
        texts[f"page of record {identifier}"] = get(admin, f"/decisions/{identifier}", "text/html")
    texts["Envoy's counters"] = get(envoy.admin or admin, "/stats/prometheus")
    server.end(30)

    texts["log"] = server.log.read_bytes()
    for path in ("/v1/traces", "/v1/metrics", "/v1/logs"):
        texts[f"otlp {path}"] = b"\n".join(received.bodies.get(path, ()))
    texts["otlp headers"] = repr(received.headers).encode()
    for file in sorted(file for file in tmp_path.rglob("*") if file.is_file()):
        if not file.name.startswith(("child-", "bootstrap-", "policy.yaml", "shadow.yaml")):
            texts[f"file {file.relative_to(tmp_path)}"] = file.read_bytes()
    texts["headers to upstreams"] = b"\n".join(
        line for head in model.heads for line in head.splitlines() if PLANTED.match(line.decode("latin-1").lower())
    )

    # Each of the places is really looked at: what may stand there is found in it.
    assert one.encode() in texts["log"]
    assert b'"everything"' in texts["log"]
    assert b'"event":"unreadable"' in texts["log"]
    assert b'"event":"response"' in texts["log"]
    assert b"everything" in texts["otlp /v1/traces"]
    assert b"pointsman.requests" in texts["otlp /v1/metrics"]
    assert b'pointsman_requests_total{worker="' in texts["admin /metrics"]
    assert b'decision="everything"' in texts["admin /metrics"]
    assert any(one.encode() in text for name, text in texts.items() if name.startswith("file records.sqlite"))
    assert b"everything" in texts["headers to upstreams"]
    assert b"envoy_http_ext_proc_failure_mode_allowed" in texts["Envoy's counters"]
    assert b"envoy_http_ext_proc_spurious_msgs_received" in texts["Envoy's counters"]
    assert b"envoy_http_ext_proc_message_timeouts" in texts["Envoy's counters"]

    leaks = {
        name: found
        for name, text in texts.items()
        if (found := sorted({leak for part in opened(text) for leak in canaries.found_in(part)}))
    }
    traces = leaks.pop("otlp /v1/traces", [])
    assert [leak for leak in traces if not leak.endswith(TRACE_STATE)] == []
    assert leaks == {}


def _rows(listed: object) -> list[dict[str, object]]:
    rows = listed.get("decisions", []) if isinstance(listed, dict) else listed
    assert isinstance(rows, list)
    assert rows
    return rows
