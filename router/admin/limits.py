"""Bounds on what clients of the admin and probe addresses may cost: connections, time to ask, time to listen.

The supervisor's process serves them, and needs its file descriptors for workers: whoever opens connections by the
thousand, or says a byte a second, must not take those away.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from router.admin.guard import HEADERS

CONNECTIONS: Final = 64
"""At a listener at a time, those with which TLS is still being agreed among them; more are closed at once."""

ASK_SECONDS: Final = 10.0
"""What a client has to send the head of a request, after it connected or after the last answer."""

ANSWER_SECONDS: Final = 100.0
"""What an answer may take: reading the body, the work, and the client's reading of it."""

LOOK_SECONDS: Final = 2.0


class BoundedListener(socket.socket):
    """Accepts no more connections than may be open at a time."""

    most: int = CONNECTIONS
    opened: list[socket.socket]

    def accept(self) -> tuple[socket.socket, Any]:
        """See `socket.accept`; a connection past the bound is closed, and the loop told that there is none."""
        accepted = super().accept()
        # A socket that was closed has no file any more.
        self.opened = [one for one in self.opened if one.fileno() >= 0]
        if len(self.opened) >= self.most:
            accepted[0].close()
            raise BlockingIOError
        self.opened.append(accepted[0])
        if accepted[0].family != socket.AF_UNIX:
            # An answer goes out in two pieces, and the second would wait for the client's word about the first.
            accepted[0].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return accepted


def bounded(listener: socket.socket) -> BoundedListener:
    """The same listener, bounded; the one given is not to be used any more."""
    made = BoundedListener(listener.family, listener.type, listener.proto, fileno=listener.detach())
    made.opened = []
    return made


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that waits for clients only so long: uvicorn bounds the pause between requests alone."""

    ask_seconds: float = ASK_SECONDS
    answer_seconds: float = ANSWER_SECONDS
    look_seconds: float = LOOK_SECONDS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._doing: object = None
        self._since = self.loop.time()
        self._watch = self.loop.call_later(self.look_seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._watch.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """See `H11Protocol`: what is no HTTP reaches no application, which would give its answers their headers."""
        headers = [
            ("content-type", "text/plain; charset=utf-8"),
            ("connection", "close"),
            *HEADERS.items(),
        ]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=msg.encode("ascii")),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _look(self) -> None:
        """End a connection on which the same has been going on for too long."""
        answering = self.cycle is not None and not self.cycle.response_complete
        doing = (id(self.cycle), answering)
        if doing != self._doing:
            self._doing, self._since = doing, self.loop.time()
        elif self.loop.time() - self._since > (self.answer_seconds if answering else self.ask_seconds):
            self.transport.abort()
            return
        self._watch = self.loop.call_later(self.look_seconds, self._look)
