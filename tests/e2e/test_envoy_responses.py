"""What workers read of responses that real Envoy shows copies of, and that nobody waits for them."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from e2e_harness import ask, wait_until
from e2e_place import Place, with_trailers

pytestmark = pytest.mark.slow

CONTENT = b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}\n\n'
LARGE = b"data: " + b"x" * 60_000 + b"\n\n"
STREAM = (CONTENT, CONTENT, USAGE, b"data: [DONE]\n\n")
ANSWER = json.dumps({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}).encode()


class Model:
    """An upstream whose answers the test sends, byte by byte."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(30)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def take(self) -> socket.socket:
        """The connection of the next request, once its head and body (`{}`) are there."""
        connection, _ = self._listener.accept()
        connection.settimeout(30)
        read = b""
        while not read.endswith(b"\r\n\r\n{}"):
            read += connection.recv(65536)
        return connection

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def model() -> Iterator[Model]:
    model = Model()
    yield model
    model.close()


def send(connection: socket.socket, piece: bytes) -> None:
    connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))


def head(kind: str, *more: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"content-type: {kind}", "transfer-encoding: chunked", *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def request(place: Place) -> socket.socket:
    client = socket.create_connection((place.envoy.address.host, place.envoy.address.port), timeout=30)
    client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
    return client


def read_until(client: socket.socket, end: bytes) -> bytes:
    read = b""
    while not read.endswith(end):
        piece = client.recv(65536)
        assert piece, read
        read += piece
    return read


def responses(place: Place, count: int = 1) -> list[Any]:
    wait_until(lambda: len(place.said("response")) >= count, "the response to be read")
    return place.said("response")


def read_by_itself(
    model: Model, place: Place, pieces: tuple[bytes, ...], *more: str, kind: str = "text/event-stream"
) -> Any:
    with request(place) as client, model.take() as upstream:
        upstream.sendall(head(kind, *more))
        for piece in pieces:
            send(upstream, piece)
        upstream.sendall(b"0\r\n\r\n")
        read_until(client, b"\r\n0\r\n\r\n")
    (facts,) = responses(place)
    return facts


def test_every_event_reaches_the_client_before_the_next_is_sent(
    build_place: Callable[..., Place], model: Model
) -> None:
    place = build_place(upstream=model.url, read_responses=True)
    with request(place) as client, model.take() as upstream:
        upstream.sendall(head("text/event-stream"))
        read_until(client, b"\r\n\r\n")
        for piece in STREAM:
            send(upstream, piece)
            # It hangs here, and fails, when anything holds the event back.
            assert piece in read_until(client, b"\n\n\r\n")
        upstream.sendall(b"0\r\n\r\n")
        read_until(client, b"0\r\n\r\n")
    (facts,) = responses(place)
    assert facts["usage"] == {"tokens_in": 11, "tokens_out": 7, "cached": None}
    assert (facts["model"], facts["record"], facts["status"], facts["stream"]) == ("b", "r1", 200, True)
    assert 0 < facts["first"] < facts["whole"]
    assert facts["unread"] == ""


def test_an_answer_in_json_is_read_though_it_is_zipped(build_place: Callable[..., Place], model: Model) -> None:
    place = build_place(upstream=model.url, read_responses=True)
    with request(place) as client, model.take() as upstream:
        upstream.sendall(head("application/json", "content-encoding: gzip"))
        send(upstream, gzip.compress(ANSWER))
        upstream.sendall(b"0\r\n\r\n")
        read_until(client, b"\r\n0\r\n\r\n")
    (facts,) = responses(place)
    assert facts["usage"] == {"tokens_in": 11, "tokens_out": 7, "cached": None}
    assert (facts["first"], facts["stream"], facts["unread"]) == (None, False, "")


def test_a_client_that_leaves_early_is_told_of_as_such(build_place: Callable[..., Place], model: Model) -> None:
    place = build_place(upstream=model.url, read_responses=True)
    client = request(place)
    with model.take() as upstream:
        upstream.sendall(head("text/event-stream"))
        send(upstream, CONTENT)
        read_until(client, b"\n\n\r\n")
        client.close()
        (facts,) = responses(place)
    assert (facts["unread"], facts["whole"]) == ("broken_off", None)
    assert facts["first"] > 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_dies_or_hangs_breaks_no_response(
    build_place: Callable[..., Place], model: Model, number: signal.Signals
) -> None:
    place = build_place(upstream=model.url, read_responses=True)
    pid = place.workers[0].pid
    with request(place) as client, model.take() as upstream:
        upstream.sendall(head("text/event-stream"))
        send(upstream, CONTENT)
        read_until(client, b"\n\n\r\n")
        os.kill(pid, number)
        # Shorter than Envoy takes to give a hung worker up, and longer than it takes to send a piece.
        client.settimeout(4)
        try:
            for _ in range(100):
                send(upstream, LARGE)
                read_until(client, LARGE[-10:] + b"\r\n")
            upstream.sendall(b"0\r\n\r\n")
            read_until(client, b"0\r\n\r\n")
        finally:
            if number == signal.SIGSTOP:
                os.kill(pid, signal.SIGCONT)


def test_what_was_answered_here_is_not_read(build_place: Callable[..., Place]) -> None:
    place = build_place(read_responses=True)
    assert ask(place.envoy, b"{}", {"x-test": "reply:403"}).status == 403
    assert ask(place.envoy, b"{}").status == 200
    (facts,) = responses(place)
    assert facts["status"] == 200


def test_a_response_with_trailers_is_read_to_its_end(build_place: Callable[..., Place], model: Model) -> None:
    place = build_place(with_trailers, upstream=model.url, read_responses=True)
    with request(place) as client, model.take() as upstream:
        upstream.sendall(head("text/event-stream", "trailer: x-sum"))
        for piece in STREAM:
            send(upstream, piece)
        upstream.sendall(b"0\r\nx-sum: 7\r\n\r\n")
        read_until(client, b"0\r\nx-sum: 7\r\n\r\n")
    (facts,) = responses(place)
    assert (facts["unread"], facts["usage"]["tokens_out"]) == ("", 7)
