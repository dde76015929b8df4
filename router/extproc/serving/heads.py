"""Headers of calls: what a client asks for, and the few header blocks that answers begin and end with.

Blocks are decoded by the `hpack` library. Ours are written without its dynamic table, so that they are constants.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from hpack import Decoder
from hpack.exceptions import HPACKError

from router.extproc.serving.frames import Code, ProtocolError

# It logs what it decodes, at the level of debugging.
logging.getLogger("hpack").setLevel(logging.WARNING)

HEADER_BYTES: Final = 64 * 1024
"""Of one list of headers, as RFC 7541 counts them, and of one block as it is sent."""

REMEMBERED: Final = 256
"""Blocks whose headers are remembered: Envoy's are alike but for what a trace adds."""

REMEMBERED_BYTES: Final = 4096
"""Of the largest block that is."""

_TIMEOUT: Final = re.compile(r"(\d{1,8})([HMSmun])", re.ASCII)
_SECONDS: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}


@dataclass(frozen=True, slots=True)
class CallHead:
    """What a call asks for. `timeout` is in seconds, None without one. `metadata` is by lower-case name, first values.

    Values of metadata are the client's, and stay out of reprs.
    """

    method: str
    path: str
    content_type: str
    timeout: float | None
    metadata: Mapping[str, str] = field(repr=False)


class HeadReader:
    """Decodes one connection's header blocks, in their order."""

    def __init__(self) -> None:
        self._decoder = Decoder(max_header_list_size=HEADER_BYTES)
        self._seen: dict[bytes, CallHead] = {}

    def without_table(self) -> None:
        """The peer has agreed to use no dynamic table: from its next block on, equal blocks mean equal headers."""
        self._decoder.max_allowed_table_size = 0

    def read(self, block: bytes) -> CallHead:
        """The head in the block; raises ProtocolError, after which no block can be read any more."""
        stateless = self._decoder.header_table_size == 0
        if stateless and block in self._seen:
            return self._seen[block]
        try:
            head = _head(self._decoder.decode(block, raw=True))
        except (HPACKError, IndexError) as error:
            raise ProtocolError(Code.COMPRESSION_ERROR, "headers that cannot be decoded") from error
        if stateless and len(block) <= REMEMBERED_BYTES:
            if len(self._seen) >= REMEMBERED:
                self._seen.clear()
            self._seen[block] = head
        return head


def _head(pairs: object) -> CallHead:
    found: dict[str, str] = {}
    for name, value in pairs:  # type: ignore[attr-defined]
        found.setdefault(bytes(name).decode("latin-1").lower(), bytes(value).decode("latin-1"))
    return CallHead(
        method=found.get(":method", ""),
        path=found.get(":path", ""),
        content_type=found.get("content-type", ""),
        timeout=_seconds(found.get("grpc-timeout", "")),
        metadata=found,
    )


def _seconds(timeout: str) -> float | None:
    read = _TIMEOUT.fullmatch(timeout)
    return None if read is None else int(read[1]) * _SECONDS[read[2]]


def literal(name: str, value: str) -> bytes:
    """A header in a block, in a form that changes no table (RFC 7541, section 6.2.2); both in ASCII."""
    return b"\x00" + _string(name) + _string(value)


def _string(text: str) -> bytes:
    data = text.encode("ascii")
    # A length in a prefix of 7 bits (RFC 7541, section 5.1).
    if len(data) < 0x7F:
        return bytes((len(data),)) + data
    rest, size = len(data) - 0x7F, bytearray((0x7F,))
    while rest >= 0x80:
        size.append(rest % 0x80 | 0x80)
        rest //= 0x80
    return bytes((*size, rest)) + data


_STATUS_200: Final = b"\x88"
"""The indexed field `:status: 200` of the static table."""

RESPONSE: Final = _STATUS_200 + literal("content-type", "application/grpc")
"""Headers of an answer."""

NOT_GRPC: Final = literal(":status", "415")
"""Headers of the answer to what is no gRPC."""

DONE: Final = literal("grpc-status", "0")
"""Trailers of a call that went well."""


def trailers(status: int, message: str) -> bytes:
    """Trailers of a call that did not; `message` in our own words, of a few."""
    return literal("grpc-status", str(status)) + literal("grpc-message", quote(message, safe=" "))
