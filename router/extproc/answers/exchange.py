"""One answer of a model on its way through Envoy: its messages in, what goes on to the client out.

A whole answer is held until it has been judged; a streamed one goes on behind what is held back. It owns the promise
that nothing goes on unchecked: Envoy takes a gRPC stream that just ends for leave to send the rest, so that whatever
goes wrong here ends the response instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import AbstractContextManager
from typing import Final

from router.actions import headers
from router.extproc.answers.checks import NOT_CHECKED, AnswerChecks, Refusal
from router.extproc.answers.facts import AnswerFacts, answer_facts
from router.extproc.answers.stream import CheckedStream, Step
from router.extproc.answers.ticking import with_ticks
from router.extproc.answers.whole import judge_whole
from router.extproc.decoding import BrokenCodingError, Decoding, TooMuchError
from router.extproc.gathering import Gathering, in_pieces
from router.extproc.mutations import DIGESTS, answer_headers, answer_piece, immediate, neutral
from router.extproc.room import Room
from router.proto import ext_proc_pb2 as pb
from router.request.content_coding import UnknownCoding
from router.request.dialect import error_reply
from router.request.reply import Reply
from router.request.view import Api
from router.telemetry.instruments import Instruments

logger = logging.getLogger(__name__)

Checking = Callable[[], AbstractContextManager[AnswerChecks | None]]
"""Lends the checks of the policy that serves for the time of one answer, None where it has none; raises where nothing
can be judged any more."""

CHECK: Final = "x-pointsman-check"
"""The response header that names the check that refused an answer."""

NOTHING: Final = Refusal("", "exception", 503, "not_judged", NOT_CHECKED)

Responses = Iterable[pb.ProcessingResponse]


def is_about_an_answer(first: pb.ProcessingRequest) -> bool:
    """Whether a stream's first message is of a filter that shows answers and waits for what goes on of them."""
    mode = first.protocol_config
    return (
        mode.response_body_mode == pb.ProcessingMode.FULL_DUPLEX_STREAMED
        and mode.request_body_mode == pb.ProcessingMode.NONE
        and first.WhichOneof("request") in ("request_headers", "response_headers")
    )


