"""Calls with one message in and one out that a worker serves beside ext_proc, whatever server carries them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

Code = Literal["RESOURCE_EXHAUSTED", "UNAVAILABLE", "DEADLINE_EXCEEDED", "INVALID_ARGUMENT"]

Unary = Callable[[bytes], Awaitable[bytes]]
"""From a request's bytes to the answer's; raises RefusedError."""


class RefusedError(Exception):
    """There is no answer now; `code` is the name of gRPC's, the text is for whoever asked."""

    def __init__(self, code: Code, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why
