"""The ways in which Envoy can show requests and responses: bodies in pieces, copies only, bodies that nobody reads.

Envoy, the service and the processes are real; the judge is not, it does what the request's `x-test` header says.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from e2e_harness import ask, wait_until
from e2e_place import Bootstrap, Place, exchange_raw, manager, processors, with_trailers

pytestmark = pytest.mark.slow


def in_pieces(bootstrap: Bootstrap) -> None:
    """Every processor gets the body in pieces."""
    for one in processors(bootstrap):
        one["processing_mode"] |= {"request_body_mode": "FULL_DUPLEX_STREAMED", "request_trailer_mode": "SEND"}


def copies_only(bootstrap: Bootstrap) -> None:
    """The first processor gets copies, and the route does not ask for its header."""
    (one, *_) = processors(bootstrap)
    one["processing_mode"] |= {"request_body_mode": "STREAMED"}
    one["observability_mode"] = True
    routes = manager(bootstrap)["route_config"]["virtual_hosts"][0]["routes"]
    routes[:] = [{"match": {"prefix": "/"}, "route": {"cluster": "b"}}]


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


SIZES = [0, 1, 64 * 1024, 64 * 1024 + 1, 8 << 20]


@pytest.mark.parametrize("workers", [1, 2])
def test_bodies_in_pieces_arrive_as_they_were_sent_and_are_judged_whole(
    build_place: Callable[..., Place], workers: int
) -> None:
    place = build_place(in_pieces, workers=workers)
    bodies = [bytes([65 + index]) * size for index, size in enumerate(SIZES)]
    for body in bodies:
        answer = ask(place.envoy, body)
        assert (answer.status, answer.headers["x-pointsman-model"]) == (200, "b")
    assert [digest(seen.body) for seen in place.b.seen] == [digest(body) for body in bodies]
    for worker in range(workers):
        assert [row["sha256"] for row in place.said("judged", worker)] == [digest(body) for body in bodies]


def test_a_body_in_pieces_is_replaced_refused_or_absent_as_a_whole_one_is(build_place: Callable[..., Place]) -> None:
    place = build_place(in_pieces)
    long = "x" * 50_000
    assert ask(place.envoy, b"hello" * 50_000, {"x-test": f"replace:{long}"}).status == 200
    assert ask(place.envoy, b"hello" * 50_000, {"x-test": "double:"}).status == 200
    refused = ask(place.envoy, b"hello", {"x-test": "reply:451"})
    assert (refused.status, refused.json) == (451, {"from": "worker"})
    assert ask(place.envoy, b"hello", {"x-test": "raise:"}).status == 503
    assert ask(place.envoy, method="GET").status == 200
    assert [seen.body for seen in place.b.seen] == [long.encode(), b"hello" * 100_000, b""]


def test_too_many_pieces_are_refused_and_reach_no_upstream(build_place: Callable[..., Place]) -> None:
    place = build_place(in_pieces, body_bytes=100_000)
    assert ask(place.envoy, b"x" * 100_000).status == 200
    answer = ask(place.envoy, b"x" * 100_001)
    assert (answer.status, answer.json) == (413, {"error": {"code": "too_large_by_worker"}})
    assert [len(seen.body) for seen in place.b.seen] == [100_000]


@pytest.mark.parametrize("workers", [1, 2])
def test_trailers_come_after_a_body_in_pieces(build_place: Callable[..., Place], workers: int) -> None:
    def in_pieces_with_trailers(bootstrap: Bootstrap) -> None:
        in_pieces(bootstrap)
        with_trailers(bootstrap)

    place = build_place(in_pieces_with_trailers, workers=workers)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n"
    for body in (b"", b"5\r\nhello\r\n"):
        sent = head + b"trailer: x-sum\r\n\r\n" + body + b"0\r\nx-sum: 7\r\n\r\n"
        assert exchange_raw(place, sent).startswith(b"HTTP/1.1 200")
    assert [seen.body for seen in place.b.seen] == [b"", b"hello"]
    assert all(seen.raw_body.endswith(b"0\r\nx-sum: 7\r\n\r\n") for seen in place.b.seen)


@pytest.mark.parametrize("change", [lambda bootstrap: None, in_pieces], ids=["whole", "in pieces"])
def test_a_body_that_nobody_reads_passes_whatever_its_size(build_place: Callable[..., Place], change: Any) -> None:
    place = build_place(change, body_bytes=100_000)
    body = bytes(range(256)) * (4 << 12)
    head = b"POST /unseen/files HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
    head += b"x-pointsman-cluster: a\r\nx-pointsman-other: 1\r\n"
    with socket.create_connection((place.envoy.address.host, place.envoy.address.port), timeout=30) as client:
        client.sendall(head + b"content-length: %d\r\n\r\n" % len(body))
        wait_until(lambda: place.said("judged") != [], "the headers to be judged")
        client.sendall(body)
        assert client.recv(12) == b"HTTP/1.1 200"
    (seen,) = place.b.seen
    assert digest(seen.body) == digest(body)
    assert seen.header("x-pointsman-cluster") == "b"
    assert seen.header("x-pointsman-other") is None
    assert [row["judged"] for row in place.said("judged")] == [0]


@pytest.mark.parametrize("change", [lambda bootstrap: None, in_pieces], ids=["whole", "in pieces"])
def test_a_client_that_vanishes_leaves_nothing_behind(build_place: Callable[..., Place], change: Any) -> None:
    place = build_place(change)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n"
    for _ in range(20):
        with socket.create_connection((place.envoy.address.host, place.envoy.address.port), timeout=30) as client:
            client.sendall(head + b"x" * 99_999)
    wait_until(lambda: place.envoy.counter("downstream_rq_rx_reset") >= 20, "Envoy to see them gone")
    assert ask(place.envoy, b"hello").status == 200
    assert [seen.body for seen in place.b.seen] == [b"hello"]
    assert [row["judged"] for row in place.said("judged")] == [5]
    wait_until(lambda: place.envoy.gauge("cluster.pointsman_workers.upstream_rq_active") == 0, "the streams to end")


def test_copies_are_judged_and_change_nothing(build_place: Callable[..., Place]) -> None:
    place = build_place(copies_only)
    bodies = [b"x" * 300_000, b"{}"]
    tests = ["replace:y", "reply:403", "raise:", "sleep:0.5"]
    for body in bodies:
        for action in tests:
            assert ask(place.envoy, body, {"x-test": action}).json == {"upstream": "b"}
    wait_until(lambda: len(place.said("judged")) == 8, "the copies to be judged")
    assert {(row["sha256"], row["copy"]) for row in place.said("judged")} == {(digest(body), True) for body in bodies}
    assert [seen.body for seen in place.b.seen] == [body for body in bodies for _ in tests]
    assert not [name for seen in place.b.seen for name, _ in seen.headers if name.startswith("x-pointsman-")]


def test_copies_change_nothing_when_no_worker_is_there(build_place: Callable[..., Place]) -> None:
    place = build_place(copies_only)
    place.workers[0].kill()
    assert ask(place.envoy, b"x" * 300_000).json == {"upstream": "b"}


@pytest.mark.parametrize("change", [lambda bootstrap: None, in_pieces], ids=["whole", "in pieces"])
def test_access_logs_are_told_of_the_decision(
    build_place: Callable[..., Place], tmp_path: Path, change: Callable[[Bootstrap], None]
) -> None:
    log = tmp_path / "access.log"

    def with_log(bootstrap: Bootstrap) -> None:
        change(bootstrap)
        words = "%RESPONSE_CODE% %DYNAMIC_METADATA(pointsman:decision)% %DYNAMIC_METADATA(pointsman:reason)%\n"
        manager(bootstrap)["access_log"] = [
            {
                "name": "envoy.access_loggers.file",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
                    "path": str(log),
                    "log_format": {"text_format_source": {"inline_string": words}},
                },
            }
        ]

    place = build_place(with_log)
    ask(place.envoy, b"{}")
    ask(place.envoy, b"{}", {"x-test": "reply:403"})
    ask(place.envoy, method="GET")
    ask(place.envoy, b"{}", path="/unseen")
    ask(place.envoy, b"{}", {"x-test": "raise:"})
    wait_until(lambda: log.exists() and len(log.read_text().splitlines()) == 5, "the access log")
    assert log.read_text().splitlines() == [
        "200 test priority",
        "403 test priority",
        "200 test priority",
        "200 test priority",
        "503 - -",
    ]


def test_what_filters_in_front_found_out_is_shown(build_place: Callable[..., Place]) -> None:
    def with_metadata(bootstrap: Bootstrap) -> None:
        (judge,) = processors(bootstrap)
        judge["metadata_options"]["forwarding_namespaces"] = {"untyped": ["test.claims"]}
        judge["request_attributes"] = ["source.address", "request.protocol"]
        kind = "envoy.extensions.filters.http.set_metadata.v3.Config"
        claims = [{"metadata_namespace": "test.claims", "value": {"payload": {"team": "gold"}}}]
        setter = {"@type": f"type.googleapis.com/{kind}", "metadata": claims}
        manager(bootstrap)["http_filters"].insert(0, {"name": "claims", "typed_config": setter})

    place = build_place(with_metadata)
    ask(place.envoy, b"{}", {"x-test": "claims:"})
    (claims,) = place.said("claims")
    assert claims.pop("x-from").startswith("127.0.0.1:")
    assert claims == {"x-team": "gold", "x-protocol": "HTTP/1.1"}


def test_clients_cannot_set_what_only_a_filter_may(build_place: Callable[..., Place]) -> None:
    def with_filter(bootstrap: Bootstrap) -> None:
        """Like one that checks tokens: it names the team of a good one, and leaves other requests as they are."""
        kind = "envoy.extensions.filters.http.lua.v3.Lua"
        code = """
            function envoy_on_request(handle)
              local headers = handle:headers()
              if headers:get("authorization") == "good" then headers:add("x-team", "gold") end
            end
        """
        setter = {"@type": f"type.googleapis.com/{kind}", "default_source_code": {"inline_string": code}}
        manager(bootstrap)["http_filters"].insert(0, {"name": "tokens", "typed_config": setter})

    place = build_place(with_filter, strip_from_clients=("x-team",))
    ask(place.envoy, b"{}", {"X-Team": "admin", "x-user": "me"})
    ask(place.envoy, b"{}", {"x-team": "admin", "authorization": "good"})
    assert [seen.header("x-team") for seen in place.b.seen] == [None, "gold"]
    assert place.b.seen[0].header("x-user") == "me"
