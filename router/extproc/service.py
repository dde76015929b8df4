"""The gRPC server that Envoy talks to: `ext_proc` and health, on a Unix socket or a TCP address.

It binds, serves, reports its health and drains. What is decided about a request is the judge's; how an exchange goes is
`exchange.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from router.extproc.certificates import TlsFiles
from router.extproc.exchange import Exchange, Judge
from router.extproc.listening import bind
from router.extproc.onlooker import TellResponse
from router.extproc.room import Room
from router.proto import ext_proc_pb2 as pb
from router.telemetry.instruments import Instruments

SERVICE_NAME = "envoy.service.ext_proc.v3.ExternalProcessor"
"""Envoy's name for the service; our messages are declared in a package of our own."""

HEADERS_BYTES = 1 << 20
"""Room in a message beside the body: Envoy takes 60 KiB of request headers unless told otherwise."""


class Service:
    """A server's life: `start`, `set_ready`, `drain`. Not ready at first, so that Envoy waits for a warm worker."""

    def __init__(self, server: grpc.aio.Server, statuses: Any, socket: Path | None, socket_mode: int) -> None:
        self._server = server
        self._statuses = statuses
        self._socket = socket
        self._socket_mode = socket_mode

    async def start(self) -> None:
        """Accept connections."""
        await self.set_ready(False)
        await self._server.start()
        if self._socket is not None:
            self._socket.chmod(self._socket_mode)

    async def set_ready(self, ready: bool) -> None:
        """What the health check says from now on; once drained it stays NOT_SERVING."""
        status = health_pb2.HealthCheckResponse.SERVING if ready else health_pb2.HealthCheckResponse.NOT_SERVING
        for name in ("", SERVICE_NAME):
            await self._statuses.set(name, status)

    async def drain(self, notice: float, grace: float) -> None:
        """Say NOT_SERVING, keep serving for `notice` seconds, then let running exchanges end for up to `grace` seconds.

        `notice` must be longer than Envoy's health check interval, or requests are still on their way when it ends.
        """
        await self._statuses.enter_graceful_shutdown()
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
) -> Service:
    """A service bound to `address`, not yet started; needs a running event loop.

    `address` is `unix:/path` or `host:port`. `body_bytes` is the largest body that Envoy is set up to send, `deadline`
    the seconds that the judge has for a request, `socket_mode` the permissions of a Unix socket. `tell_response` is
    given what was read of responses that Envoy shows. `tls` is for TCP. `room` bounds the
    bodies that exchanges have in hand together. Raises SocketUnavailableError.
    """
    server = grpc.aio.server(options=_options(body_bytes))
    statuses = health.aio.HealthServicer()  # type: ignore[attr-defined]
    health_pb2_grpc.add_HealthServicer_to_server(statuses, server)
    server.add_generic_rpc_handlers((_handlers(judge, deadline, instruments, body_bytes, tell_response, room),))
    return Service(server, statuses, bind(server, address, tls), socket_mode)


def _handlers(
    judge: Judge,
    deadline: float,
    instruments: Instruments,
    body_bytes: int,
    tell_response: TellResponse | None,
    room: Room | None,
) -> grpc.GenericRpcHandler[Any, Any]:
    async def process(
        messages: AsyncIterable[pb.ProcessingRequest], _context: object
    ) -> AsyncIterator[pb.ProcessingResponse]:
        exchange = Exchange(judge, deadline, instruments, body_bytes, tell_response, room)
        stream: Any = aiter(messages)
        try:
            async for response in exchange.answers(stream):
                yield response
        finally:
            # gRPC's iterator keeps its last message, a body of megabytes, and is part of a cycle: without this it would
            # be there until the collector has come by twice.
            await stream.aclose()

    method = grpc.stream_stream_rpc_method_handler(
        process,
        request_deserializer=pb.ProcessingRequest.FromString,
        response_serializer=pb.ProcessingResponse.SerializeToString,
    )
    return grpc.method_handlers_generic_handler(SERVICE_NAME, {"Process": method})


def _options(body_bytes: int) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", body_bytes + HEADERS_BYTES),
        # A replaced body may be a little longer than the one that came.
        ("grpc.max_send_message_length", body_bytes + HEADERS_BYTES),
        # Envoy's keepalive pings an idle connection more often than gRPC's five minutes; it would be cut off for that.
        ("grpc.http2.max_ping_strikes", 0),
        # A second process on the same TCP port must fail instead of sharing it.
        ("grpc.so_reuseport", 0),
    ]
