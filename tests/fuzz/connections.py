"""A connection of the gRPC server fed with any bytes, in any pieces.

The laws: it raises nothing; what it writes are whole frames; data stays within the windows that the peer has given.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from router.extproc.serving import frames
from router.extproc.serving.call import Call
from router.extproc.serving.connection import Connection
from router.extproc.serving.frames import Setting

MESSAGE_BYTES: Final = 4096


@dataclass
class Wire:
    """The other end: keeps what is written, and reads it."""

    written: bytearray = field(default_factory=bytearray)
    closed: bool = False

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def set_write_buffer_limits(self, high: int) -> None:
        assert high > 0

    def get_write_buffer_size(self) -> int:
        return len(self.written)

    def frames(self) -> list[tuple[int, int, int, bytes]]:
        """Kind, flags, stream and payload of everything written."""
        found, place = [], 0
        while place < len(self.written):
            size = int.from_bytes(self.written[place : place + 3], "big")
            kind, flags = self.written[place + 3], self.written[place + 4]
            number = int.from_bytes(self.written[place + 5 : place + 9], "big")
            found.append((kind, flags, number, bytes(self.written[place + 9 : place + 9 + size])))
            place += 9 + size
        assert place == len(self.written), "a frame was cut short"
        return found


def check_connection(data: bytes) -> None:
    """The first byte says how the others are cut up, and whether a greeting goes before them."""
    first = data[0] if data else 0
    asyncio.run(_converse(data[1:], 1 + first // 2, greets=first % 2 == 0))


async def _converse(data: bytes, step: int, *, greets: bool) -> None:
    wire = Wire()
    connection = Connection({"/echo": _echo}, MESSAGE_BYTES, set())
    connection.connection_made(wire)  # type: ignore[arg-type]
    if greets:
        connection.data_received(frames.PREFACE + frames.settings_frame({Setting.INITIAL_WINDOW_SIZE: 64}))
    for place in range(0, len(data), step):
        connection.data_received(data[place : place + step])
        await asyncio.sleep(0)
    for kind, _, number, payload in wire.frames():
        assert len(payload) <= frames.LEAST_FRAME_BYTES
        assert (number == 0) == (kind in (frames.SETTINGS, frames.PING, frames.GOAWAY)) or kind == frames.WINDOW_UPDATE
    connection.connection_lost(None)
    async with asyncio.timeout(30):
        await connection.idle()


async def _echo(call: Call) -> None:
    async for message in call:
        await call.send(message)
