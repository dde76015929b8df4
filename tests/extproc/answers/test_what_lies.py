"""Answers that are not of the kind that they say, and bytes of a stream that no delta holds."""

from __future__ import annotations

import asyncio

import pytest
from answer_rules import checks
from streams_of_apis import APIS

from router.extproc.answers.checks import Refusal
from router.extproc.answers.endings import Progress, mark_of
from router.extproc.answers.stream import CheckedStream, Step
from router.extproc.answers.whole import judge_whole

FOUND = "sk-12345678"


def whole(body: bytes) -> bool:
    return asyncio.run(judge_whole(checks(), "openai.chat", body, "")) is not None


def delta(text: str) -> bytes:
    return b'{"choices":[{"index":0,"delta":{"content":"%b"}}]}' % text.encode()


@pytest.mark.parametrize(
    "raw",
    [
        b'{"error": {"message": "no such key: %b"}}' % FOUND.encode(),
        b'{"error":\n {"message": "no such key: %b"}}\n\n' % FOUND.encode(),
        b": %b\n\n" % FOUND.encode(),
        b"id: %b\ndata: {}\n\n" % FOUND.encode(),
        b"event: %b\r\n\r\n" % FOUND.encode(),
        b"\xef\xbb\xbf%b\n\n" % FOUND.encode(),
    ],
)
def test_what_stands_beside_the_data_of_events_is_read(raw: bytes) -> None:
    async def run() -> tuple[Step, Step | None]:
        stream = CheckedStream(checks(), "openai.chat")
        step = await stream.feed(raw)
        return step, None if step.stop else await stream.end()

    step, end = asyncio.run(run())
    last = end or step
    assert last.stop is not None
    assert FOUND.encode() not in step.out + last.out


@pytest.mark.parametrize("form", [b"data: %b\n\n", b"%b\n", b"data:%b\r\n\r\n"])
def test_deltas_in_an_answer_that_does_not_say_that_it_is_a_stream_are_joined(form: bytes) -> None:
    assert whole(b"".join(form % delta(part) for part in ("a key: sk-", "1234", "5678", " end")))
    assert not whole(b"".join(form % delta(part) for part in ("a key: sk-", "12x4", "5678", " end")))


def test_what_is_due_when_more_comes_goes_on_with_it() -> None:
    now = [0.0]

    async def run() -> tuple[bytes, bytes]:
        stream = CheckedStream(checks(chars=100, seconds=1.0), "openai.chat", lambda: now[0])
        first, second = (b"data: %b\n\n" % delta(word) for word in ("a ", "b"))
        out = (await stream.feed(first)).out
        now[0] = 2.0
        out += (await stream.feed(second)).out
        out += (await stream.end()).out
        return first + second, out

    came, went = asyncio.run(run())
    assert went == came


def test_a_stream_whose_identifiers_cannot_be_repeated_ends_all_the_same() -> None:
    progress = Progress()
    progress.note(mark_of({"id": "\ud800", "model": "\udfff", "created": 10**400, "choices": [{"index": 2**70}]}))
    progress.note(mark_of({"id": "", "sequence_number": 2**64 - 1, "type": "content_block_start", "index": 2**64}))
    for api in APIS:
        assert progress.ending(api, Refusal("secrets", "matched", 403, "leak", "No."))
