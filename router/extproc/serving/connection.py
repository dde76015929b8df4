"""One client's HTTP/2 connection (RFC 9113), as a server of gRPC needs it: frames in, calls started and fed.

Frames are answered in the callback that brought them. Whatever a peer does wrong ends its connection and no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from router.extproc.room import Room
from router.extproc.serving import frames, heads
from router.extproc.serving.call import STREAM_WINDOW, Call, CallError, Status
from router.extproc.serving.frames import Code, ProtocolError, Setting, frame

logger = logging.getLogger(__name__)

Handler = Callable[[Call], Awaitable[None]]

STREAMS: Final = 8192
"""Calls that a connection may have at a time: those that hold a slot in an Envoy's circuit breaker, many times over."""

CONNECTION_WINDOW: Final = 16 << 20
"""Bytes of all streams together that may be on their way; each stream has its own window besides."""

CHOKED_BYTES: Final = 1 << 20
"""Bytes that wait to be written from which on handlers wait too."""

MOST_UNREAD_BYTES: Final = 64 << 20
"""Bytes that wait to be written past which the peer is given up: it asks, and does not read."""

RESETS: Final = STREAMS
RESETS_A_SECOND: Final = 1000
"""Calls under way that a peer may reset at once, all that it may have, and in the long run; one that begins calls and
resets them over and over is ended. Envoy resets a call whose client has left."""

LINGER_SECONDS: Final = 5.0
"""How long a peer that is hung up on has to read what was written, so that none that reads nothing stays for ever."""

_OUR_SETTINGS: Final = frames.settings_frame(
    {
        # Without a table a block of headers says the same whenever it is sent.
        Setting.HEADER_TABLE_SIZE: 0,
        Setting.MAX_CONCURRENT_STREAMS: STREAMS,
        Setting.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
        Setting.MAX_HEADER_LIST_SIZE: heads.HEADER_BYTES,
    }
)


