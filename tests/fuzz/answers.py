"""Answers of models on their way through the checks, spelled out by bytes: any body, coding, and cut; any order.

The laws are the promises of docs/responses.md: nothing escapes the exchange; what goes on are the bytes that came, in
their order; no client that joins what went on reads what a check refuses; what is held is bounded and given back; and
what becomes of an answer does not depend on how it was cut up.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from types import SimpleNamespace
from typing import Any, Final, cast

from router.extproc.answers.checks import AnswerChecks
from router.extproc.answers.exchange import AnswerExchange
from router.extproc.decoding import BrokenCodingError, Decoding, TooMuchError
from router.extproc.room import Room
from router.extproc.sse import EventSplitter
from router.proto import ext_proc_pb2 as pb
from router.request.content_coding import UnknownCoding, encode, read_codings
from router.request.view import RequestView
from router.signals.base import Observation, observed
from router.telemetry.instruments import Instruments
from tests.extproc.answers.answer_rules import Words, checks
from tests.fuzz.exchanges import Bytes

PATHS: Final = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/chat/completions/chatcmpl-1",
    "/v1/embeddings",
    "/elsewhere",
    None,
)
KINDS: Final = ("application/json", "text/event-stream", "text/plain", "audio/mpeg")
CODINGS: Final = ("", "gzip", "deflate", "br", "zstd", "gzip, br", "snappy", "identity")
CHARS: Final = (0, 11, 40, 2000)
SIZES: Final = (1 << 16, 4096, 300)
SECRET: Final = re.compile(r"sk-[0-9]{8}|sk [0-9]{4} [0-9]{3}")
"""What the check looks for: one word, or several, which may be judged apart."""

SECRET_CHARS: Final = 11
"""Of it; where no fewer are held back, no part of it is out."""


class _Secrets(Words):
    async def observe(self, view: RequestView) -> Observation:
        return observed(any(SECRET.search(span.text) for span in view.texts))


@dataclass(frozen=True, slots=True)
class Given:
    """One answer, and how the policy has it checked."""

    path: str | None
    kind: str
    coding: str
    trailers: bool
    step: int
    chars: int
    size: int
    refuses: bool
    enforced: bool
    cheap: bool
    body: bytes = field(repr=False)

    @property
    def checked(self) -> bool:
        """Whether there is something in it that a model said."""
        return self.path not in ("/v1/embeddings", "/elsewhere")

    def rules(self) -> AnswerChecks:
        return checks(
            words=_Secrets(),
            chars=self.chars,
            size=self.size,
            refuses=self.refuses,
            enforced=self.enforced,
            cheap=self.cheap,
        )


def given(data: bytes) -> Given:
    """Four bytes choose, the others are the body; one choice packs it as its coding says."""
    what, how, flags, step = (*data[:4], 0, 0, 0, 0)[:4]
    body, coding = data[4:], CODINGS[how % len(CODINGS)]
    if how & 8:
        with contextlib.suppress(UnknownCoding):
            body = encode(body, read_codings(coding))
    return Given(
        path=PATHS[what % len(PATHS)],
        kind=KINDS[what // len(PATHS) % len(KINDS)],
        coding=coding,
        trailers=bool(flags & 1),
        step=1 + step,
        chars=CHARS[flags >> 1 & 3],
        size=SIZES[(flags >> 3 & 3) % len(SIZES)],
        refuses=not flags & 32,
        enforced=not flags & 64,
        cheap=not flags & 128,
        body=body,
    )


@dataclass
class _Outcome:
    """What an exchange said, in order, and what it counted."""

    responses: list[pb.ProcessingResponse]
    counted: Counter[str]
    most_held: int

    @property
    def pieces(self) -> list[pb.StreamedBodyResponse]:
        return [
            one.response_body.response.body_mutation.streamed_response
            for one in self.responses
            if one.HasField("response_body")
        ]

    @property
    def immediate(self) -> bool:
        return self.responses[-1].HasField("immediate_response")


class _Room(Room):
    def __init__(self) -> None:
        super().__init__()
        self.most = 0

    def hold(self, size: int) -> None:
        super().hold(size)
        self.most = max(self.most, self.held)


async def _exchanged(rules: AnswerChecks, messages: Iterable[pb.ProcessingRequest]) -> _Outcome:
    counted: Counter[str] = Counter()
    room = _Room()

    def count(_: int, labels: dict[str, str]) -> None:
        counted[labels["outcome"]] += 1

    @contextlib.contextmanager
    def checking() -> Iterator[AnswerChecks]:
        yield rules

    async def stream() -> AsyncIterator[pb.ProcessingRequest]:
        for message in rest:
            yield message

    first, *rest = messages
    instruments = cast("Instruments", SimpleNamespace(responses_checked=SimpleNamespace(add=count)))
    exchange = AnswerExchange(checking, instruments, room)
    responses = [one async for one in exchange.answers(first, stream())]
    assert room.held == 0, "what was held is not given back"
    return _Outcome(responses, counted, room.most)


def _head(one: Given, end: bool = False) -> pb.ProcessingRequest:
    message = pb.ProcessingRequest()
    message.protocol_config.response_body_mode = pb.ProcessingMode.FULL_DUPLEX_STREAMED
    message.response_headers.end_of_stream = end
    for name, value in (("content-type", one.kind), ("content-encoding", one.coding)):
        message.response_headers.headers.headers.add(key=name, raw_value=value.encode())
    fields = message.attributes["envoy.filters.http.ext_proc"].fields
    fields["response.code_details"].string_value = "via_upstream"
    if one.path is not None:
        fields["request.path"].string_value = one.path
    return message


def _body(piece: bytes, end: bool) -> pb.ProcessingRequest:
    return pb.ProcessingRequest(response_body=pb.HttpBody(body=piece, end_of_stream=end))


TRAILERS: Final = pb.ProcessingRequest(response_trailers=pb.HttpTrailers())


def _messages(one: Given, sizes: Iterable[int]) -> Iterator[pb.ProcessingRequest]:
    """The answer, cut into pieces of these sizes over and over."""
    yield _head(one)
    start = 0
    for size in cycle(sizes):
        piece, start = one.body[start : start + size], start + size
        last = start >= len(one.body)
        yield _body(piece, last and not one.trailers)
        if last:
            break
    if one.trailers:
        yield TRAILERS


def check_answer(data: bytes) -> None:
    """However it is cut, an answer goes on as it came or is ended by its API's rules, and none is unchecked."""
    one = given(data)
    cuts = ((max(len(one.body), 1),), (one.step,), (1, 64, 7, 300))
    asyncio.run(_check_cuts(one, cuts))


