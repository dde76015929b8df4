"""What is read from Envoy's headers message."""

from __future__ import annotations

from router.extproc.head import RequestHead, read_head
from router.proto import ext_proc_pb2 as pb


def read(*headers: pb.HeaderValue) -> RequestHead:
    return read_head(pb.HttpHeaders(headers=pb.HeaderMap(headers=headers)))


def test_names_are_lower_case_and_the_first_value_counts() -> None:
    head = read(
        pb.HeaderValue(key=":method", raw_value=b"GET"),
        pb.HeaderValue(key=":path", value="/old-style?q=1"),
        pb.HeaderValue(key="X-Twice", raw_value=b"first"),
        pb.HeaderValue(key="x-twice", raw_value=b"second"),
        pb.HeaderValue(key="x-bytes", raw_value=b"\xff\xfe"),
    )
    assert (head.method, head.path) == ("GET", "/old-style?q=1")
    assert head.headers["x-twice"] == "first"
    assert head.headers["x-bytes"].encode("latin-1") == b"\xff\xfe"


def test_a_head_without_pseudo_headers_is_read_as_empty() -> None:
    head = read()
    assert (head.method, head.path, head.content_encoding) == ("", "", "")


def test_neither_path_nor_values_are_shown() -> None:
    assert "secret" not in repr(RequestHead("GET", "/secret", {"authorization": "secret"}))
