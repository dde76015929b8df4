"""Messages in, messages out: what each sequence that an Envoy can send is answered with, exactly."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from router.actions.edits import Edits
from router.extproc.exchange import LAST_RESORT, Exchange, FailureKind
from router.extproc.head import RequestHead
from router.proto import ext_proc_pb2 as pb
from router.request.reply import Reply
from router.telemetry.instruments import Instruments, create_instruments

SECRET = "my passport number is 12345"
REFUSAL = Reply(403, "application/json", b'{"error":{}}', (("x-pointsman-decision", "block"),))
ROUTED = Edits((("x-pointsman-cluster", "b"),))
REWRITTEN = Edits((("x-pointsman-cluster", "b"),), body=b'{"model":"other"}')
DEFAULT = Edits((("x-pointsman-cluster", "default"),))
CLOSED = Reply(503, "application/json", b'{"error":{"code":"not_judged"}}')

Outcome = Edits | Reply | BaseException | Callable[[], object]


@dataclass
class FakeJudge:
    """Gives its outcome, raises it, or awaits what it returns; `calls` says what it was asked."""

    outcome: Outcome = ROUTED
    failure: Edits | Reply | Exception = CLOSED
    calls: list[tuple[object, ...]] = field(default_factory=list)
    reads: bool = True

    def reads_body(self, head: RequestHead) -> bool:
        return self.reads

    async def judge_headers(self, head: RequestHead) -> Edits | Reply:
        self.calls.append(("headers", head.method))
        return await self._give()

    async def judge(self, head: RequestHead, body: bytes) -> Edits | Reply:
        self.calls.append(("body", head.method, body))
        return await self._give()

    def failed(self, head: RequestHead | None, kind: FailureKind) -> Edits | Reply:
        self.calls.append(("failed", kind, head is not None))
        if isinstance(self.failure, Exception):
            raise self.failure
        return self.failure

    async def _give(self) -> Edits | Reply:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        if callable(self.outcome):
            return await self.outcome()
        return self.outcome


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def instruments(reader: InMemoryMetricReader) -> Instruments:
    return create_instruments(MeterProvider([reader]).get_meter("test"))


def counted(reader: InMemoryMetricReader) -> dict[tuple[str, str], int]:
    """Counts by the instrument's last word and the kind."""
    data = reader.get_metrics_data()
    metrics = data.resource_metrics[0].scope_metrics[0].metrics if data else []
    return {
        (metric.name.rpartition(".")[2], str(point.attributes.get("kind", ""))): point.value
        for metric in metrics
        for point in metric.data.data_points
    }


def headers(*pairs: tuple[str, str], end: bool = False, mode: int | None = None) -> pb.ProcessingRequest:
    """A request's headers, a POST to chat completions; `mode` is the body mode that Envoy says it is in."""
    named = ((":method", "POST"), (":path", "/v1/chat/completions"), *pairs)
    message = pb.ProcessingRequest(
        request_headers=pb.HttpHeaders(
            headers=pb.HeaderMap(headers=[pb.HeaderValue(key=k, raw_value=v.encode()) for k, v in named]),
            end_of_stream=end,
        )
    )
    if mode is not None:
        message.protocol_config.request_body_mode = mode
    return message


def body(data: bytes, end: bool = True) -> pb.ProcessingRequest:
    return pb.ProcessingRequest(request_body=pb.HttpBody(body=data, end_of_stream=end))


REQUEST_TRAILERS = pb.ProcessingRequest(request_trailers=pb.HttpTrailers())
RESPONSE_HEADERS = pb.ProcessingRequest(response_headers=pb.HttpHeaders())
RESPONSE_BODY = pb.ProcessingRequest(response_body=pb.HttpBody(body=b"x"))
RESPONSE_TRAILERS = pb.ProcessingRequest(response_trailers=pb.HttpTrailers())
EMPTY = pb.ProcessingRequest()


