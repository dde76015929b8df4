"""Answers that are no JSON by the letter, and that clients read as JSON all the same: none hides what it says."""

from __future__ import annotations

import asyncio
import gzip

import pytest
from answer_rules import checks

from router.extproc.answers.stream import CheckedStream
from router.extproc.answers.whole import judge_whole

ESCAPED = rb'{"choices":[{"index":0,"message":{"content":"a \u0073k-1234\u0035678"}}]'
CALL = b'{"choices":[{"message":{"tool_calls":[{"function":{"name":"shell","arguments":"{\\"a\\":\\"rm\\"}"}}]}}]}'
PARTS = (b"a sk-", b"1234", b"5678", b" end")

TAILS = {
    "bytes that are no UTF-8, as browsers and Go take them": b',"x":"\xff"}',
    "control characters": b',"x":"\x01"}',
    "a number of more digits than Python reads": b',"x":' + b"1" * 5000 + b"}",
}


def refused(body: bytes, encoding: str = "") -> bool:
    return asyncio.run(judge_whole(checks(), "openai.chat", body, encoding)) is not None


def refused_on_its_way(*events: bytes) -> bool:
    async def run() -> bool:
        stream = CheckedStream(checks(), "openai.chat")
        for event in events:
            if (await stream.feed(b"data: %b\n\n" % event)).stop:
                return True
        return (await stream.end()).stop is not None

    return asyncio.run(run())


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
def test_a_whole_answer_that_lenient_clients_read(tail: bytes) -> None:
    assert refused(ESCAPED + tail)
    assert not refused(ESCAPED.replace(b"1234", b"12x4") + tail)


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
def test_deltas_that_lenient_clients_read_are_joined(tail: bytes) -> None:
    events = [b'{"choices":[{"index":0,"delta":{"content":"%b"}}]%b' % (part, tail) for part in PARTS]
    assert refused_on_its_way(*events)
    assert not refused_on_its_way(*(event.replace(b"1234", b"12x4") for event in events))


@pytest.mark.parametrize(
    "body",
    [
        ESCAPED,
        ESCAPED + b"} and more",
        b"more and " + ESCAPED + b"}",
        b'the key:\\u000ask-12345678"',
        b"a\x00 sk-12345678",
        CALL + b" and more",
    ],
)
def test_what_is_no_json_is_read_without_its_escapes_too(body: bytes) -> None:
    assert refused(body)
    assert refused_on_its_way(body)


def test_the_first_of_several_members_is_an_answer_to_clients_that_read_no_more() -> None:
    assert refused(gzip.compress(ESCAPED + b"}") + gzip.compress(b"and more"), "gzip")


@pytest.mark.parametrize(
    "event",
    [
        b'{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"%b","choices":[]}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%b"},"choices":[]}',
    ],
)
def test_an_event_in_the_shapes_of_two_apis_is_read_in_both(event: bytes) -> None:
    assert refused_on_its_way(*(event % part for part in PARTS))
