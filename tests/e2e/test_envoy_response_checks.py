"""Checks of answers by the product's own commands: real Envoy, real workers, upstreams of every API, real clients."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
import yaml
from e2e_harness import Answer, Child, RunningEnvoy, ask, wait_until
from e2e_place import Bootstrap, with_trailers
from e2e_product import start_product_envoy, start_serve

from router.config.bootstrap import Address
from router.request.view import Api
from tests.extproc.answers.streams_of_apis import APIS, events_of, sent, stream_of

pytestmark = pytest.mark.slow

FOUND = "AKIAIOSFODNN7EXAMPLE"
PATHS: dict[Api, str] = {
    "openai.chat": "/v1/chat/completions",
    "openai.completions": "/v1/completions",
    "openai.responses": "/v1/responses",
    "anthropic.messages": "/v1/messages",
}
POLICY = """\
version: 1
{top}
limits: {{decision_ms: 1000}}
upstreams:
  - {{model: small, cluster: a, endpoint: "{url}"}}
default_model: small
responses:
  usage: true
  hold_back: {{chars: 200}}
  checks:
    - name: no-keys
      when: {{keyword: key}}
      respond: {{status: 451, code: leak, message: The answer holds a key.}}
    - {{name: no-shell, when: {{tool_call: shell}}, respond: {{message: No shell.}}}}
signals:
  keyword: {{key: {{any: ['AKIA[0-9A-Z]{{16}}'], method: regex, over: all}}}}
  tool_call: {{shell: {{names: [shell], destructive: true}}}}
