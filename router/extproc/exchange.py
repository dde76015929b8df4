"""One exchange with Envoy: the messages about one HTTP request in, their answers out.

It owns the order of messages, the deadline, and the promise that every request is answered: whatever goes wrong inside
becomes the policy's failure outcome. It decides nothing itself (the `Judge` does) and knows no gRPC.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager, aclosing
from dataclasses import replace
from itertools import chain
from typing import Any, Final, Literal, Protocol

from router.actions.edits import Edits
from router.extproc.answers.checks import AnswerChecks
from router.extproc.answers.exchange import AnswerExchange, Checking, is_about_an_answer
from router.extproc.gathering import Gathering
from router.extproc.head import RequestHead, read_head
from router.extproc.mutations import Slot, decided, immediate, neutral, one_piece, streamed, wait_for_body
from router.extproc.onlooker import Onlooker, TellResponse
from router.extproc.room import Room
from router.policy.eager import Done, begin
from router.proto import ext_proc_pb2 as pb
from router.request.reply import Reply
from router.telemetry.instruments import Instruments

logger = logging.getLogger(__name__)

FailureKind = Literal[
    "deadline",  # the judge did not answer in time
    "exception",  # the judge raised, or what it asked for cannot be sent
    "body_mode",  # Envoy is set up to show no body, or only some of it
    "body_too_large",  # it came in pieces, and there were too many
    "shed",  # the worker has as many bodies in hand as it may
    "body_before_headers",
    "second_headers",
    "unknown_message",  # empty, or of a newer API than ours
    "unreadable_stream",
    "unsupported_api",  # an LLM request whose body this version cannot read
]

_WHOLE: Final = pb.ProcessingMode.BUFFERED
_IN_PIECES: Final = pb.ProcessingMode.FULL_DUPLEX_STREAMED

Judging = Coroutine[Any, Any, Edits | Reply]

LAST_RESORT = Reply(
    status=503,
    content_type="application/json",
    body=b'{"error":{"message":"The request could not be judged.","type":"server_error","param":null,'
    b'"code":"not_judged"}}',
)
"""What a client gets when even the failure outcome fails."""


class Judge(Protocol):
    """Decides about requests. A `Reply` answers the client; `Edits` let the request go on."""

    def reads_body(self, head: RequestHead) -> bool:
        """Whether anything is decided by the body; False lets it through unseen. Must not block."""

    async def judge_headers(self, head: RequestHead) -> Edits | Reply:
        """Decide about a request that has no body, or whose body is not read; the edits must not bring one."""

    async def judge(self, head: RequestHead, body: bytes) -> Edits | Reply:
        """Decide about a request with its whole body, which may be empty and is as sent (also when compressed)."""

    def failed(self, head: RequestHead | None, kind: FailureKind) -> Edits | Reply:
        """The policy's outcome for a request that could not be judged; edits without a body. Must not block."""


Answers = tuple[Iterable[pb.ProcessingResponse], bool]
"""What one message is answered with, which may be nothing yet, and whether that is all that will ever be said."""


