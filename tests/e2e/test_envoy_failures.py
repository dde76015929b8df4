"""What a client and the upstreams see when things go right and wrong between Envoy and the workers.

Envoy, the service and the processes are real; the judge is not, it does what the request's `x-test` header says.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e_harness import Answer, Child, RunningEnvoy, Seen, Upstream, ask, free_address, wait_until
from fake_worker import BODY_BYTES

from router.config.bootstrap import BootstrapInputs, UpstreamCluster, render_bootstrap

pytestmark = pytest.mark.slow

BODY = b'{ "model":"m\\u00e9" ,"messages":[{"role":"user","content":"\xf0\x9f\x9a\x82"}]}\n'


@dataclass(frozen=True)
class House:
    """Envoy, two workers, and two upstreams, of which `a` is the default and `b` what the judge chooses."""

    envoy: RunningEnvoy
    workers: list[Child]
    a: Upstream
    b: Upstream
    start_worker: Callable[[int], Child]

    def kill_workers(self) -> None:
        for worker in self.workers:
            worker.kill()

    def only(self) -> Seen:
        """The one request that any upstream got; it went to `b`."""
        assert (len(self.a.seen), len(self.b.seen)) == (0, 1)
        return self.b.seen[0]


@pytest.fixture
def build_house(
    tmp_path: Path,
    start_envoy: Callable[..., RunningEnvoy],
    start_upstream: Callable[[str], Upstream],
    start_fake_worker: Callable[..., Child],
) -> Callable[..., House]:
    """`build_house(on_failure)`; `behaviour` is the workers' if it is not to follow from that."""

    def build(on_failure: str, behaviour: str | None = None, notice: float = 0.0) -> House:
        a, b = start_upstream("a"), start_upstream("b")
        sockets = [tmp_path / "run" / f"w{index}.sock" for index in range(2)]

        def start_worker(index: int) -> Child:
            return start_fake_worker(sockets[index], behaviour or on_failure, notice)

        workers = [start_worker(index) for index in range(2)]
        wait_until(lambda: all(worker.said("ready") or not worker.alive for worker in workers), "the workers")
        inputs = BootstrapInputs(
            listen=free_address(),
            admin=free_address(),
            worker_sockets=tuple(map(str, sockets)),
            clusters=(
                UpstreamCluster("a", a.url),
                UpstreamCluster("b", b.url),
                UpstreamCluster("unreachable", "http://127.0.0.1:9"),
            ),
            default_cluster="a",
            on_failure=on_failure,
            body_bytes=BODY_BYTES,
            message_timeout=2.0,
        )
        envoy = start_envoy(render_bootstrap(inputs), inputs.listen, inputs.admin)
        return House(envoy, workers, a, b, start_worker)

    return build


@pytest.fixture
def closed(build_house: Callable[..., House]) -> House:
    return build_house("closed")


@pytest.fixture
def open_(build_house: Callable[..., House]) -> House:
    return build_house("open")


def code(answer: Answer) -> object:
    """The error's code; the answer must be an error in OpenAI's shape."""
    assert answer.headers["content-type"] == "application/json"
    error = answer.json["error"]
    assert isinstance(error, dict)
    assert set(error) == {"message", "type", "param", "code"}
    return error["code"]


def exchange_raw(house: House, request: bytes) -> bytes:
    """Bytes to Envoy and all that comes back until it closes."""
    with socket.create_connection((house.envoy.address.host, house.envoy.address.port), timeout=30) as client:
        client.sendall(request)
        answer = b""
        while piece := client.recv(65536):
            answer += piece
        return answer


SPOOFED = {"x-pointsman-cluster": "a", "X-Pointsman-Model": "mine", "x-pointsman-other": "1"}


def test_a_spoofed_header_does_not_choose_the_upstream_while_the_workers_judge(closed: House) -> None:
    answer = ask(closed.envoy, BODY, SPOOFED)
    assert answer.json == {"upstream": "b"}
    seen = closed.only()
    assert seen.header("x-pointsman-cluster") == "b"
    assert seen.header("x-pointsman-model") == "b"
    assert seen.header("x-pointsman-other") is None


def test_a_spoofed_header_reaches_no_upstream_when_all_workers_are_killed_and_failure_is_closed(closed: House) -> None:
    closed.kill_workers()
    for body, method in ((BODY, "POST"), (None, "GET")):
        answer = ask(closed.envoy, body, SPOOFED, method=method)
        assert (answer.status, code(answer)) == (503, "not_judged")
    assert closed.a.seen == closed.b.seen == []


def test_a_spoofed_header_goes_to_the_default_when_all_workers_are_killed_and_failure_is_open(open_: House) -> None:
    open_.kill_workers()
    answer = ask(open_.envoy, BODY, SPOOFED | {"x-pointsman-cluster": "b"})
    assert answer.json == {"upstream": "a"}
    assert "x-pointsman-decision" not in answer.headers
    (seen,) = open_.a.seen
    assert seen.body == BODY
    assert not [name for name, _ in seen.headers if name.startswith("x-pointsman-")]
    assert open_.b.seen == []


def test_without_an_edit_the_upstream_gets_the_bytes_that_the_client_sent(closed: House) -> None:
    ask(closed.envoy, BODY)
    seen = closed.only()
    assert seen.body == BODY
    assert seen.header("content-length") == str(len(BODY))


