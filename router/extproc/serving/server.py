"""Listens for connections, in the clear or with TLS, and ends them when a worker drains."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from router.extproc.certificates import CertificateFiles
from router.extproc.room import Room
from router.extproc.serving.connection import Connection, Handler

logger = logging.getLogger(__name__)

BACKLOG: Final = 1024
"""Connections that may wait to be accepted; an Envoy has one for each of its threads."""

CLOSE_SECONDS: Final = 1.0
"""How long calls that are cancelled have to end, and clients to read of it."""

KEEPALIVE: Final = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3))
"""Seconds of silence after which a client is asked whether it is there, between such questions, and how many there are:
one whose machine is gone would otherwise keep its calls, and the bodies in them, for ever."""

HANDSHAKE_SECONDS: Final = 5.0
HANDSHAKES: Final = 128
"""TLS handshakes at a time, each with so many seconds. Past that number the oldest is given up: clients that stall keep
nobody out, since whoever means it needs milliseconds."""


class Server:
    """Serves `handlers`, by path, on a socket that is bound already; `tls` files are looked at with each connection."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        listener: socket.socket,
        message_bytes: int,
        tls: CertificateFiles | None = None,
        in_hand: Room | None = None,
    ) -> None:
        """`in_hand` bounds what has come of messages, of all connections together, and is not taken yet."""
        self._in_hand = in_hand if in_hand is not None else Room()
        self._handlers = dict(handlers)
        self._listener = listener
        self._message_bytes = message_bytes
        self._tls = tls
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._handshakes: dict[asyncio.Task[None], None] = {}

    async def start(self) -> None:
        """Accept connections. Raises CertificateError, OSError."""
        self._listener.listen(BACKLOG)
        self._listener.setblocking(False)
        if self._listener.family != socket.AF_UNIX:
            # Connections have it from here.
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in KEEPALIVE:
                self._listener.setsockopt(socket.IPPROTO_TCP, option, value)
        if self._tls is not None:
            self._accepting = asyncio.create_task(self._accept(self._tls, self._tls.read().context))
            return
        loop = asyncio.get_running_loop()
        if self._listener.family == socket.AF_UNIX:
            self._server = await loop.create_unix_server(self._connection, sock=self._listener)
        else:
            self._server = await loop.create_server(self._connection, sock=self._listener)

    async def stop(self, grace: float) -> None:
        """Take no new connections and calls, give those that run `grace` seconds, then cancel them."""
        if self._server is not None:
            self._server.close()
        if self._accepting is not None:
            self._accepting.cancel()
            self._listener.close()
        for handshake in tuple(self._handshakes):
            handshake.cancel()
        connections = tuple(self._connections)
        for connection in connections:
            connection.drain()
        await _each(connections, Connection.idle, grace)
        for connection in connections:
            connection.cancel()
        await _each(connections, Connection.idle, CLOSE_SECONDS)
        for connection in tuple(self._connections):
            connection.close()
        await _each(connections, Connection.gone, CLOSE_SECONDS)
        for connection in tuple(self._connections):
            connection.abort()
        # Transports end in the event loop's next turn.
        await asyncio.sleep(0)

    def _connection(self) -> Connection:
        return Connection(self._handlers, self._message_bytes, self._connections, self._in_hand)

    async def _accept(self, files: CertificateFiles, context: ssl.SSLContext) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                # Too many open files, or a client that left at once.
                logger.warning("connection not accepted", extra={"fields": {"why": error.strerror}})
                await asyncio.sleep(0.1)
                continue
            found = files.changed()
            if found is not None:
                context = found.context
            handshake = asyncio.create_task(self._shake_hands(client, context))
            self._handshakes[handshake] = None
            handshake.add_done_callback(lambda task: self._handshakes.pop(task, None))
            if len(self._handshakes) > HANDSHAKES:
                oldest = next(iter(self._handshakes))
                del self._handshakes[oldest]
                oldest.cancel()

    async def _shake_hands(self, client: socket.socket, context: ssl.SSLContext) -> None:
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                self._connection, client, ssl=context, ssl_handshake_timeout=HANDSHAKE_SECONDS
            )
        except OSError as error:
            client.close()
            logger.debug("no handshake", extra={"fields": {"error_type": type(error).__qualname__}})
        except BaseException:
            client.close()
            raise


async def _each(
    connections: Sequence[Connection], state: Callable[[Connection], Awaitable[None]], seconds: float
) -> None:
    """Wait until all of them are so, for so long at most."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            for connection in connections:
                await state(connection)