class Exchange:
    """The state of one exchange; `deadline` is in seconds and counts from the moment all is there to judge by.

    Where Envoy shows the body in pieces, at most `body_bytes` of it are gathered. `tell_response` is given what was
    read of responses that Envoy shows copies of. `room` is shared by the exchanges of a worker; without one there is no
    bound on what they have in hand together. `carried` are the headers of the call that the messages come in.
    `checking` lends the checks of answers; without it none goes on where Envoy waits for them to be checked.
    """

    def __init__(
        self,
        judge: Judge,
        deadline: float,
        instruments: Instruments,
        body_bytes: int,
        tell_response: TellResponse | None = None,
        room: Room | None = None,
        carried: Mapping[str, str] | None = None,
        checking: Checking | None = None,
    ) -> None:
        self._judge = judge
        self._deadline = deadline
        self._instruments = instruments
        self._body_bytes = body_bytes
        self._tell_response = tell_response
        self._room = room if room is not None else Room()
        self._carried = carried or {}
        self._checking = checking or _nobody_checks
        self._began = 0
        self._held = 0
        self._head: RequestHead | None = None
        self._slot: Slot = "request_headers"
        self._gathering: Gathering | None = None
        self._decided = False
        self._untouched = True

    async def answers(self, messages: AsyncIterable[pb.ProcessingRequest]) -> AsyncGenerator[pb.ProcessingResponse]:
        """Answer each message in turn; what decides ends the stream, unless a body that is let through follows.

        A body in pieces is answered with its last one, all at once. Copies, which Envoy does not wait for, are not
        answered. Ends without a decision only when the messages do: the client has left, or Envoy has. Cancellation is
        the same and is passed on. The wait for a body has no deadline here, since it is the client's upload: Envoy
        bounds it.
        """
        stream = aiter(messages)
        try:
            async for message in stream:
                # Of a stream's first message only: whoever has asked gets an answer, whatever else is said later.
                if message.observability_mode and self._untouched:
                    await self._look_on(message, stream)
                    return
                if self._untouched and is_about_an_answer(message):
                    # Nothing of the request is here: it has been decided about in an exchange of its own.
                    self._decided = True
                    answer = AnswerExchange(self._checking, self._instruments, self._room)
                    async with aclosing(answer.answers(message, stream)) as going_on:
                        async for response in going_on:
                            yield response
                    return
                self._untouched = False
                responses, last = await self._answer(message)
                for response in responses:
                    yield response
                if last:
                    return
            self._leave()
        except asyncio.CancelledError:
            self._leave()
            raise
        except Exception as error:
            yield self._fail("unreadable_stream", error)
        finally:
            if self._held:
                self._room.let_go(self._held)

    def _hold(self, body: bytes) -> None:
        self._room.hold(len(body))
        self._held += len(body)

    def _leave(self) -> None:
        if not self._decided:
            self._instruments.abandoned.add(1)

    async def _look_on(self, first: pb.ProcessingRequest, rest: AsyncIterator[pb.ProcessingRequest]) -> None:
        onlooker = Onlooker(self._judge_copy, self._body_bytes, self._tell_response)
        try:
            await onlooker.watch(first, rest)
        except Exception as error:
            self._count("unreadable_stream", error)

    async def _judge_copy(self, head: RequestHead, body: bytes | None) -> None:
        """Judge for the record alone; a `body` of None was larger than is gathered."""
        self._head = head
        if body is None:
            self._failure("body_too_large")
        elif not self._room.fits(len(body)):
            self._failure("shed")
        else:
            self._hold(body)
            judging = self._judge.judge(head, body) if self._judge.reads_body(head) else self._judge.judge_headers(head)
            await self._outcome(judging)

    async def _answer(self, message: pb.ProcessingRequest) -> Answers:
        match message.WhichOneof("request"):
            case "request_headers":
                return await self._answer_headers(message)
            case "request_body":
                return await self._answer_body(message.request_body)
            case "request_trailers" if self._gathering is not None:
                return await self._answer_trailers(self._gathering)
            case "request_trailers" if self._head is not None and self._slot == "request_body":
                return await self._answer_missing_body(self._head)
            case ("request_trailers" | "response_headers" | "response_body" | "response_trailers") as kind:
                self._instruments.unexpected_messages.add(1, {"kind": kind})
                return (neutral(kind),), False
            case _:
                return (self._fail("unknown_message"),), True

    async def _answer_headers(self, message: pb.ProcessingRequest) -> Answers:
        if self._head is not None:
            if self._gathering is None:
                self._slot = "request_headers"
            return (self._fail("second_headers"),), True
        self._head = head = read_head(message.request_headers, message, self._carried)
        if message.request_headers.end_of_stream:
            return (await self._decide(self._judge.judge_headers(head)),), True
        # An Envoy that does not say its mode is of a version that has none but those that show a body whole or not.
        mode = message.protocol_config.request_body_mode if message.HasField("protocol_config") else _WHOLE
        if mode == _IN_PIECES:
            self._gathering = Gathering(self._body_bytes)
        if not self._judge.reads_body(head):
            return self._passed(await self._decide(self._judge.judge_headers(head)))
        # Nothing is set aside for a body that is on its way: clients that send slowly would fill the room.
        if mode in (_IN_PIECES, _WHOLE) and not self._room.fits(head.content_length):
            return self._passed(self._fail("shed"))
        if mode == _IN_PIECES:
            self._slot = "nowhere"
            return (), False
        if mode != _WHOLE:
            return (self._fail("body_mode"),), True
        self._slot = "request_body"
        return (wait_for_body(),), False

    def _passed(self, response: pb.ProcessingResponse) -> Answers:
        """This is the answer, whatever body follows."""
        self._decided = True
        self._slot = "nowhere"
        # An Envoy that shows the body whole takes the end of the stream for leave to send it on, without holding it any
        # more. One that shows it in pieces waits for each of them to come back.
        return (response,), self._gathering is None or response.HasField("immediate_response")

    async def _answer_body(self, message: pb.HttpBody) -> Answers:
        if self._head is None:
            self._slot = "request_body"
            return (self._fail("body_before_headers"),), True
        # Each look at the field is a copy of it.
        body = message.body
        if self._gathering is None:
            # `end_of_stream` is not asked: it is false for a whole body with trailers, or behind a decompressor.
            if not self._room.fits(len(body)):
                return (self._fail("shed"),), True
            self._hold(body)
            return (await self._decide(self._judge.judge(self._head, body)),), True
        if self._decided:
            return (one_piece(body, message.end_of_stream),), message.end_of_stream
        if not self._gathering.add(body):
            return (self._fail("body_too_large"),), True
        # Envoy gets every piece back from here, so what has been gathered cannot be let go of.
        self._hold(body)
        if not message.end_of_stream:
            return (), False
        return await self._send_on(self._head, self._gathering, ()), True

    async def _answer_trailers(self, gathering: Gathering) -> Answers:
        trailers = (neutral("request_trailers"),)
        if self._decided or self._head is None:
            return trailers, True
        return await self._send_on(self._head, gathering, trailers), True

    async def _answer_missing_body(self, head: RequestHead) -> Answers:
        """Trailers in place of a body that Envoy would have shown whole: what answers them cannot set a header."""
        self._slot = "nowhere"
        return (await self._decide(self._judge.judge(head, b"")),), True

    async def _send_on(
        self, head: RequestHead, gathering: Gathering, trailers: tuple[pb.ProcessingResponse, ...]
    ) -> Iterable[pb.ProcessingResponse]:
        """The decision about a gathered body, and the body; the request ends with it or with its trailers."""
        body = gathering.whole()
        self._slot = "stream"
        response, replacement = await self._settle(self._judge.judge(head, body))
        if response.HasField("immediate_response"):
            return (response,)
        return chain((response,), streamed(body if replacement is None else replacement, end=not trailers), trailers)

    async def _decide(self, judging: Judging) -> pb.ProcessingResponse:
        response, _ = await self._settle(judging)
        return response

    async def _settle(self, judging: Judging) -> tuple[pb.ProcessingResponse, bytes | None]:
        """The answer that decides, and the body that replaces the request's, if any does."""
        outcome = await self._outcome(judging)
        try:
            response = self._render(outcome)
        except Exception as error:
            return self._fail("exception", error), None
        return response, outcome.body if isinstance(outcome, Edits) else None

    async def _outcome(self, judging: Judging) -> Edits | Reply:
        """What the judge says within the deadline, else the failure outcome."""
        self._began = time.time_ns()
        limit: asyncio.Timeout | None = None
        try:
            began = time.perf_counter()
            judged = begin(judging)
            if isinstance(judged, Done):
                return judged.value
            async with asyncio.timeout(self._deadline - (time.perf_counter() - began)) as limit:
                return await judged
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Not our cancellation: work that the judge shared with another request was cancelled under it.
            return self._failure("exception", error)
        except Exception as error:
            overdue = limit is not None and limit.expired()
            return self._failure("deadline") if overdue else self._failure("exception", error)

    def _render(self, outcome: Edits | Reply) -> pb.ProcessingResponse:
        return decided(self._slot, outcome, self._head)

    def _fail(self, kind: FailureKind, error: BaseException | None = None) -> pb.ProcessingResponse:
        outcome = self._failure(kind, error)
        try:
            return self._render(outcome)
        except Exception as second:
            return immediate(_last_resort(kind, second))

    def _failure(self, kind: FailureKind, error: BaseException | None = None) -> Edits | Reply:
        self._count(kind, error)
        try:
            outcome = self._judge.failed(self._head and replace(self._head, began=self._began), kind)
            if isinstance(outcome, Edits) and outcome.body is not None:
                raise ValueError("what was not judged goes on as it came")
            return outcome
        except Exception as second:
            return _last_resort(kind, second)

    def _count(self, kind: FailureKind, error: BaseException | None = None) -> None:
        self._instruments.failures.add(1, {"kind": kind})
        logger.warning("request not judged", extra={"fields": {"kind": kind, **_place(error)}})


def _nobody_checks() -> AbstractContextManager[AnswerChecks | None]:
    raise LookupError("no checks of answers are at hand")


def _last_resort(kind: FailureKind, error: BaseException) -> Reply:
    logger.error("no failure outcome", extra={"fields": {"kind": kind, **_place(error)}})
    return LAST_RESORT


def _place(error: BaseException | None) -> dict[str, str]:
    """Type and place of an error. Its text may quote the request, so it is left out."""
    if error is None:
        return {}
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    place = "" if step is None else f"{step.tb_frame.f_globals.get('__name__', '?')}:{step.tb_lineno}"
    return {"error_type": type(error).__qualname__, "at": place}
