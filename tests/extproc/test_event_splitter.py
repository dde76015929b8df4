"""Events as they are put together from pieces."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.extproc.sse import EventSplitter


def events(pieces: Iterable[bytes], limit: int = 1000) -> list[bytes]:
    splitter = EventSplitter(limit)
    return [event for piece in pieces for event in splitter.feed(piece)]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data:a\ndata:  b\n\n", [b"a\n b"]),
        (b"event: x\nid: 7\n: comment\ndata: a\nretry: 3\n\n", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"\n\n\ndata: a\n\n", [b"a"]),
        (b"data\ndatas: a\n\n", []),
        (b"data: not ended\n", []),
        (b"event: only\n\n", []),
        (b"", []),
        (b"data: \xe2\x80\xa8\x00\n\n", [b"\xe2\x80\xa8\x00"]),
    ],
)
def test_events_are_read_by_the_rules(stream: bytes, expected: list[bytes]) -> None:
    assert events([stream]) == expected


def test_an_event_that_is_too_large_is_dropped_and_the_next_is_read() -> None:
    for large in (b"data: " + b"x" * 2000, b"data: x\n" * 300, b": " + b"x" * 2000 + b"\ndata: y"):
        stream = b"data: a\n\n" + large + b"\n\ndata: b\n\n"
        assert events([stream]) == [b"a", b"b"]
        assert events([stream[i : i + 1] for i in range(len(stream))]) == [b"a", b"b"]


def test_what_is_held_of_a_large_event_does_not_grow() -> None:
    splitter = EventSplitter(100)
    for _ in range(10_000):
        assert list(splitter.feed(b"data: xxxxxxxx")) == []
    assert len(splitter._line) <= 100
    for _ in range(10_000):
        assert list(splitter.feed(b"data: xxxxxxxx\n")) == []
    assert len(splitter._data) == 0


LINES = st.lists(st.sampled_from([b"data: a", b"data:", b"data: bb", b"", b": c", b"event: e", b"\xef\xbb\xbf"]))


@given(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.lists(st.integers(0, 100), max_size=8))
def test_any_cut_gives_the_same_events(lines: list[bytes], end: bytes, cuts: list[int]) -> None:
    stream = end.join(lines) + end
    places = sorted(min(cut, len(stream)) for cut in cuts)
    pieces = [stream[a:b] for a, b in zip([0, *places], [*places, len(stream)], strict=True)]
    assert events(pieces) == events([stream])
    assert events([stream]) == events([b"\n".join(lines) + b"\n"])


@given(st.lists(st.binary(max_size=50), max_size=10))
def test_nothing_makes_it_fail(pieces: list[bytes]) -> None:
    assert all(events(pieces, 20))
