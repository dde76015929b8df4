"""HTTP/2 frames (RFC 9113, section 4 and 6): numbers, and how they are put into bytes. No state is kept here."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_HEAD: Final = 9
"""Bytes before a frame's payload: length, type, flags, stream."""

LEAST_FRAME_BYTES: Final = 16_384
"""The largest payload that every peer takes, and the one that ours may have: larger ones save nothing here."""

FIRST_WINDOW: Final = 65_535
"""Of a connection, and of a stream until the peer's settings say otherwise."""

LARGEST_WINDOW: Final = 2**31 - 1

# Types.
DATA: Final = 0x0
HEADERS: Final = 0x1
RST_STREAM: Final = 0x3
SETTINGS: Final = 0x4
PUSH_PROMISE: Final = 0x5
PING: Final = 0x6
GOAWAY: Final = 0x7
WINDOW_UPDATE: Final = 0x8
CONTINUATION: Final = 0x9

# Flags.
END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
HAS_PRIORITY: Final = 0x20


class Setting(IntEnum):
    """Settings that are sent or heeded."""

    HEADER_TABLE_SIZE = 0x1
    MAX_CONCURRENT_STREAMS = 0x3
    INITIAL_WINDOW_SIZE = 0x4
    MAX_FRAME_SIZE = 0x5
    MAX_HEADER_LIST_SIZE = 0x6


class Code(IntEnum):
    """Why a stream or a connection ends."""

    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    FLOW_CONTROL_ERROR = 0x3
    STREAM_CLOSED = 0x5
    FRAME_SIZE_ERROR = 0x6
    REFUSED_STREAM = 0x7
    CANCEL = 0x8
    COMPRESSION_ERROR = 0x9
    ENHANCE_YOUR_CALM = 0xB


class ProtocolError(Exception):
    """What a peer did that ends the connection; `code` tells it."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame; the payload is at most what the peer takes."""
    return b"%b%c%c%b%b" % (len(payload).to_bytes(3, "big"), kind, flags, stream.to_bytes(4, "big"), payload)


def settings_frame(settings: Mapping[Setting, int]) -> bytes:
    """Our settings."""
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", key, value) for key, value in settings.items()))


def window_update(stream: int, size: int) -> bytes:
    """More room for the peer's data."""
    return frame(WINDOW_UPDATE, 0, stream, size.to_bytes(4, "big"))


def reset(stream: int, code: Code) -> bytes:
    """The end of a stream."""
    return frame(RST_STREAM, 0, stream, code.to_bytes(4, "big"))


def goaway(last: int, code: Code) -> bytes:
    """No stream after `last` is served."""
    return frame(GOAWAY, 0, 0, last.to_bytes(4, "big") + code.to_bytes(4, "big"))


def read_settings(payload: bytes) -> list[tuple[int, int]]:
    """Pairs of a setting and its value; raises ProtocolError."""
    if len(payload) % 6:
        raise ProtocolError(Code.FRAME_SIZE_ERROR, "settings of a wrong length")
    return [struct.unpack_from(">HI", payload, place) for place in range(0, len(payload), 6)]


def read_number(payload: bytes) -> int:
    """The 31 bits of a window's increment, or a code; raises ProtocolError."""
    if len(payload) != 4:
        raise ProtocolError(Code.FRAME_SIZE_ERROR, "a number of a wrong length")
    return int.from_bytes(payload, "big") & LARGEST_WINDOW


def unpadded(payload: bytes, flags: int) -> bytes:
    """The payload without padding; raises ProtocolError."""
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise ProtocolError(Code.PROTOCOL_ERROR, "more padding than payload")
    return payload[1 : len(payload) - payload[0]]