def as_copy(message: pb.ProcessingRequest) -> pb.ProcessingRequest:
    """The message as Envoy sends it in its observability mode."""
    copy = pb.ProcessingRequest()
    copy.CopyFrom(message)
    copy.observability_mode = True
    return copy


WAIT = pb.ProcessingResponse(request_headers=pb.HeadersResponse())


def set_header(name: str, value: str) -> pb.HeaderValueOption:
    return pb.HeaderValueOption(
        header=pb.HeaderValue(key=name, raw_value=value.encode()),
        append_action=pb.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD,
    )


def changes(cluster: str, new_body: bytes | None = None, remove: Sequence[str] = ()) -> pb.CommonResponse:
    """What a decision for this cluster changes."""
    mutation = pb.HeaderMutation(set_headers=[set_header("x-pointsman-cluster", cluster)], remove_headers=remove)
    common = pb.CommonResponse(header_mutation=mutation, clear_route_cache=True)
    if new_body is not None:
        mutation.set_headers.append(set_header("content-length", str(len(new_body))))
        common = pb.CommonResponse(
            header_mutation=mutation, clear_route_cache=True, body_mutation=pb.BodyMutation(body=new_body)
        )
    return common


def on_headers(common: pb.CommonResponse) -> pb.ProcessingResponse:
    return pb.ProcessingResponse(request_headers=pb.HeadersResponse(response=common))


def on_body(common: pb.CommonResponse) -> pb.ProcessingResponse:
    return pb.ProcessingResponse(request_body=pb.BodyResponse(response=common))


def answered(reply: Reply) -> pb.ProcessingResponse:
    named = (("content-type", reply.content_type), *reply.headers)
    return pb.ProcessingResponse(
        immediate_response=pb.ImmediateResponse(
            status=pb.HttpStatus(code=reply.status),
            headers=pb.HeaderMutation(set_headers=[set_header(*pair) for pair in named]),
            body=reply.body,
            details="pointsman",
        )
    )


async def stream(messages: Sequence[pb.ProcessingRequest | Exception]) -> AsyncIterator[pb.ProcessingRequest]:
    for message in messages:
        if isinstance(message, Exception):
            raise message
        yield message


BODY_BYTES = 200_000


def exchange(judge: FakeJudge, deadline: float, instruments: Instruments) -> Exchange:
    return Exchange(judge, deadline, instruments, BODY_BYTES)


async def run(
    judge: FakeJudge,
    messages: Sequence[pb.ProcessingRequest | Exception],
    instruments: Instruments,
    deadline: float = 30.0,
) -> list[pb.ProcessingResponse]:
    """Every answer; fails if one would not survive the wire."""
    answers = [answer async for answer in exchange(judge, deadline, instruments).answers(stream(messages))]
    assert [pb.ProcessingResponse.FromString(answer.SerializeToString()) for answer in answers] == answers
    return answers


def piece(data: bytes, end: bool = False) -> pb.ProcessingResponse:
    """A piece of a body on its way on."""
    sent = pb.BodyMutation(streamed_response=pb.StreamedBodyResponse(body=data, end_of_stream=end))
    return pb.ProcessingResponse(request_body=pb.BodyResponse(response=pb.CommonResponse(body_mutation=sent)))


BUFFERED, STREAMED = pb.ProcessingMode.BUFFERED, pb.ProcessingMode.STREAMED
DUPLEX = pb.ProcessingMode.FULL_DUPLEX_STREAMED
TRAILERS_GO_ON = pb.ProcessingResponse(request_trailers=pb.TrailersResponse())
TOLD = Edits((("x-pointsman-cluster", "b"),), metadata=(("decision", "block"), ("model", "m")))
JUDGED_HEADERS = ("headers", "POST")

