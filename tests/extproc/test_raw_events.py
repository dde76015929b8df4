"""Events of a stream as the bytes that came."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.extproc.sse import EventSplitter, EventTooLargeError, RawEvent, RawEventSplitter

LINES = st.lists(
    st.sampled_from([b"data: a", b"data:b", b"data", b": note", b"event: x", b"", b"data: \xff", b"\xef\xbb\xbf"]),
    max_size=12,
)
ENDS = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n"]), min_size=12, max_size=12)


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    ends = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[begin:end] for begin, end in pairwise(ends)]


def split(pieces: Iterable[bytes], limit: int = 1000) -> list[RawEvent]:
    splitter = RawEventSplitter(limit)
    events = [event for piece in pieces for event in splitter.feed(piece)]
    last = splitter.end()
    assert splitter.end() is None
    return events + ([last] if last is not None else [])


@settings(deadline=None)
@given(lines=LINES, ends=ENDS, places=st.lists(st.integers(min_value=0), max_size=8))
def test_events_are_the_bytes_and_their_data_is_what_clients_read(
    lines: list[bytes], ends: list[bytes], places: list[int]
) -> None:
    data = b"".join(line + end for line, end in zip(lines, ends, strict=False))
    events = split(cut(data, places))
    assert b"".join(event.raw for event in events) == data
    reader = EventSplitter()
    expected = [*reader.feed(data), *reader.feed(b"\n\n")]
    assert [event.data for event in events if event.data] == expected


def test_an_event_ends_as_soon_as_its_empty_line_is_there() -> None:
    splitter = RawEventSplitter()
    assert [event.raw for event in splitter.feed(b"data: a\r\n\r")] == [b"data: a\r\n\r"]
    assert [event.raw for event in splitter.feed(b"\ndata: b\n\n")] == [b"\ndata: b\n\n"]


@pytest.mark.parametrize("data", [b"data: " + b"x" * 100, b"data: " + b"x" * 100 + b"\n\n", b": x\n" * 50])
def test_no_event_larger_than_the_bound_is_held(data: bytes) -> None:
    with pytest.raises(EventTooLargeError):
        split([data], 50)


def test_what_is_left_of_a_stream_that_is_too_large_is_still_there() -> None:
    splitter = RawEventSplitter(50)
    events: list[RawEvent] = []
    with pytest.raises(EventTooLargeError):
        events += splitter.feed(b"data: a\n\ndata: " + b"x" * 100 + b"\n\n")
    last = splitter.end()
    assert last is not None
    assert last.raw == b"data: " + b"x" * 100 + b"\n\n"