class Connection(asyncio.Protocol):
    """`handlers` serve calls by path; `message_bytes` is the largest message; `connections` has those that live.

    `in_hand` bounds what has come of messages and is not taken yet, of all connections together.
    """

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        message_bytes: int,
        connections: set[Connection],
        in_hand: Room | None = None,
    ) -> None:
        self.in_hand = in_hand if in_hand is not None else Room()
        self.window = frames.FIRST_WINDOW
        self.stream_window = frames.FIRST_WINDOW
        self.frame_bytes = frames.LEAST_FRAME_BYTES
        self._handlers = handlers
        self._message_bytes = message_bytes
        self._connections = connections
        self._transport: Any = None
        self._heads = heads.HeadReader()
        self._unread = b""
        self._prefaced = False
        self._block: tuple[int, int, bytearray] | None = None
        self._calls: dict[int, Call] = {}
        self._former: OrderedDict[int, bool] = OrderedDict()
        self._resets = 0.0
        self._reset_at = 0.0
        self._running = 0
        self._last = 0
        self._received = 0
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._paused = False
        self._flushing = False
        self._closed = False
        self._waiters: dict[asyncio.Future[None], None] = {}
        self._lingering: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._gone = asyncio.Event()

    @property
    def choked(self) -> bool:
        """Whether so much waits to be written that nobody should write more."""
        return self._paused or self._out_bytes > CHOKED_BYTES

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = transport
        self._transport.set_write_buffer_limits(CHOKED_BYTES)
        self._connections.add(self)
        self.put(_OUR_SETTINGS + frames.window_update(0, CONNECTION_WINDOW - frames.FIRST_WINDOW))
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`: every call of it is cancelled."""
        self._closed = True
        if self._lingering is not None:
            self._lingering.cancel()
        self._connections.discard(self)
        for call in tuple(self._calls.values()):
            self._drop(call)
        self._wake()
        self._gone.set()

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._paused = True

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._paused = False
        self._wake()

    def eof_received(self) -> bool:
        """See `asyncio.Protocol`: who has left will not read either."""
        return False

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._closed:
            return
        try:
            self._read(data)
        except ProtocolError as error:
            # Nothing of what the peer sent is in the reason.
            logger.warning("connection ended", extra={"fields": {"code": error.code.name, "why": str(error)}})
            self._end(error.code)
        self.flush()

    def put(self, data: bytes) -> None:
        """Write with the next `flush`."""
        self._out.append(data)
        self._out_bytes += len(data)

    def flush(self) -> None:
        """Write what was put."""
        if not self._out:
            return
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        self._out_bytes = 0
        if self._closed:
            return
        self._transport.write(data)
        if self._paused and self._transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
            self.abort()

    def flush_soon(self) -> None:
        """Write what was put before the event loop turns to others, unless more is put and written until then."""
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._flushing = False
        self.flush()

    async def writable(self) -> None:
        """Write what was put, and wait until the peer has read enough of it. Raises CallError where nobody is left."""
        self.flush()
        while self._paused:
            await self._change()

    async def windows(self, call: Call) -> None:
        """Write what was put, and wait until the peer takes data of this call. Raises CallError as `writable` does."""
        self.flush()
        while self.window <= 0 or call.window <= 0:
            await self._change()

    async def _change(self) -> None:
        if self._closed:
            raise CallError(Status.UNAVAILABLE, "The connection is closed.")
        waiter = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        try:
            await waiter
        finally:
            # Calls may be reset over and over while nothing wakes who waits.
            self._waiters.pop(waiter, None)

    def drain(self) -> None:
        """Ask the peer to begin no more calls here; those that it begins before it hears of it are served."""
        self.put(frames.goaway(frames.LARGEST_WINDOW, Code.NO_ERROR))
        self.flush()

    async def idle(self) -> None:
        """Wait until no call runs."""
        await self._idle.wait()

    async def gone(self) -> None:
        """Wait until the peer has read what was written, and nothing is left."""
        await self._gone.wait()

    def cancel(self) -> None:
        """Cancel what runs, and say so."""
        for call in tuple(self._calls.values()):
            call.status = Status.UNAVAILABLE
            if call.task is not None:
                call.task.cancel()

    def close(self) -> None:
        """Hang up once what was written has been read."""
        if not self._closed:
            self._end(Code.NO_ERROR)

    def abort(self) -> None:
        """Hang up at once."""
        self._closed = True
        self._transport.abort()

    def _end(self, code: Code) -> None:
        self.put(frames.goaway(self._last, code))
        self.flush()
        self._closed = True
        # Nobody can be answered any more, and the transport may wait for a peer that does not read.
        for call in tuple(self._calls.values()):
            self._drop(call)
        self._transport.close()
        self._lingering = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.abort)

    def _read(self, data: bytes) -> None:
        place = self._finish_unread(data) if self._unread or not self._prefaced else 0
        end = len(data)
        while end - place >= frames.FRAME_HEAD:
            begin = place + frames.FRAME_HEAD
            size = _size(data, place)
            if end - begin < size:
                break
            number = int.from_bytes(data[place + 5 : begin], "big") & frames.LARGEST_WINDOW
            self._frame(data[place + 3], data[place + 4], number, data[begin : begin + size])
            place = begin + size
        if place < end:
            self._unread += data[place:]

    def _finish_unread(self, data: bytes) -> int:
        """Read the preface, or the frame that was cut off, with the bytes that finish it; how many those are."""
        if not self._prefaced:
            return self._preface(data)
        place = 0
        head = frames.FRAME_HEAD
        if len(self._unread) < head:
            place = head - len(self._unread)
            self._unread += data[:place]
            if len(self._unread) < head:
                return len(data)
        missing = head + _size(self._unread, 0) - len(self._unread)
        self._unread += data[place : place + missing]
        place += missing
        if place > len(data):
            return len(data)
        whole, self._unread = self._unread, b""
        number = int.from_bytes(whole[5:head], "big") & frames.LARGEST_WINDOW
        self._frame(whole[3], whole[4], number, whole[head:])
        return place

    def _preface(self, data: bytes) -> int:
        size = len(frames.PREFACE)
        place = size - len(self._unread)
        self._unread += data[:place]
        if not frames.PREFACE.startswith(self._unread):
            raise ProtocolError(Code.PROTOCOL_ERROR, "it does not speak HTTP/2")
        if len(self._unread) < size:
            return len(data)
        self._prefaced, self._unread = True, b""
        return place

    def _frame(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if self._block is not None and kind != frames.CONTINUATION:
            raise ProtocolError(Code.PROTOCOL_ERROR, "another frame within a block of headers")
        match kind:
            case frames.DATA:
                self._data(flags, number, payload)
            case frames.HEADERS:
                self._headers(flags, number, payload)
            case frames.CONTINUATION:
                self._continuation(flags, number, payload)
            case frames.RST_STREAM:
                self._reset(number, payload)
            case frames.SETTINGS:
                self._settings(flags, number, payload)
            case frames.PING:
                self._ping(flags, number, payload)
            case frames.WINDOW_UPDATE:
                self._window_update(number, frames.read_number(payload))
            case frames.PUSH_PROMISE:
                raise ProtocolError(Code.PROTOCOL_ERROR, "a client does not push")
            case _:
                # PRIORITY and GOAWAY change nothing here; unknown kinds are to be ignored.
                pass

    def _data(self, flags: int, number: int, payload: bytes) -> None:
        if number == 0 or number > self._last:
            raise ProtocolError(Code.PROTOCOL_ERROR, "data of a stream that was never begun")
        self._received += len(payload)
        if self._received > CONNECTION_WINDOW:
            raise ProtocolError(Code.FLOW_CONTROL_ERROR, "more data than the connection's window")
        if self._received >= CONNECTION_WINDOW // 2:
            # Bounds are the streams': what was received is held by them, or was dropped.
            self.put(frames.window_update(0, self._received))
            self._received = 0
        call = self._calls.get(number)
        if call is None:
            # The client of one that ended here may have said more before it heard of it.
            if self._former.get(number):
                raise ProtocolError(Code.STREAM_CLOSED, "data of a stream that its client has ended")
            return
        try:
            call.take(frames.unpadded(payload, flags), bool(flags & frames.END_STREAM), len(payload))
        except CallError as error:
            self._fail(call, error)

    def _headers(self, flags: int, number: int, payload: bytes) -> None:
        if number % 2 == 0:
            raise ProtocolError(Code.PROTOCOL_ERROR, "a stream that is not a client's")
        payload = frames.unpadded(payload, flags)
        if flags & frames.HAS_PRIORITY:
            if len(payload) < 5:
                raise ProtocolError(Code.FRAME_SIZE_ERROR, "headers without their priority")
            payload = payload[5:]
        if flags & frames.END_HEADERS:
            self._head(flags, number, payload)
        else:
            self._block = (flags, number, bytearray(payload))

    def _continuation(self, flags: int, number: int, payload: bytes) -> None:
        if self._block is None or self._block[1] != number:
            raise ProtocolError(Code.PROTOCOL_ERROR, "headers that continue none")
        first, _, block = self._block
        block += payload
        # An empty frame costs the peer nothing and would keep us waiting for ever.
        if len(block) > heads.HEADER_BYTES or not payload:
            raise ProtocolError(Code.ENHANCE_YOUR_CALM, "too long a block of headers")
        if flags & frames.END_HEADERS:
            self._block = None
            self._head(first, number, bytes(block))

    def _head(self, flags: int, number: int, block: bytes) -> None:
        # Decoded in any case, or no later block could be.
        head = self._heads.read(block)
        ended = bool(flags & frames.END_STREAM)
        if number <= self._last:
            self._trailers(number, ended)
            return
        self._last = number
        if self._running >= STREAMS:
            self._remember(number, ended)
            self.put(frames.reset(number, Code.REFUSED_STREAM))
            return
        if head.method != "POST" or not head.content_type.startswith("application/grpc"):
            self._remember(number, ended)
            self.put(frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, number, heads.NOT_GRPC))
            if not ended:
                self.put(frames.reset(number, Code.NO_ERROR))
            return
        call = Call(self, number, head, self._message_bytes)
        if ended:
            call.take(b"", ended=True, size=0)
        handler = self._handlers.get(head.path)
        if handler is None:
            self._remember(number, ended)
            call.finish(Status.UNIMPLEMENTED, "There is no such method here.")
            return
        self._begin(call, handler, head.timeout)

    def _trailers(self, number: int, ended: bool) -> None:
        """Nothing in them is of use here."""
        call = self._calls.get(number)
        if call is not None:
            if not ended:
                raise ProtocolError(Code.PROTOCOL_ERROR, "trailers that are not the end")
            call.take(b"", ended=True, size=0)
            return
        by_client = self._former.get(number)
        if by_client is None:
            raise ProtocolError(Code.PROTOCOL_ERROR, "a stream that cannot be begun any more")
        if by_client:
            raise ProtocolError(Code.STREAM_CLOSED, "headers of a stream that its client has ended")

    def _remember(self, number: int, by_client: bool) -> None:
        """That the stream was, and whether its client ended it; for as many streams as there may be at a time."""
        self._former[number] = by_client
        if len(self._former) > STREAMS:
            self._former.popitem(last=False)

    def _begin(self, call: Call, handler: Handler, timeout: float | None) -> None:
        self._calls[call.number] = call
        self._running += 1
        self._idle.clear()
        loop = asyncio.get_running_loop()
        timer = None if timeout is None else loop.call_later(timeout, self._overdue, call)
        call.task = loop.create_task(self._serve(call, handler))
        call.task.add_done_callback(partial(self._done, call, timer))

    async def _serve(self, call: Call, handler: Handler) -> None:
        try:
            await handler(call)
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # Envoy takes a good end for leave to go on, so none follows a cancellation that was not passed on.
                raise CallError(call.status, "The call was cancelled.")
            call.finish()
        except CallError as error:
            call.finish(error.status, str(error))
        except Exception as error:
            # Its text may quote the request.
            logger.error("call failed", extra={"fields": {"error_type": type(error).__qualname__}})
            call.finish(Status.INTERNAL, "The call failed.")
        finally:
            # Not a turn of the event loop later, when the task is seen to have ended.
            self.flush()

    def _done(self, call: Call, timer: asyncio.TimerHandle | None, task: asyncio.Task[None]) -> None:
        """A call's task has ended, or was cancelled, which it may be before it has begun."""
        if timer is not None:
            timer.cancel()
        if task.cancelled():
            call.finish(call.status, "The call was cancelled.")
        if self._calls.pop(call.number, None) is not None:
            self._remember(call.number, call.ended)
        self._running -= 1
        if not self._running:
            self._idle.set()
        self.flush()

    def _overdue(self, call: Call) -> None:
        call.status = Status.DEADLINE_EXCEEDED
        if call.task is not None:
            call.task.cancel()

    def _fail(self, call: Call, error: CallError) -> None:
        call.finish(error.status, str(error))
        self._drop(call)

    def _drop(self, call: Call, by_client: bool = False) -> None:
        call.abandon()
        if self._calls.pop(call.number, None) is not None:
            self._remember(call.number, by_client or call.ended)
        if call.task is not None:
            call.task.cancel()

    def _reset(self, number: int, payload: bytes) -> None:
        frames.read_number(payload)
        if number == 0 or number > self._last:
            raise ProtocolError(Code.PROTOCOL_ERROR, "the end of a stream that was never begun")
        call = self._calls.get(number)
        if call is not None:
            self._drop(call, by_client=True)
            self._count_reset()

    def _count_reset(self) -> None:
        now = asyncio.get_running_loop().time()
        self._resets = max(0.0, self._resets - (now - self._reset_at) * RESETS_A_SECOND) + 1
        self._reset_at = now
        if self._resets > RESETS:
            raise ProtocolError(Code.ENHANCE_YOUR_CALM, "calls are begun and reset over and over")

    def _settings(self, flags: int, number: int, payload: bytes) -> None:
        if number != 0:
            raise ProtocolError(Code.PROTOCOL_ERROR, "settings of a stream")
        if flags & frames.ACK:
            self._heads.without_table()
            return
        window = self.stream_window
        for key, value in frames.read_settings(payload):
            if key == Setting.INITIAL_WINDOW_SIZE:
                if value > frames.LARGEST_WINDOW:
                    raise ProtocolError(Code.FLOW_CONTROL_ERROR, "a window that is too large")
                window = value
            elif key == Setting.MAX_FRAME_SIZE:
                if not frames.LEAST_FRAME_BYTES <= value < 1 << 24:
                    raise ProtocolError(Code.PROTOCOL_ERROR, "a frame size that cannot be")
                self.frame_bytes = value
        # Once a frame, which may say thousands of windows: only the last counts.
        if window != self.stream_window:
            for call in self._calls.values():
                call.window += window - self.stream_window
                if call.window > frames.LARGEST_WINDOW:
                    raise ProtocolError(Code.FLOW_CONTROL_ERROR, "settings that make a window too large")
            self.stream_window = window
        self.put(frame(frames.SETTINGS, frames.ACK, 0))
        self._wake()

    def _ping(self, flags: int, number: int, payload: bytes) -> None:
        if number != 0 or len(payload) != 8:
            raise ProtocolError(Code.PROTOCOL_ERROR, "a ping that is none")
        if not flags & frames.ACK:
            self.put(frame(frames.PING, frames.ACK, 0, payload))

    def _window_update(self, number: int, size: int) -> None:
        if number == 0:
            self.window += size
            if not size or self.window > frames.LARGEST_WINDOW:
                raise ProtocolError(Code.FLOW_CONTROL_ERROR, "a window that cannot be")
        else:
            call = self._calls.get(number)
            if call is None:
                return
            call.window += size
            if not size or call.window > frames.LARGEST_WINDOW:
                call.abandon()
                self.put(frames.reset(number, Code.FLOW_CONTROL_ERROR))
                self._drop(call)
        self._wake()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


def _size(data: bytes, place: int) -> int:
    size = int.from_bytes(data[place : place + 3], "big")
    if size > frames.LEAST_FRAME_BYTES:
        raise ProtocolError(Code.FRAME_SIZE_ERROR, "a frame that is too long")
    return size
