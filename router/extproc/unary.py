"""Calls with one message in and one out that a worker serves beside ext_proc, whatever server carries them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from router.extproc.serving.call import Call, CallError, Status
from router.extproc.serving.connection import Handler

Code = Literal["RESOURCE_EXHAUSTED", "UNAVAILABLE", "DEADLINE_EXCEEDED", "INVALID_ARGUMENT"]

Unary = Callable[[bytes], Awaitable[bytes]]
"""From a request's bytes to the answer's; raises RefusedError."""


class RefusedError(Exception):
    """There is no answer now; `code` is the name of gRPC's, the text is for whoever asked."""

    def __init__(self, code: Code, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


def served(answer: Unary) -> Handler:
    """What serves it."""

    async def handler(call: Call) -> None:
        try:
            request = await anext(call)
        except StopAsyncIteration:
            raise CallError(Status.INVALID_ARGUMENT, "Send one message.") from None
        try:
            await call.send(await answer(request))
        except RefusedError as error:
            raise CallError(Status[error.code], error.why) from None

    return handler