SEQUENCES = {
    "headers only": (FakeJudge(), [headers(end=True)], [on_headers(changes("b"))], [JUDGED_HEADERS]),
    "headers only, whatever the body mode is": (
        FakeJudge(),
        [headers(end=True, mode=STREAMED)],
        [on_headers(changes("b"))],
        [JUDGED_HEADERS],
    ),
    "headers only, refused": (FakeJudge(REFUSAL), [headers(end=True)], [answered(REFUSAL)], [JUDGED_HEADERS]),
    "body": (
        FakeJudge(),
        [headers(mode=BUFFERED), body(b"{}")],
        [WAIT, on_body(changes("b"))],
        [("body", "POST", b"{}")],
    ),
    "body, from an Envoy that does not say its mode": (
        FakeJudge(),
        [headers(), body(b"{}")],
        [WAIT, on_body(changes("b"))],
        [("body", "POST", b"{}")],
    ),
    "empty body": (FakeJudge(), [headers(), body(b"")], [WAIT, on_body(changes("b"))], [("body", "POST", b"")]),
    "body replaced": (
        FakeJudge(REWRITTEN),
        [headers(("content-length", "2")), body(b"{}")],
        [WAIT, on_body(changes("b", b'{"model":"other"}'))],
        [("body", "POST", b"{}")],
    ),
    "body replaced by nothing": (
        FakeJudge(Edits((("x-pointsman-cluster", "b"),), body=b"")),
        [headers(), body(b"{}")],
        [WAIT, on_body(changes("b", b""))],
        [("body", "POST", b"{}")],
    ),
    "body, refused": (
        FakeJudge(REFUSAL),
        [headers(), body(b"{}")],
        [WAIT, answered(REFUSAL)],
        [("body", "POST", b"{}")],
    ),
    "body that says more will come, as with trailers": (
        FakeJudge(),
        [headers(), body(b"{}", end=False), REQUEST_TRAILERS],
        [WAIT, on_body(changes("b"))],
        [("body", "POST", b"{}")],
    ),
    "second piece of a body is never read": (
        FakeJudge(),
        [headers(), body(b"{}", end=False), body(b"more")],
        [WAIT, on_body(changes("b"))],
        [("body", "POST", b"{}")],
    ),
    "spoofed headers are removed, unless they are overwritten": (
        FakeJudge(),
        [headers(("x-pointsman-cluster", "a"), ("x-pointsman-model", "m"), ("x-other", "1")), body(b"{}")],
        [WAIT, on_body(changes("b", remove=["x-pointsman-model"]))],
        [("body", "POST", b"{}")],
    ),
    "trailers in place of the body": (
        FakeJudge(REFUSAL),
        [headers(), REQUEST_TRAILERS],
        [WAIT, answered(REFUSAL)],
        [("body", "POST", b"")],
    ),
    "trailers in place of the body let nothing through, since nothing can route it any more": (
        FakeJudge(failure=DEFAULT),
        [headers(), REQUEST_TRAILERS],
        [WAIT, answered(LAST_RESORT)],
        [("body", "POST", b""), ("failed", "exception", True)],
    ),
    "trailers before all else are waved on": (
        FakeJudge(),
        [REQUEST_TRAILERS],
        [TRAILERS_GO_ON],
        [],
    ),
    "messages about the response are waved on": (
        FakeJudge(),
        [RESPONSE_HEADERS, RESPONSE_BODY, RESPONSE_TRAILERS],
        [
            pb.ProcessingResponse(response_headers=pb.HeadersResponse()),
            pb.ProcessingResponse(response_body=pb.BodyResponse()),
            pb.ProcessingResponse(response_trailers=pb.TrailersResponse()),
        ],
        [],
    ),
    "message about the response in between": (
        FakeJudge(),
        [headers(), RESPONSE_HEADERS, body(b"{}")],
        [WAIT, pb.ProcessingResponse(response_headers=pb.HeadersResponse()), on_body(changes("b"))],
        [("body", "POST", b"{}")],
    ),
    "no messages": (FakeJudge(), [], [], []),
    "client gone before its body": (FakeJudge(), [headers()], [WAIT], []),
    "empty message": (FakeJudge(), [EMPTY], [answered(CLOSED)], [("failed", "unknown_message", False)]),
    "empty message, open": (
        FakeJudge(failure=DEFAULT),
        [EMPTY],
        [on_headers(changes("default"))],
        [("failed", "unknown_message", False)],
    ),
    "empty message in place of the body": (
        FakeJudge(failure=DEFAULT),
        [headers(), EMPTY],
        [WAIT, on_body(changes("default"))],
        [("failed", "unknown_message", True)],
    ),
    "body before headers": (
        FakeJudge(failure=DEFAULT),
        [body(b"{}")],
        [on_body(changes("default"))],
        [("failed", "body_before_headers", False)],
    ),
    "headers twice": (
        FakeJudge(),
        [headers(), headers()],
        [WAIT, answered(CLOSED)],
        [("failed", "second_headers", True)],
    ),
    "headers twice, open": (
        FakeJudge(failure=DEFAULT),
        [headers(), headers()],
        [WAIT, on_headers(changes("default"))],
        [("failed", "second_headers", True)],
    ),
    "Envoy would show the body in pieces": (
        FakeJudge(),
        [headers(mode=STREAMED), body(b"{}")],
        [answered(CLOSED)],
        [("failed", "body_mode", True)],
    ),
    "Envoy would not show the body": (
        FakeJudge(failure=DEFAULT),
        [headers(mode=pb.ProcessingMode.NONE)],
        [on_headers(changes("default"))],
        [("failed", "body_mode", True)],
    ),
    "judge raises": (
        FakeJudge(ValueError(SECRET)),
        [headers(), body(b"{}")],
        [WAIT, answered(CLOSED)],
        [("body", "POST", b"{}"), ("failed", "exception", True)],
    ),
    "judge raises, open": (
        FakeJudge(ValueError(SECRET), DEFAULT),
        [headers(("x-pointsman-model", "m")), body(b"{}")],
        [WAIT, on_body(changes("default", remove=["x-pointsman-model"]))],
        [("body", "POST", b"{}"), ("failed", "exception", True)],
    ),
    "judge raises over headers": (
        FakeJudge(ValueError(SECRET), DEFAULT),
        [headers(end=True)],
        [on_headers(changes("default"))],
        [JUDGED_HEADERS, ("failed", "exception", True)],
    ),
    "judge raises TimeoutError of its own": (
        FakeJudge(TimeoutError()),
        [headers(), body(b"{}")],
        [WAIT, answered(CLOSED)],
        [("body", "POST", b"{}"), ("failed", "exception", True)],
    ),
    "work that the judge shares is cancelled under it": (
        FakeJudge(asyncio.CancelledError()),
        [headers(), body(b"{}")],
        [WAIT, answered(CLOSED)],
        [("body", "POST", b"{}"), ("failed", "exception", True)],
    ),
    "judge gives a body to a request that has none": (
        FakeJudge(REWRITTEN),
        [headers(end=True)],
        [answered(CLOSED)],
        [JUDGED_HEADERS, ("failed", "exception", True)],
    ),
    "judge sets a length of its own": (
        FakeJudge(Edits((("Content-Length", "7"),))),
        [headers(), body(b"{}")],
        [WAIT, answered(CLOSED)],
        [("body", "POST", b"{}"), ("failed", "exception", True)],
    ),
    "failure outcome fails too": (
        FakeJudge(ValueError(SECRET), ValueError(SECRET)),
        [headers(), body(b"{}")],
        [WAIT, answered(LAST_RESORT)],
        [("body", "POST", b"{}"), ("failed", "exception", True)],
    ),
    "failure outcome cannot be sent": (
        FakeJudge(ValueError(SECRET), REWRITTEN),
        [headers(end=True)],
        [answered(LAST_RESORT)],
        [JUDGED_HEADERS, ("failed", "exception", True)],
    ),
    "body in pieces": (
        FakeJudge(),
        [headers(mode=DUPLEX), body(b"{", end=False), body(b"}")],
        [on_headers(changes("b")), piece(b"{}", end=True)],
        [("body", "POST", b"{}")],
    ),
    "body in one piece, replaced by a long one": (
        FakeJudge(Edits((("x-pointsman-cluster", "b"),), body=b"x" * 65537)),
        [headers(("content-length", "2"), mode=DUPLEX), body(b"{}")],
        [on_headers(changes("b")), piece(b"x" * 65536), piece(b"x", end=True)],
        [("body", "POST", b"{}")],
    ),
    "body in pieces, replaced by nothing": (
        FakeJudge(Edits((("x-pointsman-cluster", "b"),), body=b"")),
        [headers(mode=DUPLEX), body(b"{}")],
        [on_headers(changes("b")), piece(b"", end=True)],
        [("body", "POST", b"{}")],
    ),
    "body in pieces that ends with an empty one": (
        FakeJudge(),
        [headers(mode=DUPLEX), body(b"{}", end=False), body(b"")],
        [on_headers(changes("b")), piece(b"{}", end=True)],
        [("body", "POST", b"{}")],
    ),
    "body in pieces, with trailers": (
        FakeJudge(),
        [headers(mode=DUPLEX), body(b"{}", end=False), REQUEST_TRAILERS],
        [on_headers(changes("b")), piece(b"{}"), TRAILERS_GO_ON],
        [("body", "POST", b"{}")],
    ),
    "no body but trailers, in pieces": (
        FakeJudge(),
        [headers(mode=DUPLEX), REQUEST_TRAILERS],
        [on_headers(changes("b")), TRAILERS_GO_ON],
        [("body", "POST", b"")],
    ),
    "body in pieces, refused": (
        FakeJudge(REFUSAL),
        [headers(mode=DUPLEX), body(b"{}", end=False), REQUEST_TRAILERS],
        [answered(REFUSAL)],
        [("body", "POST", b"{}")],
    ),
    "no body, where it would come in pieces": (
        FakeJudge(),
        [headers(end=True, mode=DUPLEX)],
        [on_headers(changes("b"))],
        [JUDGED_HEADERS],
    ),
    "judge raises over a body in pieces, open": (
        FakeJudge(ValueError(SECRET), DEFAULT),
        [headers(mode=DUPLEX), body(b"{}", end=False), REQUEST_TRAILERS],
        [on_headers(changes("default")), piece(b"{}"), TRAILERS_GO_ON],
        [("body", "POST", b"{}"), ("failed", "exception", True)],
    ),
    "as many pieces as allowed": (
        FakeJudge(),
        [headers(mode=DUPLEX), body(b"x" * 199_999, end=False), body(b"x")],
        [on_headers(changes("b")), *[piece(b"x" * 65536)] * 3, piece(b"x" * 3392, end=True)],
        [("body", "POST", b"x" * 200_000)],
    ),
    "too many pieces": (
        FakeJudge(),
        [headers(mode=DUPLEX), body(b"x" * 200_000, end=False), body(b"x")],
        [answered(CLOSED)],
        [("failed", "body_too_large", True)],
    ),
    "too many pieces to go on, open": (
        FakeJudge(failure=DEFAULT),
        [headers(mode=DUPLEX), body(b"x" * 200_001, end=False)],
        [answered(LAST_RESORT)],
        [("failed", "body_too_large", True)],
    ),
    "headers twice between pieces, open": (
        FakeJudge(failure=DEFAULT),
        [headers(mode=DUPLEX), body(b"{", end=False), headers(mode=DUPLEX)],
        [answered(LAST_RESORT)],
        [("failed", "second_headers", True)],
    ),
    "client gone between pieces": (FakeJudge(), [headers(mode=DUPLEX), body(b"{", end=False)], [], []),
    "body that is not read": (
        FakeJudge(reads=False),
        [headers(mode=BUFFERED), body(b"{}")],
        [on_headers(changes("b"))],
        [JUDGED_HEADERS],
    ),
    "body that is not read is not missed where it is not shown": (
        FakeJudge(reads=False),
        [headers(mode=pb.ProcessingMode.NONE)],
        [on_headers(changes("b"))],
        [JUDGED_HEADERS],
    ),
    "body that is not read, refused": (
        FakeJudge(REFUSAL, reads=False),
        [headers(mode=DUPLEX), body(b"{}")],
        [answered(REFUSAL)],
        [JUDGED_HEADERS],
    ),
    "pieces that are not read go on at once, however many": (
        FakeJudge(reads=False),
        [headers(mode=DUPLEX), body(b"x" * 200_001, end=False), body(b"", end=False), body(b"{}"), EMPTY],
        [on_headers(changes("b")), piece(b"x" * 200_001), piece(b""), piece(b"{}", end=True)],
        [JUDGED_HEADERS],
    ),
    "pieces that are not read, with trailers": (
        FakeJudge(reads=False),
        [headers(mode=DUPLEX), body(b"{}", end=False), REQUEST_TRAILERS, EMPTY],
        [on_headers(changes("b")), piece(b"{}"), TRAILERS_GO_ON],
        [JUDGED_HEADERS],
    ),
    "copies are judged and not answered": (
        FakeJudge(REFUSAL),
        [as_copy(headers()), as_copy(body(b"{", end=False)), as_copy(body(b"}"))],
        [],
        [("body", "POST", b"{}")],
    ),
    "copies that cannot be judged are not answered": (
        FakeJudge(ValueError(SECRET)),
        [as_copy(headers()), as_copy(body(b"{}"))],
        [],
        [("body", "POST", b"{}"), ("failed", "exception", True)],
    ),
    "copies end with an error": (
        FakeJudge(),
        [as_copy(headers()), ValueError(SECRET)],
        [],
        [],
    ),
    "stream cannot be read": (
        FakeJudge(),
        [headers(), ValueError(SECRET)],
        [WAIT, answered(CLOSED)],
        [("failed", "unreadable_stream", True)],
    ),
}


