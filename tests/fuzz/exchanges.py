"""An exchange fed with messages that bytes spell out: any kind, any order, any content, any judge.

The laws are those that Envoy's behaviour asks for: an answer that decides before the stream ends, no length without its
body, and no leave to go on that the judge has not given.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Final

from router.actions.edits import Edits
from router.extproc.exchange import Exchange, FailureKind
from router.extproc.head import RequestHead
from router.extproc.reading import ResponseFacts
from router.proto import ext_proc_pb2 as pb
from router.request.reply import Reply
from router.telemetry.instruments import create_instruments

REFUSAL: Final = Reply(403, "application/json", b"{}", (("x-pointsman-decision", "no"),))
ROUTED: Final = Edits((("x-pointsman-cluster", "b"),))
REWRITTEN: Final = Edits((("x-pointsman-cluster", "b"),), body=b"another body", remove=("content-encoding",))
IMPOSSIBLE: Final = Edits((("content-length", "3"),))
FAILED: Final = Reply(503, "application/json", b"{}")
TO_DEFAULT: Final = Edits((("x-pointsman-cluster", "default"),))

BODY_BYTES: Final = 512
"""What is gathered at most; bodies of the corpus are larger and smaller."""

_INSTRUMENTS: Final = create_instruments()
_NAMES: Final = (
    ":method",
    ":path",
    "content-length",
    "content-encoding",
    "x-pointsman-cluster",
    "X-POINTSMAN-MODEL",
    "x",
)
_MODES: Final = (None, *pb.ProcessingMode.BodySendMode.values())


class Bytes:
    """Reads choices off the bytes; zeros when they are at an end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> bool:
        return self._at < len(self._data)

    def number(self) -> int:
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def take(self, count: int) -> bytes:
        piece = self._data[self._at : self._at + count]
        self._at += count
        return piece


@dataclass
class _Judge:
    """Gives one outcome, or raises; `gave` and `failed_as` are what it let Envoy do."""

    outcome: Edits | Reply | None
    failure: Edits | Reply | None
    reads: bool
    judged: int = 0
    failures: list[FailureKind] = field(default_factory=list)

    def reads_body(self, head: RequestHead) -> bool:
        return self.reads

    async def judge_headers(self, head: RequestHead) -> Edits | Reply:
        return await self.judge(head, b"")

    async def judge(self, head: RequestHead, body: bytes) -> Edits | Reply:
        self.judged += 1
        if self.outcome is None:
            raise ValueError("the words of a request")
        return self.outcome

    def failed(self, head: RequestHead | None, kind: FailureKind) -> Edits | Reply:
        self.failures.append(kind)
        if self.failure is None:
            raise ValueError("the words of a request")
        return self.failure


def check_exchange(data: bytes) -> None:
    """Two bytes choose the judge, one whether these are copies, the rest are messages."""
    source = Bytes(data)
    choice, second = source.number(), source.number()
    judge = _Judge(
        outcome=(ROUTED, REWRITTEN, REFUSAL, IMPOSSIBLE, None)[choice % 5],
        failure=(FAILED, TO_DEFAULT, None, REWRITTEN)[second % 4],
        reads=second < 128,
    )
    told: list[ResponseFacts] = []
    messages = list(_messages(source))
    taken, answers = asyncio.run(_run(judge, messages, told))
    assert taken <= len(messages)
    _check_answers(judge, messages[:taken], answers)


async def _run(
    judge: _Judge, messages: list[pb.ProcessingRequest], told: list[ResponseFacts]
) -> tuple[int, list[pb.ProcessingResponse]]:
    taken = 0

    async def stream() -> AsyncIterator[pb.ProcessingRequest]:
        nonlocal taken
        for message in messages:
            taken += 1
            yield message

    exchange = Exchange(judge, 5.0, _INSTRUMENTS, BODY_BYTES, told.append)
    answers = [answer async for answer in exchange.answers(stream())]
    return taken, answers