"""


SAID = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": true}'
REQUEST = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(SAID)
    + SAID
)


class Model:
    """An upstream that answers every request with the same bytes, or as `script` says over the open connection."""

    def __init__(self) -> None:
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                model.seen.append(dict(self.headers.items()))
                model.script(self)

            def do_GET(self) -> None:
                self.do_POST()

            def do_HEAD(self) -> None:
                self.do_POST()

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self.seen: list[dict[str, str]] = []
        self.script: Callable[[Any], None] = lambda handler: None
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def answers(self, body: bytes, kind: str = "application/json", status: int = 200, **headers: str) -> None:
        def script(handler: Any) -> None:
            handler.send_response(status)
            for name, value in {"content-type": kind, "content-length": str(len(body)), **headers}.items():
                handler.send_header(name.replace("_", "-"), value)
            handler.end_headers()
            if handler.command != "HEAD":
                handler.wfile.write(body)

        self.script = script

    def streams(self, pieces: list[bytes], **headers: str) -> None:
        def script(handler: Any) -> None:
            begin_stream(handler, **headers)
            for piece in pieces:
                send(handler, piece)
            handler.wfile.write(b"0\r\n\r\n")

        self.script = script

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def code_of(answer: Answer) -> str:
    return str(json.loads(answer.body)["error"]["code"])


def begin_stream(handler: Any, **headers: str) -> None:
    handler.send_response(200)
    for name, value in {"content-type": "text/event-stream", "transfer-encoding": "chunked", **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()


def send(handler: Any, piece: bytes) -> None:
    if piece:
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        handler.wfile.flush()


class Product:
    def __init__(self, envoy: RunningEnvoy, server: Child, model: Model, store: Path) -> None:
        self.envoy = envoy
        self.server = server
        self.model = model
        self.store = store
        self.url = f"http://{envoy.address.host}:{envoy.address.port}"

    def ask(self, api: Api = "openai.chat", headers: dict[str, str] | None = None) -> Answer:
        said = {
            "openai.completions": {"prompt": "hi"},
            "openai.responses": {"input": "hi"},
        }.get(api, {"messages": [{"role": "user", "content": "hi"}]})
        body = {"model": "m", "max_tokens": 9, **said}
        given = {"content-type": "application/json", **(headers or {})}
        return ask(self.envoy, json.dumps(body).encode(), given, path=PATHS[api])

    @property
    def worker_pid(self) -> int:
        children = Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children").read_text().split()
        (pid,) = [int(child) for child in children if "worker" in Path(f"/proc/{child}/cmdline").read_text()]
        return pid

    def lines(self, event: str) -> list[dict[str, Any]]:
        rows = [json.loads(line) for line in self.server.log.read_text().splitlines() if line.startswith("{")]
        return [row for row in rows if row["event"] == event]


@pytest.fixture
def model() -> Iterator[Model]:
    model = Model()
    yield model
    model.close()


@pytest.fixture
def start(
    tmp_path: Path, model: Model, start_child: Callable[..., Child], start_envoy: Callable[..., RunningEnvoy]
) -> Callable[..., Product]:
    def build(top: str = "", change: Callable[[Bootstrap], None] = lambda bootstrap: None) -> Product:
        def start_changed(text: str, *places: Address) -> RunningEnvoy:
            bootstrap = yaml.safe_load(text)
            change(bootstrap)
            return start_envoy(yaml.safe_dump(bootstrap), *places)

        policy, runtime = tmp_path / "policy.yaml", tmp_path / "run"
        policy.write_text(POLICY.format(top=top, url=model.url))
        server = start_serve(start_child, policy, runtime, 1)
        return Product(start_product_envoy(start_changed, policy, runtime, 1), server, model, tmp_path / "r.sqlite")

    return build


def whole(api: Api, text: str) -> bytes:
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    tokens = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    common = {"id": "x-1", "created": 1, "model": "m"}
    message = {"role": "assistant", "content": text}
    document: dict[str, Any]
    match api:
        case "openai.chat":
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            document = {**common, "object": "chat.completion", "choices": [choice], "usage": usage}
        case "openai.completions":
            choice = {"index": 0, "text": text, "finish_reason": "stop"}
            document = {**common, "object": "text_completion", "choices": [choice], "usage": usage}
        case "openai.responses":
            item = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
            part = {"type": "output_text", "text": text, "annotations": []}
            document = {**common, "object": "response", "output": [{**item, "content": [part]}], "usage": tokens}
        case _:
            block = {"type": "text", "text": text}
            document = {"id": "msg", "type": "message", "model": "m", "role": "assistant", "content": [block]}
            document |= {"stop_reason": "end_turn", "usage": tokens}
    return json.dumps(document).encode()


def test_whole_answers_of_every_api_go_on_or_do_not(start: Callable[..., Product], model: Model) -> None:
    product = start("records: {path: r.sqlite}")
    for api in APIS:
        model.answers(whole(api, "hello"))
        answer = product.ask(api)
        assert (answer.status, answer.body) == (200, whole(api, "hello"))
        # Envoy sends it in chunks, though nothing was changed.
        assert "content-length" not in answer.headers
        model.answers(whole(api, f"the key is {FOUND}"))
        answer = product.ask(api)
        assert answer.status == 451
        assert FOUND.encode() not in answer.body
        assert (answer.json.get("type") == "error") == (api == "anthropic.messages")
        assert (answer.headers["x-pointsman-check"], answer.headers["x-pointsman-model"]) == ("no-keys", "small")
        assert answer.headers["x-pointsman-decision"] == "default"
        assert answer.headers["content-type"] == "application/json"
    wait_until(lambda: len(product.lines("answer refused")) == len(APIS), "the refusals to be told")
    row = product.lines("answer refused")[0]
    assert (row["check"], row["why"], row["stream"], row["enforced"]) == ("no-keys", "matched", False, True)
    assert row["evidence"][0]["pointer"] == "/choices/0/message/content"
    assert FOUND not in product.server.log.read_text()
    assert row["record"] in {line["record"] for line in product.lines("decision")}
    # They are kept beside the records, and found again.
    kept = wait_for_unpassed(product, len(APIS))
    assert {one["record"] for one in kept} == {one["record"] for one in product.lines("answer refused")}
    assert {one["answer"]["evidence"][0]["signal"] for one in kept} == {"keyword/key"}
    # Tokens and times are read as before.
    wait_until(lambda: len(product.lines("response")) == 2 * len(APIS), "the responses to be read")
    assert all((row["tokens_in"], row["tokens_out"]) == (11, 7) for row in product.lines("response"))
    # Models are asked for answers without a coding.
    assert not any("accept-encoding" in {name.lower() for name in seen} for seen in model.seen)


def wait_for_unpassed(product: Product, count: int) -> list[dict[str, Any]]:
    words = [sys.executable, "-m", "router.cli.main", "records", "list", "--unpassed", "--json"]
    found: list[dict[str, Any]] = []

    def all_there() -> bool:
        store = ["--store", str(product.store)]
        said = subprocess.run([*words, *store], capture_output=True, check=False, timeout=60)
        found[:] = json.loads(said.stdout or b"[]")
        return len(found) == count

    wait_until(all_there, "what did not pass to be kept")
    return found


def test_streams_of_every_api_go_on_byte_for_byte_or_end(start: Callable[..., Product], model: Model) -> None:
    product = start()
    for api in APIS:
        events = [sent(api, [event]).replace(b"data: [DONE]\n\n", b"") for event in events_of(api, ["hello "] * 100)]
        model.streams(events)
        answer = product.ask(api)
        assert (answer.status, answer.body) == (200, b"".join(events))
        model.streams([stream_of(api, ["hello "] * 100 + list(FOUND) + [" that was it"])])
        answer = product.ask(api)
        assert answer.status == 200
        assert b"AKIA"[:2] not in answer.body.replace(b"hello ", b"").split(b"content_filter")[0].split(b"refusal")[0]
        assert b"that was it" not in answer.body
        assert answer.headers["x-pointsman-model"] == "small"
    for api in APIS:
        if api != "openai.completions":
            model.streams([stream_of(api, ["Let me see."], ['{"command": "rm', ' -rf /"}'])])
            answer = product.ask(api)
            assert b"shell" not in answer.body.replace(b"No shell.", b"")


def test_real_clients_take_refused_answers_and_streams(start: Callable[..., Product], model: Model) -> None:
    product = start()
    client = openai.OpenAI(api_key="x", base_url=f"{product.url}/v1", max_retries=0)
    claude = anthropic.Anthropic(api_key="x", base_url=product.url, max_retries=0)
    said: Any = [{"role": "user", "content": "hi"}]

    model.answers(whole("openai.chat", "hello"))
    assert client.chat.completions.create(model="m", messages=said).choices[0].message.content == "hello"
    model.answers(whole("openai.chat", FOUND))
    with pytest.raises(openai.APIStatusError) as refused:
        client.chat.completions.create(model="m", messages=said)
    assert (refused.value.status_code, refused.value.code) == (451, "leak")

    model.answers(whole("anthropic.messages", FOUND))
    with pytest.raises(anthropic.APIStatusError) as told:
        claude.messages.create(model="m", max_tokens=9, messages=said)
    assert told.value.status_code == 451

    texts = ["hello "] * 100
    model.streams([stream_of("openai.chat", [*texts, FOUND])])
    chunks = list(client.chat.completions.create(model="m", messages=said, stream=True))
    last = chunks[-1].choices[0]
    assert (last.finish_reason, last.delta.refusal) == ("content_filter", "The answer holds a key.")
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) in "hello " * 100

    model.streams([stream_of("openai.completions", [*texts, FOUND])])
    pieces = list(client.completions.create(model="m", prompt="hi", stream=True))
    assert pieces[-1].choices[0].finish_reason == "content_filter"

    model.streams([stream_of("openai.responses", [*texts, FOUND])])
    events = list(client.responses.create(model="m", input="hi", stream=True))
    assert events[-1].type == "response.incomplete"
    assert events[-1].response.id == "resp_1"
    assert events[-1].response.incomplete_details is not None
    assert events[-1].response.incomplete_details.reason == "content_filter"
    assert [event.sequence_number for event in events] == list(range(len(events)))

    model.streams([stream_of("anthropic.messages", [*texts, FOUND])])
    with claude.messages.stream(model="m", max_tokens=9, messages=said) as stream:
        message = stream.get_final_message()
    assert message.stop_reason == "refusal"
    assert isinstance(message.content[0], anthropic.types.TextBlock)
    assert message.content[0].text in "hello " * 100

    model.streams([stream_of("openai.chat", ["hello"], ['{"a": ', "1}"], "weather")])
    with client.chat.completions.stream(model="m", messages=said) as whole_stream:
        calls = whole_stream.get_final_completion().choices[0].message.tool_calls
    assert calls is not None and calls[0].function.name == "weather"


def test_what_is_encoded_all_the_same_is_read(start: Callable[..., Product], model: Model) -> None:
    product = start()
    packed = gzip.compress(whole("openai.chat", "hello"))
    model.answers(packed, content_encoding="gzip")
    answer = product.ask()
    assert (answer.body, answer.headers["content-encoding"]) == (packed, "gzip")
    model.answers(gzip.compress(whole("openai.chat", FOUND)), content_encoding="gzip")
    answer = product.ask()
    assert answer.status == 451 and "content-encoding" not in answer.headers
    events = stream_of("openai.chat", ["hello"])
    model.streams([gzip.compress(events)], content_encoding="gzip", content_digest="x")
    answer = product.ask()
    assert answer.body == events
    assert not {"content-encoding", "content-digest"} & {name.lower() for name in answer.headers}
    model.answers(packed, content_encoding="snappy")
    assert (product.ask().status, code_of(product.ask())) == (503, "not_judged")


def test_errors_of_models_and_what_is_no_models_go_on(start: Callable[..., Product], model: Model) -> None:
    product = start()
    model.answers(b'{"error": {"message": "slow down"}}', status=429, retry_after="7")
    answer = product.ask()
    assert (answer.status, answer.json) == (429, {"error": {"message": "slow down"}})
    assert answer.headers["retry-after"] == "7"
    model.answers(json.dumps({"error": {"message": FOUND}}).encode(), status=400)
    assert product.ask().status == 451
    model.answers(FOUND.encode(), "application/zip")
    other = ask(product.envoy, b"", {}, path="/files/1", method="GET")
    assert (other.status, other.body) == (200, FOUND.encode())
    model.answers(b"", status=204)
    assert product.ask().status == 204
    model.answers(FOUND.encode())
    assert ask(product.envoy, b"", {}, path="/v1/chat/completions", method="HEAD").status == 200


def test_trailers_go_on_behind_what_was_checked(start: Callable[..., Product], model: Model) -> None:
    product = start(change=lambda bootstrap: with_trailers(bootstrap, "a"))

    def with_some(text: str) -> Callable[[Any], None]:
        def script(handler: Any) -> None:
            begin_stream(handler, trailer="x-sum")
            send(handler, stream_of("openai.chat", [text]))
            handler.wfile.write(b"0\r\nx-sum: 1\r\n\r\n")

        return script

    model.script = with_some("hello")
    read = ask_and_read(product)
    assert b"hello" in read and read.endswith(b"0\r\nx-sum: 1\r\n\r\n")
    model.script = with_some(FOUND)
    read = ask_and_read(product)
    assert FOUND.encode() not in read and b"content_filter" in read and read.endswith(b"\r\n0\r\n\r\n")


def test_a_stream_that_is_refused_is_cut_off_at_the_model(start: Callable[..., Product], model: Model) -> None:
    product = start()
    cut = threading.Event()

    def endless(handler: Any) -> None:
        begin_stream(handler)
        try:
            send(handler, stream_of("openai.chat", [FOUND + " and more " * 100]).replace(b"data: [DONE]\n\n", b""))
            while True:
                send(handler, b": still here\n\n")
                if cut.wait(0.02):
                    return
        except OSError:
            cut.set()

    model.script = endless
    answer = product.ask()
    assert answer.body.endswith(b"data: [DONE]\n\n")
    assert cut.wait(30)


def ask_and_read(product: Product, more: Callable[[bytes], None] = lambda read: None) -> bytes:
    """All that a client gets until Envoy closes; `more` is told of it as it comes."""
    with socket.create_connection((product.envoy.address.host, product.envoy.address.port), timeout=60) as client:
        client.sendall(REQUEST)
        read = b""
        while piece := client.recv(65536):
            read += piece
            more(read)
    return read


def test_a_model_that_breaks_off_gets_nothing_unchecked_out(start: Callable[..., Product], model: Model) -> None:
    product = start()
    for begins in (True, False):
        before = threading.Event()

        def breaks(handler: Any, begins: bool = begins, before: threading.Event = before) -> None:
            begin_stream(handler)
            if begins:
                send(handler, b": thinking\n\n")
                before.wait(30)
            send(handler, stream_of("openai.chat", ["hello "])[:300])
            handler.connection.shutdown(socket.SHUT_RDWR)

        model.script = breaks
        read = ask_and_read(product, lambda read, before=before: before.set())  # type: ignore[misc]
        assert b"hello" not in read
        if begins:
            assert read.startswith(b"HTTP/1.1 200") and not read.endswith(b"0\r\n\r\n")
        else:
            assert read.startswith((b"HTTP/1.1 502", b"HTTP/1.1 200"))
    wait_until(lambda: len(product.lines("response")) == 2, "the responses to be told of")


def test_a_client_that_leaves_frees_the_worker(start: Callable[..., Product], model: Model) -> None:
    product = start()
    cut = threading.Event()

    def waits(handler: Any) -> None:
        begin_stream(handler)
        try:
            while not cut.is_set():
                send(handler, b": still here\n\n")
                cut.wait(0.02)
        except OSError:
            cut.set()

    model.script = waits
    with socket.create_connection((product.envoy.address.host, product.envoy.address.port), timeout=60) as client:
        client.sendall(REQUEST)
        assert client.recv(65536)
    assert cut.wait(30)
    model.answers(whole("openai.chat", "hello"))
    assert product.ask().status == 200


@pytest.mark.parametrize("on_failure", ["closed", "open"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_dies_or_hangs_over_a_stream_ends_it(
    start: Callable[..., Product], model: Model, on_failure: str, number: signal.Signals
) -> None:
    product = start(f"on_failure: {on_failure}")
    pid = product.worker_pid
    sent_on = threading.Event()

    def waits(handler: Any) -> None:
        begin_stream(handler)
        try:
            send(handler, stream_of("openai.chat", ["word "] * 200).replace(b"data: [DONE]\n\n", b""))
            sent_on.wait(30)
            for _ in range(400):
                send(handler, stream_of("openai.chat", [FOUND]))
                threading.Event().wait(0.02)
        except OSError:
            return

    model.script = waits

    def falls(read: bytes) -> None:
        if b"word " in read and not sent_on.is_set():
            os.kill(pid, number)
            sent_on.set()

    try:
        read = ask_and_read(product, falls)
    finally:
        if number == signal.SIGSTOP:
            os.kill(pid, signal.SIGCONT)
    assert b"AKIA" not in read
    assert not read.endswith(b"0\r\n\r\n")


def test_a_worker_that_ends_before_a_stream_does_breaks_it(start: Callable[..., Product], model: Model) -> None:
    product = start()
    asked = threading.Event()

    unfinished = sent("openai.chat", events_of("openai.chat", ["word "] * 100)[:-1]).replace(b"data: [DONE]\n\n", b"")

    def goes_on(handler: Any) -> None:
        begin_stream(handler)
        try:
            while True:
                send(handler, unfinished)
                asked.wait(0.2)
        except OSError:
            return

    def ends(read: bytes) -> None:
        if b"word " in read and not asked.is_set():
            asked.set()
            product.server.ask_to_end()

    model.script = goes_on
    read = ask_and_read(product, ends)
    assert b"word " in read and not read.endswith(b"0\r\n\r\n")


def test_a_worker_that_dies_over_a_whole_answer_leaves_an_error(start: Callable[..., Product], model: Model) -> None:
    product = start()
    data = whole("openai.chat", "hello")
    pid = product.worker_pid

    def dies(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:20])
        os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            handler.wfile.write(data[20:])

    model.script = dies
    answer = product.ask()
    assert (answer.status, code_of(answer)) == (503, "not_judged")


def test_without_workers_no_answer_goes_on_and_the_error_says_so(start: Callable[..., Product], model: Model) -> None:
    product = start("on_failure: closed")
    model.answers(whole("openai.chat", "hello"))
    product.server.kill()
    wait_until(lambda: product.ask().status == 503, "the worker to end")
    for api, kind in (("openai.chat", None), ("anthropic.messages", "error")):
        answer = product.ask(api)  # type: ignore[arg-type]
        assert (answer.status, code_of(answer), answer.json.get("type")) == (503, "not_judged", kind)