@pytest.mark.parametrize("name", SEQUENCES)
async def test_sequence_is_answered_exactly(
    name: str, instruments: Instruments, caplog: pytest.LogCaptureFixture
) -> None:
    judge, messages, expected, calls = SEQUENCES[name]
    judge.calls.clear()
    assert await run(judge, messages, instruments) == expected
    assert judge.calls == calls
    assert "passport" not in " ".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)


@pytest.mark.parametrize("failure", [CLOSED, DEFAULT])
async def test_judge_that_hangs_is_given_up_at_the_deadline(
    failure: Edits | Reply, instruments: Instruments, reader: InMemoryMetricReader
) -> None:
    freed = asyncio.Event()

    async def hang() -> Edits:
        try:
            await asyncio.Event().wait()
        finally:
            freed.set()
        raise AssertionError

    judge = FakeJudge(hang, failure)
    answers = await run(judge, [headers(), body(b"{}")], instruments, deadline=0.01)
    assert answers == [WAIT, answered(CLOSED) if failure is CLOSED else on_body(changes("default"))]
    assert judge.calls[-1] == ("failed", "deadline", True)
    assert freed.is_set()
    assert counted(reader) == {("failures", "deadline"): 1}


async def test_client_that_leaves_frees_the_work_and_gets_no_answer(
    instruments: Instruments, reader: InMemoryMetricReader
) -> None:
    working, freed = asyncio.Event(), asyncio.Event()

    async def work() -> Edits:
        working.set()
        try:
            await asyncio.Event().wait()
        finally:
            freed.set()
        raise AssertionError

    judge = FakeJudge(work)
    task = asyncio.create_task(run(judge, [headers(), body(b"{}")], instruments))
    await working.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert freed.is_set()
    assert [call[0] for call in judge.calls] == ["body"]
    assert counted(reader) == {("abandoned", ""): 1}