async def _check_cuts(one: Given, cuts: Iterable[tuple[int, ...]]) -> None:
    plain, holds = _plain(one)
    found = []
    for sizes in cuts:
        outcome = await _exchanged(one.rules(), _messages(one, sizes))
        _check_shape(one, outcome)
        # The second half of a line end goes on with the next event where it comes in a piece of its own.
        found.append((outcome.counted, _check_bytes(one, plain, outcome).removesuffix(b"\n")))
    if holds:
        # A coding that breaks is noticed with the piece that it breaks in, and what went before is lost with that.
        assert all(other == found[0] for other in found), found


def _plain(one: Given) -> tuple[bytes, bool]:
    """What clients may be sent at most, and whether its coding holds."""
    if one.kind != "text/event-stream" or not one.checked:
        return one.body, True
    out = bytearray()
    try:
        decoding = Decoding(one.coding)
        for start in range(len(one.body)):
            for piece in decoding.feed(one.body[start : start + 1]):
                out += piece
    except UnknownCoding:
        return one.body, True
    except (BrokenCodingError, TooMuchError):
        return bytes(out), False
    return bytes(out), decoding.whole


def _check_shape(one: Given, outcome: _Outcome) -> None:
    """Headers once and first, one end, and nothing behind it."""
    assert not outcome.counted["fault"], "an exception"
    assert sum(outcome.counted.values()) <= 1, outcome.counted
    assert outcome.most_held <= 2 * one.size, outcome.most_held
    kinds = [response.WhichOneof("response") for response in outcome.responses]
    if outcome.immediate:
        assert kinds == ["immediate_response"], kinds
        assert one.enforced
        return
    assert kinds[0] == "response_headers"
    assert kinds.count("response_headers") == 1
    ends = [piece.end_of_stream for piece in outcome.pieces]
    if kinds[-1] == "response_trailers":
        assert one.trailers
        assert set(kinds[1:-1]) <= {"response_body"}
        assert not any(ends)
    else:
        assert set(kinds[1:]) == {"response_body"}
        assert ends == [False] * (len(ends) - 1) + [True]


def _check_bytes(one: Given, plain: bytes, outcome: _Outcome) -> bytes:
    """What of the answer went on."""
    if outcome.immediate:
        return b""
    pieces = [piece.body for piece in outcome.pieces]
    went = b"".join(pieces)
    if outcome.counted["refused"] + outcome.counted["unread"] == 0 or went == plain:
        assert went == plain, "other bytes than came"
    else:
        # It was ended by the last piece, which is not the model's.
        went = b"".join(pieces[:-1])
        assert plain.startswith(went), "other bytes than came"
    unread = outcome.counted["unread"] > 0 and not one.refuses
    if one.enforced and one.checked and not unread and one.chars >= SECRET_CHARS:
        _check_client(one, plain, went)
    return went


def _check_client(one: Given, plain: bytes, went: bytes) -> None:
    """A client that joins what it was sent reads nothing that the check looks for, nor how it begins."""
    if one.kind != "text/event-stream":
        texts = _texts(_read(_undone(one.coding, went)))
        assert not any(SECRET.search(text) for text in texts), "a client was sent what a check refuses"
        return
    sent = _joined(went, beyond_ends=True)
    assert not any(SECRET.search(text) for text in sent.values()), "a client was sent what a check refuses"
    for key, text in _joined(plain, beyond_ends=False).items():
        found = SECRET.search(text)
        assert found is None or len(sent[key]) <= found.start(), "a client was sent how it begins"