def test_a_body_as_large_as_allowed_arrives_whole(closed: House) -> None:
    body = bytes(range(256)) * (BODY_BYTES // 256)
    assert ask(closed.envoy, body).status == 200
    assert closed.only().body == body


def test_a_chunked_body_arrives_unchanged(closed: House) -> None:
    exchange_raw(
        closed,
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
        b"5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n",
    )
    assert closed.only().body == b"hello, world"


@pytest.mark.parametrize("framing", ["sized", "chunked"])
def test_a_replaced_body_has_its_exact_length(closed: House, framing: str) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-test: replace:a longer body\r\n"
    if framing == "sized":
        exchange_raw(closed, head + b"content-length: 5\r\n\r\nhello")
    else:
        exchange_raw(closed, head + b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    seen = closed.only()
    assert seen.body == b"a longer body"
    assert seen.header("content-length") == "13"
    assert seen.header("transfer-encoding") is None


def test_response_headers_are_the_decisions_and_not_the_upstreams(closed: House) -> None:
    answer = ask(closed.envoy, BODY)
    own = {name: value for name, value in answer.headers.items() if name.startswith("x-pointsman-")}
    assert own == {"x-pointsman-decision": "test", "x-pointsman-model": "b", "x-pointsman-record": "r1"}


def test_requests_without_a_body_are_judged_by_their_headers(closed: House) -> None:
    for method in ("GET", "HEAD", "POST"):
        assert ask(closed.envoy, method=method).status == 200
    assert [seen.body for seen in closed.b.seen] == [b"", b"", b""]


@pytest.mark.parametrize("action", ["raise:", "sleep:30"])
def test_a_judge_that_fails_closed_refuses_in_json(closed: House, action: str) -> None:
    answer = ask(closed.envoy, BODY, {"x-test": action})
    assert (answer.status, answer.json) == (503, {"error": {"code": "refused_by_worker"}})
    assert closed.a.seen == closed.b.seen == []
    assert closed.envoy.counter("failure_mode_allowed") == 0
    assert "the text of a request" not in "".join(worker.log.read_text() for worker in closed.workers)


@pytest.mark.parametrize("action", ["raise:", "sleep:30"])
def test_a_judge_that_fails_open_goes_to_the_default(open_: House, action: str) -> None:
    assert ask(open_.envoy, BODY, {"x-test": action}).json == {"upstream": "a"}
    assert open_.a.seen[0].body == BODY
    assert open_.b.seen == []


@pytest.mark.parametrize(("on_failure", "expected"), [("closed", 503), ("open", 200)])
def test_a_stream_that_ends_without_an_answer_counts_as_a_failure(
    build_house: Callable[..., House], on_failure: str, expected: int
) -> None:
    house = build_house(on_failure, behaviour="mute")
    answer = ask(house.envoy, BODY, SPOOFED | {"x-pointsman-cluster": "b"})
    assert answer.status == expected
    assert len(house.a.seen) == (on_failure == "open")
    assert house.b.seen == []


def test_a_request_that_kills_every_worker_is_refused_in_json(closed: House) -> None:
    answer = ask(closed.envoy, BODY, {"x-test": "die:"})
    assert (answer.status, code(answer)) == (503, "not_judged")
    assert closed.a.seen == closed.b.seen == []


def test_killing_a_worker_loses_none_of_a_thousand_requests(closed: House) -> None:
    statuses: Counter[int] = Counter()
    numbers = iter(range(1000))
    lock = threading.Lock()
    halfway = threading.Event()

    def client() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            # Long enough that the killed worker surely has a request in hand.
            answer = ask(closed.envoy, BODY, {"x-test": "sleep:0.01"})
            with lock:
                statuses[answer.status] += 1
            if number == 400:
                halfway.set()

    clients = [threading.Thread(target=client) for _ in range(4)]
    for thread in clients:
        thread.start()
    assert halfway.wait(60)
    closed.workers[0].kill()
    closed.start_worker(0)
    for thread in clients:
        thread.join()
    assert statuses == {200: 1000}
    assert [seen.body for seen in closed.b.seen] == [BODY] * 1000


def test_a_worker_that_drains_loses_nothing(build_house: Callable[..., House]) -> None:
    closed = build_house("closed", notice=1.2)
    closed.workers[0].ask_to_end()
    answers = 0
    while closed.workers[0].alive:
        assert ask(closed.envoy, BODY, {"x-test": "sleep:0.01"}).status == 200
        answers += 1
    assert answers > 10
    assert ask(closed.envoy, BODY).status == 200
    assert closed.envoy.counter("failure_mode_allowed") == 0


def test_envoys_own_errors_are_json_and_the_sidecars_are_left_alone(closed: House) -> None:
    too_large = ask(closed.envoy, b"x" * (2 * BODY_BYTES))
    assert (too_large.status, code(too_large)) == (413, "request_too_large")
    unreachable = ask(closed.envoy, BODY, {"x-test": "route:unreachable"})
    assert (unreachable.status, code(unreachable)) == (503, "upstream_unavailable")
    unknown = ask(closed.envoy, BODY, {"x-test": "route:unknown"})
    assert (unknown.status, code(unknown)) == (503, "upstream_unavailable")
    assert b'"bad_request"' in exchange_raw(closed, b"NOT HTTP\r\n\r\n")
    for status in (200, 403, 413, 418, 451, 503):
        answer = ask(closed.envoy, BODY, {"x-test": f"reply:{status}"})
        assert (answer.status, answer.json) == (status, {"from": "worker"})
        assert answer.headers["x-pointsman-decision"] == "no"
    assert closed.a.seen == closed.b.seen == []


def test_the_path_is_normalised_before_it_is_judged_and_sent(closed: House) -> None:
    ask(closed.envoy, BODY, path="/v1//chat/./x/../completions?q=1")
    assert closed.only().raw_head.startswith(b"POST /v1/chat/completions?q=1 HTTP/1.1\r\n")
