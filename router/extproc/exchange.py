"""One exchange with Envoy: the messages about one HTTP request in, their answers out.

It owns the order of messages, the deadline, and the promise that every request is answered: whatever goes wrong inside
becomes the policy's failure outcome. It decides nothing itself (the `Judge` does) and knows no gRPC.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator, Coroutine
from typing import Any, Literal, Protocol

from router.actions.edits import Edits
from router.extproc.head import RequestHead, read_head
from router.extproc.mutations import Slot, decided, immediate, neutral, wait_for_body
from router.proto import ext_proc_pb2 as pb
from router.request.reply import Reply
from router.telemetry.instruments import Instruments

logger = logging.getLogger(__name__)

FailureKind = Literal[
    "deadline",  # the judge did not answer in time
    "exception",  # the judge raised, or what it asked for cannot be sent
    "body_mode",  # Envoy is set up to show no body, or only pieces of it
    "body_before_headers",
    "second_headers",
    "unknown_message",  # empty, or of a newer API than ours
    "unreadable_stream",
    "unsupported_api",  # an LLM request whose body this version cannot read
]

LAST_RESORT = Reply(
    status=503,
    content_type="application/json",
    body=b'{"error":{"message":"The request could not be judged.","type":"server_error","param":null,'
    b'"code":"not_judged"}}',
)
"""What a client gets when even the failure outcome fails."""


class Judge(Protocol):
    """Decides about requests. A `Reply` answers the client; `Edits` let the request go on."""

    async def judge_headers(self, head: RequestHead) -> Edits | Reply:
        """Decide about a request that has no body; the edits must not bring one."""

    async def judge(self, head: RequestHead, body: bytes) -> Edits | Reply:
        """Decide about a request with its whole body, which may be empty and is as sent (also when compressed)."""

    def failed(self, head: RequestHead | None, kind: FailureKind) -> Edits | Reply:
        """The policy's outcome for a request that could not be judged; edits without a body. Must not block."""


class Exchange:
    """The state of one exchange; `deadline` is in seconds and counts from the moment all is there to judge by."""

    def __init__(self, judge: Judge, deadline: float, instruments: Instruments) -> None:
        self._judge = judge
        self._deadline = deadline
        self._instruments = instruments
        self._head: RequestHead | None = None
        self._slot: Slot = "request_headers"

    async def answers(self, messages: AsyncIterable[pb.ProcessingRequest]) -> AsyncIterator[pb.ProcessingResponse]:
        """Answer each message in turn; the answer that decides is the last, and ends the stream.

        Ends without a decision only when the messages do: the client has left, or Envoy has. Cancellation is the same
        and is passed on. The wait for a body has no deadline here, since it is the client's upload: Envoy bounds it.
        """
        try:
            async for message in messages:
                response, last = await self._answer(message)
                yield response
                if last:
                    return
            self._instruments.abandoned.add(1)
        except asyncio.CancelledError:
            self._instruments.abandoned.add(1)
            raise
        except Exception as error:
            yield self._fail("unreadable_stream", error)

    async def _answer(self, message: pb.ProcessingRequest) -> tuple[pb.ProcessingResponse, bool]:
        """The answer, and whether it is the last."""
        match message.WhichOneof("request"):
            case "request_headers":
                return await self._answer_headers(message)
            case "request_body":
                return await self._answer_body(message.request_body), True
            case ("request_trailers" | "response_headers" | "response_body" | "response_trailers") as kind:
                self._instruments.unexpected_messages.add(1, {"kind": kind})
                return neutral(kind), False
            case _:
                return self._fail("unknown_message"), True

    async def _answer_headers(self, message: pb.ProcessingRequest) -> tuple[pb.ProcessingResponse, bool]:
        self._slot = "request_headers"
        if self._head is not None:
            return self._fail("second_headers"), True
        self._head = read_head(message.request_headers)
        if message.request_headers.end_of_stream:
            return await self._decide(self._judge.judge_headers(self._head)), True
        # Older versions of Envoy do not say which mode they are in.
        mode = message.protocol_config.request_body_mode
        if message.HasField("protocol_config") and mode != pb.ProcessingMode.BUFFERED:
            return self._fail("body_mode"), True
        self._slot = "request_body"
        return wait_for_body(), False

    async def _answer_body(self, message: pb.HttpBody) -> pb.ProcessingResponse:
        if self._head is None:
            self._slot = "request_body"
            return self._fail("body_before_headers")
        # `end_of_stream` is not asked: it is false for a whole body with trailers, or behind a decompressor.
        return await self._decide(self._judge.judge(self._head, message.body))

    async def _decide(self, judging: Coroutine[Any, Any, Edits | Reply]) -> pb.ProcessingResponse:
        try:
            async with asyncio.timeout(self._deadline) as limit:
                outcome = await judging
            return decided(self._slot, outcome, self._head)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Not our cancellation: work that the judge shared with another request was cancelled under it.
            return self._fail("exception", error)
        except Exception as error:
            return self._fail("deadline", None) if limit.expired() else self._fail("exception", error)

    def _fail(self, kind: FailureKind, error: BaseException | None = None) -> pb.ProcessingResponse:
        self._instruments.failures.add(1, {"kind": kind})
        logger.warning("request not judged", extra={"fields": {"kind": kind, **_place(error)}})
        try:
            return decided(self._slot, self._judge.failed(self._head, kind), self._head)
        except Exception as second:
            logger.error("no failure outcome", extra={"fields": {"kind": kind, **_place(second)}})
            return immediate(LAST_RESORT)


def _place(error: BaseException | None) -> dict[str, str]:
    """Type and place of an error. Its text may quote the request, so it is left out."""
    if error is None:
        return {}
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    place = "" if step is None else f"{step.tb_frame.f_globals.get('__name__', '?')}:{step.tb_lineno}"
    return {"error_type": type(error).__qualname__, "at": place}