def _joined(stream: bytes, beyond_ends: bool) -> dict[tuple[object, ...], str]:
    """The texts of a stream as the vendors' clients join them; at most up to where the first of them ends."""
    joined: dict[tuple[object, ...], str] = defaultdict(str)
    for event in EventSplitter().feed(stream + b"\n\n"):
        read = _read(event)
        if read is None:
            # Those clients end there.
            break
        for key, text in _deltas(read):
            joined[key] += text
        if not beyond_ends and _ends(read):
            break
    return joined


def _ends(event: Any) -> bool:
    """Whether more of a text would be out of order behind this event."""
    if not isinstance(event, dict):
        return False
    kind, choices = event.get("type"), event.get("choices")
    if isinstance(kind, str) and kind.endswith(("_stop", ".done")):
        return True
    return isinstance(choices, list) and any(isinstance(one, dict) and one.get("finish_reason") for one in choices)


def _undone(coding: str, body: bytes) -> bytes:
    try:
        return b"".join(Decoding(coding).feed(body))
    except (UnknownCoding, BrokenCodingError, TooMuchError):
        return b""


def _read(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _deltas(event: Any) -> Iterator[tuple[tuple[object, ...], str]]:
    """What the vendors' clients add to a text, by the text that it belongs to."""
    match event:
        case {"type": "response.output_text.delta", "output_index": int(item), "content_index": int(part)} if (
            isinstance(event.get("delta"), str) and bool not in (type(item), type(part))
        ):
            yield (item, part), event["delta"]
        case {"type": "content_block_delta", "index": int(index), "delta": {"type": "text_delta", "text": str(text)}}:
            if type(index) is int:
                yield (index,), text
        case {"choices": list(choices)} if "type" not in event:
            for choice in choices:
                match choice:
                    case {"index": int(index), "delta": {"content": str(text)}} if type(index) is int:
                        yield (index, "content"), text
                    case {"index": int(index), "text": str(text)} if type(index) is int:
                        yield (index, "text"), text
        case _:
            pass


def _texts(answer: Any) -> Iterator[str]:
    """What the vendors' clients show of a whole answer."""
    match answer:
        case {"choices": list(choices)}:
            for choice in choices:
                match choice:
                    case {"message": {"content": str(text)}} | {"text": str(text)}:
                        yield text
        case {"content": list(blocks)}:
            yield from (block["text"] for block in blocks if _is_text(block))
        case {"output": list(items)}:
            for item in items:
                parts = item.get("content") if isinstance(item, dict) else None
                yield from (part["text"] for part in parts if _is_text(part)) if isinstance(parts, list) else ()
        case _:
            pass


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(block.get("text"), str)


def check_answer_order(data: bytes) -> None:
    """Messages about an answer in any order, and an end at any of them: none escapes, and nothing goes on unchecked."""
    source = Bytes(data)
    one = given(bytes((source.number(), source.number(), source.number(), 0)))
    asyncio.run(_check_order(one, list(_any_messages(one, source))))


async def _check_order(one: Given, messages: list[pb.ProcessingRequest]) -> None:
    if not messages:
        return
    outcome = await _exchanged(one.rules(), messages)
    kinds = [response.WhichOneof("response") for response in outcome.responses]
    assert all(kinds)
    assert "immediate_response" not in kinds[:-1]
    assert kinds.count("response_headers") <= 1
    ends = [piece.end_of_stream for piece in outcome.pieces]
    assert not any(ends[:-1])
    if any(ends):
        assert kinds[-1] == "response_body", "something behind the end"
    if outcome.counted["fault"]:
        assert kinds[-1] == "immediate_response" or ends[-1], "a fault does not end the answer"
    came = b"".join(message.response_body.body for message in messages)
    pieces = [piece.body for piece in outcome.pieces]
    if one.kind != "text/event-stream" or not _codings(one.coding):
        went = b"".join(pieces)
        assert came.startswith(went) or came.startswith(b"".join(pieces[:-1])), "other bytes than came"


def _codings(coding: str) -> tuple[str, ...]:
    """Those that are undone; none where they are not known."""
    try:
        return read_codings(coding)
    except UnknownCoding:
        return ()


def _any_messages(one: Given, source: Bytes) -> Iterator[pb.ProcessingRequest]:
    while source.left:
        kind, flags = source.number(), source.number()
        end = bool(flags & 1)
        match kind % 8:
            case 0 | 1:
                yield _head(one, end and bool(flags & 2))
            case 2 | 3 | 4:
                yield _body(source.take(source.number()), end)
            case 5:
                yield TRAILERS
            case 6:
                yield pb.ProcessingRequest(request_headers=pb.HttpHeaders(end_of_stream=end))
            case _:
                yield pb.ProcessingRequest()
