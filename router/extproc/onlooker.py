"""Looks at copies of one request's messages, which Envoy sends in its observability mode and does not wait for.

A request that nobody has judged is judged for the record alone; of one that was, the response is read. Nothing here is
answered, so nothing here can change, delay or break what it looks at.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from time import perf_counter
from typing import Any

from router.actions import headers
from router.extproc.gathering import Gathering
from router.extproc.head import RequestHead, read_head, read_headers
from router.extproc.reading import ResponseFacts, ResponseReader
from router.proto import ext_proc_pb2 as pb

JudgeCopy = Callable[[RequestHead, bytes | None], Coroutine[Any, Any, None]]
"""Judges a request by its head and body; the body is None when it was larger than is gathered. Raises nothing."""

TellResponse = Callable[[ResponseFacts], None]
"""Takes what was read of a response; must not block."""


class Onlooker:
    """The state of one request that is looked at; at most `body_bytes` of its body are gathered."""

    def __init__(self, judge: JudgeCopy, body_bytes: int, tell: TellResponse | None) -> None:
        """Without `tell`, responses are not looked at."""
        self._judge = judge
        self._tell = tell
        self._gathering = Gathering(body_bytes)
        self._head: RequestHead | None = None
        self._judging: asyncio.Task[None] | None = None
        self._judged = False
        self._reader: ResponseReader | None = None
        self._responded = False

    async def watch(self, first: pb.ProcessingRequest, rest: AsyncIterator[pb.ProcessingRequest]) -> None:
        """Look until all has been seen, or no more comes. Whoever cancels this cancels the judging too."""
        try:
            if self._see(first):
                async for message in rest:
                    if not self._see(message):
                        break
            if self._judging is not None:
                await self._judging
        finally:
            self._say_response()
            if self._judging is not None:
                self._judging.cancel()

    def _see(self, message: pb.ProcessingRequest) -> bool:
        """Whether there is more to look at."""
        match message.WhichOneof("request"):
            case "request_headers" if self._head is None:
                self._see_request(message)
            case "request_body" if self._head is not None:
                self._see_body(self._head, message.request_body)
            case "request_trailers" if self._head is not None:
                self._judge_whole(self._head)
            case "response_headers" if self._reader is not None:
                self._responded = True
                self._reader.headers(read_headers(message.response_headers))
                if message.response_headers.end_of_stream:
                    return self._end_response(self._reader)
            case "response_body" if self._reader is not None and self._responded:
                self._reader.body(message.response_body.body, perf_counter())
                if message.response_body.end_of_stream:
                    return self._end_response(self._reader)
            case "response_trailers" if self._reader is not None and self._responded:
                return self._end_response(self._reader)
            case "response_headers" | "response_body" | "response_trailers":
                return False
        return self._reader is not None or not self._judged

    def _see_request(self, message: pb.ProcessingRequest) -> None:
        self._head = head = read_head(message.request_headers, message)
        # Envoy does not say here what it will show. The header says that a filter in front has asked us already: what
        # clients send under our names is taken away before.
        if headers.MODEL in head.headers:
            self._judged = True
            if self._tell is not None:
                self._reader = ResponseReader(head.headers, perf_counter())
        elif message.request_headers.end_of_stream:
            self._judge_whole(head)

    def _see_body(self, head: RequestHead, body: pb.HttpBody) -> None:
        if self._judged:
            return
        if not self._gathering.add(body.body):
            self._start(head, None)
        elif body.end_of_stream:
            self._judge_whole(head)

    def _judge_whole(self, head: RequestHead) -> None:
        if not self._judged:
            self._start(head, self._gathering.whole())

    def _start(self, head: RequestHead, body: bytes | None) -> None:
        # Beside the looking, or the decision's time would count as the response's.
        self._judged = True
        self._judging = asyncio.create_task(self._judge(head, body))

    def _end_response(self, reader: ResponseReader) -> bool:
        reader.end(perf_counter())
        return False

    def _say_response(self) -> None:
        if self._reader is not None and self._tell is not None and self._responded:
            self._tell(self._reader.facts())