async def test_stream_ends_with_the_decision_even_if_messages_go_on(instruments: Instruments) -> None:
    async def endless() -> AsyncIterator[pb.ProcessingRequest]:
        yield headers(end=True)
        await asyncio.Event().wait()

    async with asyncio.timeout(30):
        answers = [answer async for answer in exchange(FakeJudge(), 30.0, instruments).answers(endless())]
    assert answers == [on_headers(changes("b"))]


async def test_failures_and_odd_messages_are_counted_by_kind(
    instruments: Instruments, reader: InMemoryMetricReader
) -> None:
    await run(FakeJudge(ValueError()), [headers(end=True)], instruments)
    await run(FakeJudge(), [EMPTY], instruments)
    await run(FakeJudge(), [REQUEST_TRAILERS, headers(), RESPONSE_HEADERS], instruments)
    await run(FakeJudge(), [headers(), body(b"{}")], instruments)
    assert counted(reader) == {
        ("failures", "exception"): 1,
        ("failures", "unknown_message"): 1,
        ("unexpected_messages", "response_headers"): 1,
        ("unexpected_messages", "request_trailers"): 1,
        ("abandoned", ""): 1,
    }


async def test_log_names_the_type_and_place_of_an_error_and_not_its_text(
    instruments: Instruments, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        await run(FakeJudge(ValueError(SECRET)), [headers(end=True)], instruments)
    (record,) = caplog.records
    assert record.getMessage() == "request not judged"
    fields = record.__dict__["fields"]
    assert (fields["kind"], fields["error_type"]) == ("exception", "ValueError")
    assert fields["at"].startswith(f"{__name__}:")
    assert record.exc_info is None


async def test_what_access_logs_are_told_goes_with_every_kind_of_decision(instruments: Instruments) -> None:
    whole = await run(FakeJudge(TOLD), [headers(), body(b"{}")], instruments)
    pieces = await run(FakeJudge(TOLD), [headers(mode=DUPLEX), body(b"{}")], instruments)
    without = await run(FakeJudge(TOLD), [headers(end=True)], instruments)
    refused = await run(FakeJudge(replace(REFUSAL, metadata=TOLD.metadata)), [headers(end=True)], instruments)
    for answer in (whole[1], pieces[0], without[0], refused[0]):
        assert dict(answer.dynamic_metadata["pointsman"]) == {"decision": "block", "model": "m"}
    assert not pieces[1].HasField("dynamic_metadata")


async def test_client_that_leaves_while_its_copy_is_judged_frees_the_work(instruments: Instruments) -> None:
    working, freed = asyncio.Event(), asyncio.Event()

    async def work() -> Edits:
        working.set()
        try:
            await asyncio.Event().wait()
        finally:
            freed.set()
        raise AssertionError

    copies = [as_copy(headers()), as_copy(body(b"{}"))]
    task = asyncio.create_task(run(FakeJudge(work), copies, instruments))
    await working.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(30):
        await freed.wait()


@given(st.binary(max_size=300_000), st.data(), st.booleans(), st.sampled_from([None, b"", b"new" * 30_000]))
@settings(max_examples=60)
async def test_any_cut_of_a_body_gives_the_same_answer(
    whole: bytes, data: st.DataObject, trailers: bool, replacement: bytes | None
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    parts = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    shown = [body(part, end=False) for part in parts]
    shown = [*shown, REQUEST_TRAILERS] if trailers else [*shown[:-1], body(parts[-1])]
    judge = FakeJudge(Edits((("x-pointsman-cluster", "b"),), body=replacement))
    answers = await run(judge, [headers(mode=DUPLEX), *shown], create_instruments())
    if len(whole) > BODY_BYTES:
        assert judge.calls == [("failed", "body_too_large", True)]
        assert answers == [answered(CLOSED)]
        return
    assert judge.calls == [("body", "POST", whole)]
    first, *pieces = answers
    assert first == on_headers(changes("b"))
    if trailers:
        assert pieces.pop() == TRAILERS_GO_ON
    sent = [answer.request_body.response.body_mutation.streamed_response for answer in pieces]
    assert b"".join(one.body for one in sent) == (whole if replacement is None else replacement)
    assert [one.end_of_stream for one in sent] == [not trailers and one is sent[-1] for one in sent]
    assert all(len(one.body) <= 65536 for one in sent)


KINDS = [headers(), headers(end=True), headers(mode=STREAMED), body(b"{}"), body(b""), body(b"{", end=False)]
KINDS += [REQUEST_TRAILERS, RESPONSE_HEADERS, RESPONSE_BODY, RESPONSE_TRAILERS, EMPTY]


@given(
    st.lists(st.sampled_from(KINDS), max_size=6),
    st.sampled_from([ROUTED, REWRITTEN, REFUSAL, ValueError()]),
    st.sampled_from([CLOSED, DEFAULT]),
)
async def test_every_message_is_answered_in_kind_until_one_decides(
    messages: list[pb.ProcessingRequest], outcome: Outcome, failure: Edits | Reply
) -> None:
    answers = await run(FakeJudge(outcome, failure), messages, create_instruments())
    decides = [
        answer.HasField("immediate_response") or b"x-pointsman" in answer.SerializeToString() for answer in answers
    ]
    assert not any(decides[:-1])
    assert len(answers) == len(messages) or decides[-1]
    for message, answer in zip(messages, answers, strict=False):
        kind = answer.WhichOneof("response")
        if kind != "immediate_response" and message != EMPTY:
            assert kind == message.WhichOneof("request")


IN_PIECES = [
    headers(mode=DUPLEX),
    headers(end=True, mode=DUPLEX),
    body(b"{}"),
    body(b"{", end=False),
    body(b"x" * 150_000),
]
IN_PIECES += [body(b"x" * 150_000, end=False), REQUEST_TRAILERS, RESPONSE_HEADERS, RESPONSE_BODY, EMPTY]


@given(
    st.lists(st.sampled_from(IN_PIECES), max_size=6),
    st.sampled_from([ROUTED, REWRITTEN, REFUSAL, ValueError()]),
    st.sampled_from([CLOSED, DEFAULT, ValueError()]),
    st.booleans(),
    st.booleans(),
)
async def test_whatever_comes_in_pieces_is_decided_once_and_every_byte_let_through_was_there(
    messages: list[pb.ProcessingRequest],
    outcome: Outcome,
    failure: Edits | Reply | Exception,
    reads: bool,
    whole_first: bool,
) -> None:
    messages = [headers(mode=DUPLEX), *messages] if whole_first else messages
    judge = FakeJudge(outcome, failure, reads=reads)
    answers = await run(judge, messages, create_instruments())
    kinds = [answer.WhichOneof("response") for answer in answers]
    assert kinds.count("immediate_response") <= 1
    assert "immediate_response" not in kinds[:-1]
    assert kinds.count("request_headers") <= 1
    bodies = [answer.request_body for answer in answers if answer.HasField("request_body")]
    if bodies and "request_headers" in kinds:
        assert kinds.index("request_headers") < kinds.index("request_body")
    ends = [one.response.body_mutation.streamed_response.end_of_stream for one in bodies]
    assert not any(ends[:-1])
    ended = any(m.request_headers.end_of_stream or m.request_body.end_of_stream for m in messages)
    ended |= any(m.WhichOneof("request") == "request_trailers" for m in messages)
    if whole_first and ended:
        assert {"immediate_response", "request_headers"} & set(kinds)


COPIES = [as_copy(message) for message in [*KINDS, *IN_PIECES]]


@given(st.lists(st.sampled_from(COPIES), max_size=8), st.sampled_from([ROUTED, REFUSAL, ValueError()]))
async def test_copies_are_never_answered_and_judged_at_most_once(
    messages: list[pb.ProcessingRequest], outcome: Outcome
) -> None:
    judge = FakeJudge(outcome)
    assert await run(judge, messages, create_instruments()) == []
    assert len([call for call in judge.calls if call[0] != "failed"]) <= 1