def _messages(source: Bytes) -> Iterator[pb.ProcessingRequest]:
    # A filter shows copies or asks, all along; one that does both in turn is asking.
    copies = (0, 0, 0, 0, 0, 0, 2, 255)[source.number() % 8]
    while source.left:
        kind, flags = source.number(), source.number()
        end = bool(flags & 1)
        message = pb.ProcessingRequest(observability_mode=bool((flags | 1) & copies))
        match kind % 9:
            case 0 | 1:
                message.request_headers.CopyFrom(pb.HttpHeaders(headers=_headers(source), end_of_stream=end))
                mode = _MODES[flags // 4 % len(_MODES)]
                if mode is not None:
                    message.protocol_config.request_body_mode = mode
            case 2 | 3:
                message.request_body.CopyFrom(pb.HttpBody(body=source.take(source.number() * 4), end_of_stream=end))
            case 4:
                message.request_trailers.CopyFrom(pb.HttpTrailers())
            case 5:
                message.response_headers.CopyFrom(pb.HttpHeaders(headers=_headers(source), end_of_stream=end))
            case 6:
                message.response_body.CopyFrom(pb.HttpBody(body=source.take(source.number()), end_of_stream=end))
            case 7:
                message.response_trailers.CopyFrom(pb.HttpTrailers())
            case _:
                pass
        yield message


def _headers(source: Bytes) -> pb.HeaderMap:
    headers = pb.HeaderMap()
    for _ in range(source.number() % 5):
        name = _NAMES[source.number() % len(_NAMES)]
        headers.headers.add(key=name, raw_value=source.take(source.number() % 32))
    return headers


def _check_answers(judge: _Judge, taken: list[pb.ProcessingRequest], answers: list[pb.ProcessingResponse]) -> None:
    if taken and taken[0].observability_mode:
        assert not answers
        return
    deciding = [answer for answer in answers if _decides(answer)]
    # A body that is let through can still be broken off when Envoy sends what it never should.
    assert len(deciding) <= 1 + (len(judge.failures) > 0 and judge.judged > 0)
    assert not any(answer.HasField("immediate_response") for answer in answers[:-1])
    assert sum(not answer.HasField("immediate_response") for answer in deciding) <= 1
    assert all(answer.WhichOneof("response") for answer in answers)
    for answer in answers:
        assert pb.ProcessingResponse.FromString(answer.SerializeToString()) == answer
        assert b"the words of a request" not in answer.SerializeToString()
    _check_decided(judge, taken, answers, deciding)
    _check_lengths(answers)
    _check_leave(judge, deciding)


def _decides(answer: pb.ProcessingResponse) -> bool:
    if answer.WhichOneof("response") == "immediate_response":
        return True
    return any(
        option.header.key == "x-pointsman-cluster"
        for common in (answer.request_headers.response, answer.request_body.response)
        for option in common.header_mutation.set_headers
    )


def _check_decided(
    judge: _Judge,
    taken: list[pb.ProcessingRequest],
    answers: list[pb.ProcessingResponse],
    deciding: list[pb.ProcessingResponse],
) -> None:
    """Whoever was judged, or could not be, is answered; after a refusal nothing follows."""
    assert bool(deciding) == bool(judge.judged or judge.failures)
    kinds = [message.WhichOneof("request") for message in taken]
    if "request_headers" in kinds and taken[kinds.index("request_headers")].request_headers.end_of_stream:
        assert deciding
    bodies = [message.request_body for message in taken if message.HasField("request_body")]
    heads = [message for message in taken if message.HasField("request_headers")]
    in_pieces = heads and heads[0].protocol_config.request_body_mode == pb.ProcessingMode.FULL_DUPLEX_STREAMED
    if any(not in_pieces or body.end_of_stream for body in bodies):
        assert deciding
    if None in kinds or kinds.count("request_headers") > 1:
        assert deciding


def _check_lengths(answers: list[pb.ProcessingResponse]) -> None:
    for answer in answers:
        for common in (answer.request_headers.response, answer.request_body.response):
            lengths = [o for o in common.header_mutation.set_headers if o.header.key == "content-length"]
            whole = common.body_mutation.WhichOneof("mutation") == "body"
            assert [o.header.raw_value for o in lengths] == [b"%d" % len(common.body_mutation.body)] * whole
            assert "content-length" not in common.header_mutation.remove_headers


def _check_leave(judge: _Judge, deciding: list[pb.ProcessingResponse]) -> None:
    """A request goes on to where the judge or its failure outcome has sent it, and only then."""
    allowed = set()
    if judge.judged and judge.outcome in (ROUTED, REWRITTEN):
        allowed.add(b"b")
    if judge.failures and judge.failure == TO_DEFAULT:
        allowed.add(b"default")
    for answer in deciding:
        if answer.HasField("immediate_response"):
            continue
        common = answer.request_headers.response if answer.HasField("request_headers") else answer.request_body.response
        clusters = {o.header.raw_value for o in common.header_mutation.set_headers if "cluster" in o.header.key}
        assert clusters <= allowed, (clusters, allowed)
