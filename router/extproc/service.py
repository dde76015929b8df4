"""The server that Envoy talks to: `ext_proc` and health, on a Unix socket or a TCP address.

It binds, serves, reports its health and drains. What is decided about a request is the judge's; how an exchange goes is
`exchange.py`; gRPC itself is `serving`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path

from router.extproc.answers.exchange import Checking
from router.extproc.certificates import CertificateError, CertificateFiles, TlsFiles
from router.extproc.exchange import Exchange, Judge
from router.extproc.listening import bound
from router.extproc.onlooker import TellResponse
from router.extproc.room import Room
from router.extproc.serving.call import Call
from router.extproc.serving.connection import Handler
from router.extproc.serving.health import Health
from router.extproc.serving.server import Server
from router.extproc.sockets import SocketUnavailableError
from router.extproc.unary import Unary, served
from router.proto import ext_proc_pb2 as pb
from router.telemetry.instruments import Instruments

SERVICE_NAME = "envoy.service.ext_proc.v3.ExternalProcessor"
"""Envoy's name for the service; our messages are declared in a package of our own."""

HEADERS_BYTES = 1 << 20
"""Room in a message beside the body: Envoy takes 60 KiB of request headers unless told otherwise."""


class Service:
    """A server's life: `start`, `set_ready`, `drain`. Not ready at first, so that Envoy waits for a warm worker."""

    def __init__(self, server: Server, health: Health, socket: Path | None, socket_mode: int) -> None:
        self._server = server
        self._health = health
        self._socket = socket
        self._socket_mode = socket_mode

    async def start(self) -> None:
        """Accept connections."""
        if self._socket is not None:
            self._socket.chmod(self._socket_mode)
        await self._server.start()

    async def set_ready(self, ready: bool) -> None:
        """What the health check says from now on; once drained it stays NOT_SERVING."""
        self._health.set(ready)

    async def drain(self, notice: float, grace: float) -> None:
        """Say NOT_SERVING, keep serving for `notice` seconds, then let running exchanges end for up to `grace` seconds.

        `notice` must be longer than Envoy's health check interval, or requests are still on their way when it ends.
        """
        self._health.shut_down()
        await asyncio.sleep(notice)
        await self._server.stop(grace)


def build_service(
    judge: Judge,
    *,
    address: str,
    body_bytes: int,
    deadline: float,
    instruments: Instruments,
    socket_mode: int = 0o600,
    tell_response: TellResponse | None = None,
    tls: TlsFiles | None = None,
    room: Room | None = None,
    checking: Checking | None = None,
    unary: Mapping[str, Unary] | None = None,
) -> Service:
    """A service bound to `address`, not yet started; needs a running event loop.

    `address` is `unix:/path` or `host:port`. `body_bytes` is the largest body that Envoy is set up to send, `deadline`
    the seconds that the judge has for a request, `socket_mode` the permissions of a Unix socket. `tell_response` is
    given what was read of responses that Envoy shows. `tls` is for TCP. `room` bounds the bodies that exchanges have in
    hand together, and what has come of messages, `checking` lends the checks of answers. `unary` has
    what else is served there, by path. Raises SocketUnavailableError.
    """
    health = Health(("", SERVICE_NAME))
    handlers = {
        f"/{SERVICE_NAME}/Process": _process(judge, deadline, instruments, body_bytes, tell_response, room, checking),
        **health.handlers,
        **{path: served(answer) for path, answer in (unary or {}).items()},
    }
    files = CertificateFiles(tls) if tls is not None else None
    try:
        if files is not None:
            files.read()
    except CertificateError as error:
        raise SocketUnavailableError(str(error)) from error
    listener, path = bound(address)
    # A replaced body may be a little longer than the one that came; nobody bounds what is sent.
    server = Server(handlers, listener, body_bytes + HEADERS_BYTES, files, room)
    return Service(server, health, path, socket_mode)


def _process(
    judge: Judge,
    deadline: float,
    instruments: Instruments,
    body_bytes: int,
    tell_response: TellResponse | None,
    room: Room | None,
    checking: Checking | None,
) -> Handler:
    async def process(call: Call) -> None:
        exchange = Exchange(judge, deadline, instruments, body_bytes, tell_response, room, call.metadata, checking)
        async with contextlib.aclosing(exchange.answers(_Messages(call))) as answers:
            async for response in answers:
                await call.send(response.SerializeToString())

    return process


class _Messages:
    """The messages of a call, read."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def __aiter__(self) -> _Messages:
        return self

    async def __anext__(self) -> pb.ProcessingRequest:
        return pb.ProcessingRequest.FromString(await anext(self._call))