class AnswerExchange:
    """The state of one answer. `ended` says that the client's response has its end."""

    def __init__(self, checking: Checking, instruments: Instruments, room: Room) -> None:
        self._checking = checking
        self._instruments = instruments
        self._room = room
        self._checks: AnswerChecks | None = None
        self._shut: Exception | None = None
        self._api: Api | None = None
        self._facts: AnswerFacts | None = None
        self._gathering: Gathering | None = None
        self._stream: CheckedStream | None = None
        self._decoding: Decoding | None = None
        self._passes = False
        self._replied = False
        self._ended = False
        self._holding = 0

    async def answers(
        self, first: pb.ProcessingRequest, rest: AsyncIterator[pb.ProcessingRequest]
    ) -> AsyncGenerator[pb.ProcessingResponse]:
        """What goes on, message by message. Ends early only when Envoy has left."""
        try:
            with contextlib.ExitStack() as stack:
                try:
                    self._checks = stack.enter_context(self._checking())
                except Exception as error:
                    # There are checks, but nobody to believe: what an upstream answers ends here.
                    self._shut = error
                async for message in with_ticks(first, rest, self._waits):
                    for response in await self._answer(message):
                        yield response
                    if self._ended:
                        return
                if self._checked and not self._ended:
                    self._count("broken_off")
        except asyncio.CancelledError:
            if self._checked:
                self._count("abandoned")
            raise
        except Exception as error:
            yield self._fault(error)
        finally:
            self._hold(0)

    @property
    def _checked(self) -> bool:
        return self._gathering is not None or self._stream is not None

    def _waits(self) -> float | None:
        return self._stream.waits if self._stream is not None and not self._passes else None

    async def _answer(self, message: pb.ProcessingRequest | None) -> Responses:
        if message is None:
            return self._go_on(await self._stream.tick(), end=False) if self._stream is not None else ()
        match message.WhichOneof("request"):
            case "request_headers":
                return (pb.ProcessingResponse(request_headers=pb.HeadersResponse()),)
            case "request_trailers":
                return (neutral("request_trailers"),)
            case "response_headers" if self._facts is None:
                return self._begin(answer_facts(message), message.response_headers.end_of_stream)
            case "response_body" if self._facts is not None:
                return await self._body(self._checks, message.response_body.body, message.response_body.end_of_stream)
            case "response_trailers" if self._facts is not None:
                return await self._trailers(self._checks)
            case kind:
                raise ValueError(f"unexpected {kind}")

    def _begin(self, facts: AnswerFacts, end: bool) -> Responses:
        self._facts = facts
        if self._shut is not None and facts.from_upstream:
            return (self._fault(self._shut),)
        checks = self._checks
        self._api = facts.api(checks.apis) if checks is not None else None
        if checks is None or self._api is None or end:
            self._passes = self._replied = True
            self._ended = end
            return (answer_headers(()),)
        try:
            decoding = Decoding(facts.encoding)
        except UnknownCoding:
            return self._stopped(checks.unreadable("encoding"))
        if facts.kind == "other":
            return self._stopped(checks.unreadable("kind"))
        if facts.kind == "json":
            self._gathering = Gathering(checks.handling.bytes)
            return ()
        self._stream = CheckedStream(checks, self._api)
        self._decoding = decoding
        self._replied = True
        # What may end otherwise than it began has no length and no digest; and events are told from each other, held
        # and sent on without their coding.
        coding = ("content-encoding",) if decoding.encoded else ()
        return (answer_headers(("content-length", *DIGESTS, *coding)),)

    async def _body(self, checks: AnswerChecks | None, body: bytes, end: bool) -> Responses:
        if checks is not None and self._stream is not None and self._decoding is not None:
            return await self._more_of_stream(checks, self._stream, self._decoding, body, end)
        if checks is None or self._gathering is None or self._passes:
            self._ended = end
            return (answer_piece(body, end),)
        if not self._room.fits(len(body)):
            return self._stopped(checks.unreadable("shed"), body, end)
        if not self._gathering.fits(body):
            return self._stopped(checks.unreadable("too_large"), body, end)
        self._gathering.add(body)
        self._hold(self._holding + len(body))
        return await self._settle(checks, self._gathering, end=True) if end else ()

    async def _more_of_stream(
        self, checks: AnswerChecks, stream: CheckedStream, decoding: Decoding, body: bytes, end: bool
    ) -> Responses:
        out: list[pb.ProcessingResponse] = []
        try:
            for piece in decoding.feed(body):
                out += self._go_on(Step(piece) if self._passes else await stream.feed(piece), end=False)
                if self._ended:
                    return out
        except (BrokenCodingError, TooMuchError):
            # What comes behind cannot be sent on even unread.
            return [*out, self._refused(checks.unreadable("encoding"))]
        self._hold(stream.held)
        if not self._passes and not self._room.fits(0):
            return [*out, *self._stopped(checks.unreadable("shed"), b"", end)]
        return [*out, *(await self._end_of_stream(checks, stream, decoding, end=True))] if end else out

    async def _end_of_stream(
        self, checks: AnswerChecks, stream: CheckedStream, decoding: Decoding, end: bool
    ) -> Responses:
        """All has come; `end` says whether the response ends with it, or with trailers."""
        if not decoding.whole:
            return (self._refused(checks.unreadable("encoding")),)
        if self._passes:
            return self._go_on(Step(), end)
        step = await stream.end()
        if step.stop is None:
            self._count("passed")
        return self._go_on(step, end)

    async def _trailers(self, checks: AnswerChecks | None) -> Responses:
        out: Responses = ()
        if checks is not None and self._stream is not None and self._decoding is not None:
            out = await self._end_of_stream(checks, self._stream, self._decoding, end=False)
        elif checks is not None and self._gathering is not None and not self._passes:
            out = await self._settle(checks, self._gathering, end=False)
        if self._ended:
            return out
        self._ended = True
        return (*out, neutral("response_trailers"))

    async def _settle(self, checks: AnswerChecks, gathering: Gathering, end: bool) -> Responses:
        """Judge a whole answer, all of which has come; `end` as above."""
        encoding = self._facts.encoding if self._facts is not None else ""
        refusal = await judge_whole(checks, self._api or "openai.chat", gathering.whole(), encoding)
        if refusal is not None:
            return self._stopped(refusal, b"", end)
        self._count("passed")
        return self._pass_on(b"", end)

    def _go_on(self, step: Step, end: bool) -> Responses:
        if step.stop is None:
            self._ended = end
            return (answer_piece(step.out, end),) if step.out or end else ()
        out = (answer_piece(step.out, end=False),) if step.out else ()
        return (*out, *self._stopped(step.stop, b"", end))

    def _stopped(self, refusal: Refusal, body: bytes = b"", end: bool = False) -> Responses:
        """An answer that a check refuses, or that cannot be checked, ends here, unless the policy lets it pass.

        `body` is the newest piece, where it is not held.
        """
        handling = self._checks.handling if self._checks is not None else None
        if handling is None or (handling.enforced and (refusal.check or handling.refuses_unreadable)):
            return (self._refused(refusal),)
        self._tell(refusal, enforced=False)
        return self._pass_on(body, end)

    def _pass_on(self, body: bytes, end: bool) -> Responses:
        """From here on everything goes on as it is, what has been held first."""
        self._passes = True
        out = [] if self._replied else [answer_headers(())]
        self._replied = True
        held = b""
        if self._stream is not None:
            held = self._stream.let_go()
        elif self._gathering is not None:
            held = self._gathering.whole()
        self._hold(0)
        if held or body or end:
            out += (answer_piece(piece, last and end) for piece, last in in_pieces(held + body))
        self._ended = end
        return out

    def _refused(self, refusal: Refusal) -> pb.ProcessingResponse:
        """End the response in place of the rest of it."""
        self._tell(refusal, enforced=True)
        return self._end_with(refusal)

    def _fault(self, error: Exception) -> pb.ProcessingResponse:
        """End the response because something is wrong here."""
        self._count("fault")
        # The message may quote the answer; the type can't.
        logger.error("answer not checked", extra={"fields": {"error_type": type(error).__qualname__}})
        return self._end_with(NOTHING)

    def _end_with(self, refusal: Refusal) -> pb.ProcessingResponse:
        self._ended = True
        if self._replied:
            ending = b""
            if self._stream is not None and self._api is not None:
                ending = self._stream.progress.ending(self._api, refusal)
            return answer_piece(ending, end=True)
        told = self._facts.told if self._facts is not None else ()
        named = ((CHECK, refusal.check),) if refusal.check else ()
        reply = error_reply(self._api, refusal.status, refusal.code, refusal.message)
        return immediate(Reply(reply.status, reply.content_type, reply.body, (*told, *named)))

    def _hold(self, size: int) -> None:
        if size > self._holding:
            self._room.hold(size - self._holding)
        elif size < self._holding:
            self._room.let_go(self._holding - size)
        self._holding = size

    def _count(self, outcome: str) -> None:
        self._instruments.responses_checked.add(1, {"outcome": outcome})

    def _tell(self, refusal: Refusal, enforced: bool) -> None:
        self._count("refused" if refusal.check else "unread")
        told = dict(self._facts.told) if self._facts is not None else {}
        record, stream = told.get(headers.RECORD, ""), self._stream is not None
        if self._checks is not None:
            self._checks.keep(record, refusal, stream, enforced)
        fields = {
            "record": record,
            "decision": told.get(headers.DECISION, ""),
            "model": told.get(headers.MODEL, ""),
            "check": refusal.check,
            "why": refusal.why,
            "stream": stream,
            "enforced": enforced,
            "evidence": list(refusal.evidence),
        }
        logger.info("answer refused" if refusal.check else "answer not read", extra={"fields": fields})
