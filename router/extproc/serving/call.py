"""One call: messages in, messages out, by gRPC over HTTP/2 (the protocol's document PROTOCOL-HTTP2 says how).

It takes its stream's bytes apart and keeps to the windows of both sides. Frames are the connection's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from router.extproc.serving import heads
from router.extproc.serving.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    Code,
    ProtocolError,
    frame,
    reset,
    window_update,
)

if TYPE_CHECKING:
    from router.extproc.serving.connection import Connection

STREAM_WINDOW: Final = 1 << 20
"""Bytes that a client may send on a stream before its handler has taken them; those of the message on its way apart."""

_SMALL: Final = 1024
"""Bytes under which a piece of a message is kept together with its neighbours."""

_PREFIX: Final = 5
"""Bytes before each message: whether it is compressed, and its length."""


class Status(IntEnum):
    """How a call ended."""

    OK = 0
    CANCELLED = 1
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class CallError(Exception):
    """How a call ends other than well. The text goes to the client: our own words, nothing of what it sent."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


class Call:
    """What a handler works with: it iterates over messages and sends others. For one handler at a time."""

    def __init__(self, connection: Connection, number: int, head: heads.CallHead, message_bytes: int) -> None:
        self.number = number
        self.path = head.path
        self.metadata: Mapping[str, str] = head.metadata
        self.task: asyncio.Task[None] | None = None
        self.window = connection.stream_window
        """Bytes that the client takes on this stream."""
        self._connection = connection
        self._in_hand = connection.in_hand
        self._counted = 0
        self._message_bytes = message_bytes
        self._pieces: list[bytes | bytearray] = []
        self._held = 0
        self._wanted = _PREFIX
        self._waiting: deque[bytes] = deque()
        self._more: asyncio.Future[None] | None = None
        self._room = STREAM_WINDOW
        self._credit = 0
        self._ended = False
        self._begun = False
        self._over = False
        self.status = Status.CANCELLED
        """What a call that is cancelled ends with."""

    def __aiter__(self) -> Call:
        return self

    async def __anext__(self) -> bytes:
        """The next message, as it was sent; ends where the client has said all. Raises CallError."""
        while not self._waiting:
            if self._over:
                raise CallError(Status.CANCELLED, "The call has ended.")
            if self._ended:
                if self._held:
                    raise CallError(Status.INTERNAL, "The call ended within a message.")
                raise StopAsyncIteration
            self._connection.flush()
            self._more = asyncio.get_running_loop().create_future()
            await self._more
        message = self._waiting.popleft()
        if self._counted:
            self._let_go(_PREFIX + len(message))
        if not self._waiting:
            self._give_credit()
        return message

    async def send(self, message: bytes) -> None:
        """Send a message; returns once all of it is on its way, within what the client takes. Raises CallError."""
        if self._over:
            raise CallError(Status.CANCELLED, "The call has ended.")
        connection = self._connection
        if not self._begun:
            self._begun = True
            connection.put(frame(HEADERS, END_HEADERS, self.number, heads.RESPONSE))
        data = b"\x00" + len(message).to_bytes(4, "big") + message
        if len(data) <= self.window and len(data) <= connection.window and len(data) <= connection.frame_bytes:
            self._spend(len(data))
            connection.put(frame(DATA, 0, self.number, data))
            if connection.choked:
                await connection.writable()
            connection.flush_soon()
            return
        place = 0
        while place < len(data):
            if connection.choked:
                await connection.writable()
            # Only now: meanwhile others may have used the connection's window, or settings narrowed the stream's.
            size = min(self.window, connection.window, connection.frame_bytes, len(data) - place)
            if size <= 0:
                await connection.windows(self)
                continue
            self._spend(size)
            connection.put(frame(DATA, 0, self.number, data[place : place + size]))
            place += size
        connection.flush_soon()

    def take(self, data: bytes, ended: bool, size: int) -> None:
        """Bytes of the client's; `size` counts what they took of the window. Raises CallError and ProtocolError."""
        self._room -= size
        if self._room < 0:
            raise ProtocolError(Code.FLOW_CONTROL_ERROR, "more data than the stream's window")
        if self._over:
            return
        if self._ended:
            raise ProtocolError(Code.STREAM_CLOSED, "more on a stream that its client has ended")
        self._ended = ended
        if not self._held and len(data) >= _PREFIX and len(data) == _PREFIX + self._length_in(data):
            # Mostly a message is a frame.
            if self._waiting:
                # The first is mostly taken at once, and no larger than a frame.
                self._hold(len(data))
            self._waiting.append(data[_PREFIX:])
        elif data:
            self._hold(len(data))
            self._keep(data)
            self._held += len(data)
            if self._held >= self._wanted:
                self._take_apart()
        self._credit += size
        if not self._waiting and not ended:
            # Of a long message, which nobody can take before it is whole.
            self._give_credit()
        if (self._waiting or ended) and self._more is not None and not self._more.done():
            self._more.set_result(None)

    def finish(self, status: Status = Status.OK, message: str = "") -> None:
        """Say how it ended; once is enough."""
        if self._over:
            return
        self.abandon()
        connection, number = self._connection, self.number
        end = heads.DONE if status is Status.OK else heads.trailers(status, message)
        if not self._begun:
            end = heads.RESPONSE + end
        connection.put(frame(HEADERS, END_HEADERS | END_STREAM, number, end))
        if not self._ended:
            # What else the client meant to say need not come.
            connection.put(reset(number, Code.NO_ERROR))

    def abandon(self) -> None:
        """Nobody listens any more."""
        self._over = True
        self._pieces.clear()
        self._waiting.clear()
        if self._counted:
            self._let_go(self._counted)

    @property
    def ended(self) -> bool:
        """Whether the client has said all."""
        return self._ended

    def _hold(self, size: int) -> None:
        """Count what has come and is not taken. Raises CallError."""
        if not self._in_hand.fits(size, own=self._counted):
            raise CallError(Status.RESOURCE_EXHAUSTED, "Too much is on its way here; try again.")
        self._in_hand.hold(size)
        self._counted += size

    def _let_go(self, size: int) -> None:
        size = min(size, self._counted)
        self._counted -= size
        self._in_hand.let_go(size)

    def _keep(self, data: bytes) -> None:
        """Another piece of a message; many small ones are kept as one, or they would take many times their size."""
        if len(data) >= _SMALL:
            self._pieces.append(data)
        elif self._pieces and isinstance(self._pieces[-1], bytearray):
            self._pieces[-1] += data
        else:
            self._pieces.append(bytearray(data))

    def _length_in(self, data: bytes) -> int:
        if data[0]:
            raise CallError(Status.UNIMPLEMENTED, "Compressed messages are not taken.")
        length = int.from_bytes(data[1:_PREFIX], "big")
        if length > self._message_bytes:
            raise CallError(Status.RESOURCE_EXHAUSTED, f"A message may have {self._message_bytes} bytes.")
        return length

    def _take_apart(self) -> None:
        """Put together what has come, once it is as much as was waited for."""
        if self._held == self._wanted > _PREFIX:
            # One long message and nothing behind it, as bodies are sent: one copy.
            self._pieces[0] = self._pieces[0][_PREFIX:]
            self._waiting.append(b"".join(self._pieces))
            self._pieces, self._held, self._wanted = [], 0, _PREFIX
            return
        whole = b"".join(self._pieces)
        place = 0
        while len(whole) - place >= _PREFIX:
            begin = place + _PREFIX
            length = self._length_in(whole[place:begin])
            if len(whole) - begin < length:
                self._wanted = _PREFIX + length
                break
            self._waiting.append(whole[begin : begin + length])
            place = begin + length
            self._wanted = _PREFIX
        rest = whole[place:]
        self._pieces, self._held = [rest] if rest else [], len(rest)

    def _give_credit(self) -> None:
        if self._credit >= STREAM_WINDOW // 2 and not self._ended:
            self._connection.put(window_update(self.number, self._credit))
            self._room += self._credit
            self._credit = 0

    def _spend(self, size: int) -> None:
        self.window -= size
        self._connection.window -= size
