"""What is read of responses of each API, whole and streamed, in whatever pieces they come."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import zlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.extproc import decoding, reading
from router.extproc.head import RequestHead
from router.extproc.onlooker import Onlooker
from router.extproc.reading import ResponseFacts, ResponseReader
from router.extproc.usage import NOTHING_SAID, Usage, carries_content, usage_of
from router.proto import ext_proc_pb2 as pb

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

OURS = {"x-pointsman-model": "m", "x-pointsman-decision": "d", "x-pointsman-record": "r"}


def sse(*events: Any, named: bool = False) -> bytes:
    rows = []
    for event in events:
        name = b"event: " + event["type"].encode() + b"\n" if named else b""
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        rows.append(name + b"data: " + data + b"\n\n")
    return b"".join(rows)


def read(
    body: bytes | Sequence[bytes], kind: str = "application/json", encoding: str = "", status: str = "200"
) -> ResponseFacts:
    """The facts when each piece comes a second after the one before, and the end two seconds after the last."""
    reader = ResponseReader(OURS, 10.0)
    reader.headers({":status": status, "content-type": kind, "content-encoding": encoding})
    now = 10.0
    for piece in [body] if isinstance(body, bytes) else body:
        now += 1
        reader.body(piece, now)
    reader.end(now + 2)
    return reader.facts()


CHAT = {"choices": [{"message": {"content": "hi"}}], "usage": {"prompt_tokens": 5, "completion_tokens": 3}}
CHAT_CACHED = {"usage": CHAT["usage"] | {"prompt_tokens_details": {"cached_tokens": 2}}}
RESPONSE = {
    "output": [],
    "usage": {"input_tokens": 5, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 2}},
}
MESSAGE = {"type": "message", "usage": {"input_tokens": 5, "output_tokens": 3}}
MESSAGE_CACHED = {
    "usage": {"input_tokens": 5, "output_tokens": 3, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 100}
}

WHOLE = {
    "chat": (CHAT, Usage(5, 3)),
    "chat, cached": (CHAT_CACHED, Usage(5, 3, 2)),
    "responses": (RESPONSE, Usage(5, 3, 2)),
    "anthropic": (MESSAGE, Usage(5, 3)),
    "anthropic, cached": (MESSAGE_CACHED, Usage(125, 3, 20)),
    "embeddings": ({"data": [], "usage": {"prompt_tokens": 8, "total_tokens": 8}}, Usage(8)),
    "count of tokens": ({"input_tokens": 9}, NOTHING_SAID),
    "no usage": ({"choices": []}, NOTHING_SAID),
    "null": ({"usage": None}, NOTHING_SAID),
    "a list": ([1], NOTHING_SAID),
    "odd usage": ({"usage": {"prompt_tokens": "5", "completion_tokens": True}}, NOTHING_SAID),
    "absurd usage": ({"usage": {"prompt_tokens": -1, "completion_tokens": 10**12}}, NOTHING_SAID),
    "odd details": ({"usage": {"prompt_tokens": 1, "prompt_tokens_details": [1]}}, Usage(1)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_usage_of_a_whole_answer(name: str) -> None:
    answer, usage = WHOLE[name]
    facts = read(json.dumps(answer).encode())
    assert (facts.usage, facts.unread, facts.stream) == (usage, "", False)
    assert (facts.first, facts.whole) == (None, 3.0)
    assert (facts.model, facts.decision, facts.record, facts.status) == ("m", "d", "r", 200)


def delta(**content: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": content}], "usage": None}


STREAMS = {
    "chat": (
        [
            sse(delta(role="assistant", content="")),
            sse(delta(content="h")),
            sse(delta(content="i")),
            sse({"choices": [], "usage": CHAT["usage"]}),
            sse(b"[DONE]"),
        ],
        2.0,
        Usage(5, 3),
    ),
    "chat that calls a tool": ([sse(delta(role="assistant")), sse(delta(tool_calls=[{"index": 0}]))], 2.0, Usage()),
    "chat that reasons first": ([sse(delta(reasoning_content="hm")), sse(delta(content="x"))], 1.0, Usage()),
    "completions": ([sse({"choices": [{"text": ""}]}), sse({"choices": [{"text": "x"}]})], 2.0, Usage()),
    "responses": (
        [
            sse({"type": "response.created", "response": {"usage": None}}, named=True),
            sse({"type": "response.output_text.delta", "delta": "h"}, named=True),
            sse({"type": "response.completed", "response": RESPONSE}, named=True),
        ],
        2.0,
        Usage(5, 3, 2),
    ),
    "anthropic": (
        [
            sse({"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}}, named=True),
            sse({"type": "ping"}, named=True),
            sse({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "h"}}, named=True),
            sse({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 3}}, named=True),
            sse({"type": "message_stop"}, named=True),
        ],
        3.0,
        Usage(5, 3),
    ),
    "nothing of the answer": ([sse({"error": {"message": "x"}})], None, Usage()),
    "no JSON": ([sse(b"{"), sse(b"\xff"), sse(b"[" * 100_000), sse(delta(content="x"))], 4.0, Usage()),
}


@pytest.mark.parametrize("name", STREAMS)
def test_usage_and_times_of_a_stream(name: str) -> None:
    pieces, first, usage = STREAMS[name]
    facts = read(pieces, "text/event-stream; charset=utf-8")
    assert (facts.first, facts.usage, facts.stream, facts.unread) == (first, usage, True, "")
    assert facts.whole == len(pieces) + 2.0


def test_the_speed_is_that_of_the_time_after_the_first_piece() -> None:
    assert read(STREAMS["chat"][0], "text/event-stream").tokens_per_second == 3 / 5
    assert read(json.dumps(CHAT).encode()).tokens_per_second == 1.0
    assert read(b"{}").tokens_per_second is None


def raw_deflate(data: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-15)
    return deflate.compress(data) + deflate.flush()


ZIPPED = {
    "gzip": ("gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "GZIP, written large": (" GZip ", gzip.compress),
    "br": ("br", brotli.compress),
    "zstd": ("zstd", zstd.compress),
    "one on the other": ("gzip, br", lambda data: brotli.compress(gzip.compress(data))),
}


@pytest.mark.parametrize("name", ZIPPED)
@given(cuts=st.lists(st.integers(0, 400), max_size=5))
def test_a_zipped_answer_is_read_in_any_pieces(name: str, cuts: list[int]) -> None:
    encoding, zip_ = ZIPPED[name]
    body = zip_(json.dumps(CHAT).encode())
    places = sorted(min(cut, len(body)) for cut in cuts)
    pieces = [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)]
    facts = read(pieces, encoding=encoding)
    assert (facts.usage, facts.unread) == (Usage(5, 3), "")


def test_what_cannot_be_read_says_why() -> None:
    assert read(b"{}", encoding="snappy").unread == "encoding"
    assert read(b"{}", encoding="zstd").unread == "encoding"
    assert read(b"not zipped", encoding="gzip").unread == "encoding"
    assert read(b"{").unread == "not_json"
    assert read(b"x", "text/html").unread == "kind"
    assert read(b"", "").unread == "kind"
    assert read(b"").unread == ""


def test_an_answer_that_is_too_large_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "JSON_BYTES", 1000)
    monkeypatch.setattr(decoding, "DECODED_BYTES", 100_000)
    reader = ResponseReader(OURS, 0.0)
    reader.headers({"content-type": "application/json"})
    for _ in range(100):
        reader.body(b"x" * 100, 1.0)
    assert len(reader._json) == 0
    reader.end(2.0)
    assert reader.facts().unread == "too_large"
    assert read(gzip.compress(b" " * 10_000_000), "text/event-stream", "gzip").unread == "too_large"


def test_a_response_that_has_not_ended_broke_off() -> None:
    reader = ResponseReader(OURS, 0.0)
    reader.headers({":status": "200", "content-type": "text/event-stream"})
    reader.body(sse(delta(content="x")), 1.5)
    facts = reader.facts()
    assert (facts.unread, facts.first, facts.whole, facts.tokens_per_second) == ("broken_off", 1.5, None, None)


@pytest.mark.parametrize("status", ["", "2", "2000", "٢٠٠", "abc"])
def test_an_odd_status_is_none(status: str) -> None:
    assert read(b"{}", status=status).status == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["usage", "choices", "delta", "type", "message", "response", "input_tokens", "text"]), inner
        )
    ),
    max_leaves=15,
)


@given(JSON)
def test_no_shape_makes_it_fail(value: Any) -> None:
    assert isinstance(usage_of(value), Usage)
    assert carries_content(value) in (True, False)
    read([sse(value), json.dumps(value).encode()], "text/event-stream")


# What the onlooker makes of Envoy's copies.


def copy(**message: Any) -> pb.ProcessingRequest:
    return pb.ProcessingRequest(observability_mode=True, **message)


def header_map(pairs: dict[str, str], end: bool = False) -> pb.HttpHeaders:
    rows = [pb.HeaderValue(key=key, raw_value=value.encode()) for key, value in pairs.items()]
    return pb.HttpHeaders(headers=pb.HeaderMap(headers=rows), end_of_stream=end)


REQUEST = {":method": "POST", ":path": "/v1/chat/completions"}
JUDGED = copy(request_headers=header_map(REQUEST | OURS))
NOT_JUDGED = copy(request_headers=header_map(REQUEST))
ANSWER = json.dumps(CHAT).encode()
ANSWER_HEAD = copy(response_headers=header_map({":status": "200", "content-type": "application/json"}))
ANSWER_BODY = copy(response_body=pb.HttpBody(body=ANSWER, end_of_stream=True))
ANSWER_UNENDED = copy(response_body=pb.HttpBody(body=ANSWER))
TRAILERS = copy(response_trailers=pb.HttpTrailers())
ALONE = copy(response_headers=header_map({":status": "503", "content-type": "application/json"}, end=True))
BODY = copy(request_body=pb.HttpBody(body=b"{}", end_of_stream=True))


async def looked_at(*messages: pb.ProcessingRequest) -> tuple[list[bytes | None], list[ResponseFacts]]:
    """The bodies that were judged, and what was told; the messages must be looked at to their end or left early."""
    judged: list[bytes | None] = []
    told: list[ResponseFacts] = []

    async def judge(head: RequestHead, body: bytes | None) -> None:
        assert head.copy
        judged.append(body)

    async def rest() -> AsyncIterator[pb.ProcessingRequest]:
        for message in messages[1:]:
            yield message

    await Onlooker(judge, 10, told.append).watch(messages[0], rest())
    return judged, told


@pytest.mark.parametrize("ending", [[ANSWER_BODY], [ANSWER_UNENDED, TRAILERS]])
async def test_the_response_to_a_judged_request_is_read_to_its_end(ending: list[pb.ProcessingRequest]) -> None:
    judged, (facts,) = await looked_at(JUDGED, ANSWER_HEAD, *ending, ALONE)
    assert (judged, facts.usage, facts.unread, facts.model) == ([], Usage(5, 3), "", "m")


async def test_a_response_without_a_body_is_told_of(  # as of an upstream that cannot be reached
) -> None:
    _, (facts,) = await looked_at(JUDGED, ALONE)
    assert (facts.status, facts.unread) == (503, "")


async def test_a_response_that_broke_off_is_told_of_and_none_where_none_began() -> None:
    _, (facts,) = await looked_at(JUDGED, ANSWER_HEAD, ANSWER_UNENDED)
    assert facts.unread == "broken_off"
    assert (await looked_at(JUDGED))[1] == []


async def test_a_request_that_nobody_judged_is_judged_and_its_response_is_not_ours() -> None:
    assert await looked_at(NOT_JUDGED, BODY, ANSWER_HEAD, ANSWER_BODY) == ([b"{}"], [])
    assert await looked_at(NOT_JUDGED, ANSWER_HEAD, BODY) == ([], [])
    large = copy(request_body=pb.HttpBody(body=b"x" * 11))
    assert await looked_at(NOT_JUDGED, large, BODY) == ([None], [])
    assert await looked_at(copy(request_headers=header_map(REQUEST, end=True))) == ([b""], [])


async def test_who_looks_at_a_response_can_be_cancelled_and_still_tells_what_was_seen() -> None:
    told: list[ResponseFacts] = []
    waiting = asyncio.Event()

    async def judge(_head: RequestHead, _body: bytes | None) -> None:
        raise AssertionError

    async def rest() -> AsyncIterator[pb.ProcessingRequest]:
        yield ANSWER_HEAD
        waiting.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(Onlooker(judge, 10, told.append).watch(JUDGED, rest()))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [facts.unread for facts in told] == ["broken_off"]
