"""Bodies between the wire and the judge: from the bytes that Envoy shows to JSON, and back after a rewrite.

Knows content codings, the charset and the largest body. What a request is and what is decided about it is the
pipeline's.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from router.actions.edits import Edits
from router.extproc.head import RequestHead
from router.request.content_coding import UnknownCoding, decode, encode, read_codings
from router.request.errors import RequestError
from router.request.limits import RequestLimits, check_size
from router.request.reply import Reply

CONTENT_ENCODING: Final = "content-encoding"
READABLE_CHARSETS: Final = ("", "utf-8", "utf8", "us-ascii")
"""JSON is UTF-8 (RFC 8259); an upstream that honours another charset would read another text than we do."""

INLINE_DECODE_BYTES: Final = 4 * 1024
"""A packed body up to this size is decoded on the event loop. It can't become more than 1 MiB (`FREE_BYTES`), which
takes a millisecond or two; a hop to a thread costs less than that, but costs it always."""

INLINE_ENCODE_BYTES: Final = 32 * 1024
"""A body up to this size is packed on the event loop, in a third of a millisecond a layer."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body as it is read; `codings` are those that it came with, in the order in which they were applied."""

    data: bytes = field(repr=False)
    codings: tuple[str, ...] = ()


class Bodies:
    """Reads and writes bodies by the policy's `encodings`. `packing` takes what is too long for the event loop."""

    def __init__(
        self,
        packing: Executor,
        limits: RequestLimits,
        unknown: Literal["refuse", "pass"] = "refuse",
        rewrite: Literal["decoded", "reencode"] = "decoded",
    ) -> None:
        self.limits = limits
        self.passes_unknown = unknown == "pass"
        self._packing = packing
        self._reencodes = rewrite == "reencode"

    async def read(self, head: RequestHead, sent: bytes) -> Body:
        """The body without its codings.

        Raises RequestError for one that cannot be read, UnknownCoding where the policy lets those pass.
        """
        check_size(sent, self.limits)
        try:
            codings = read_codings(head.content_encoding)
        except UnknownCoding:
            if self.passes_unknown:
                raise
            message = "The body's encoding is not supported; send gzip, deflate, br, zstd, or plain JSON."
            raise RequestError(415, "unsupported_content_encoding", message) from None
        if head.charset not in READABLE_CHARSETS:
            raise RequestError(415, "unsupported_charset", "The body's charset is not UTF-8; send it as UTF-8.")
        if not codings:
            return Body(sent)
        if len(sent) <= INLINE_DECODE_BYTES:
            return Body(decode(sent, codings, self.limits), codings)
        loop = asyncio.get_running_loop()
        return Body(await loop.run_in_executor(self._packing, decode, sent, codings, self.limits), codings)

    async def write(self, answer: Edits | Reply, body: Body) -> Edits | Reply:
        """The answer as it goes on the wire: a replaced body has its codings again, or their header is removed."""
        if isinstance(answer, Reply) or answer.body is None or not body.codings:
            return answer
        if not self._reencodes:
            return replace(answer, remove=(*answer.remove, CONTENT_ENCODING))
        if len(answer.body) <= INLINE_ENCODE_BYTES:
            return replace(answer, body=encode(answer.body, body.codings))
        loop = asyncio.get_running_loop()
        return replace(answer, body=await loop.run_in_executor(self._packing, encode, answer.body, body.codings))
