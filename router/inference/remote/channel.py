"""A connection to one server: opened when it is first needed, opened anew when it is no good any more.

It belongs to one event loop. What is called over it, for how long and how often, is the client's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

import grpc
import grpc.aio

from router.inference.remote.access import Access, may_change, read_access
from router.inference.remote.errors import RemoteSetupError
from router.inference.remote.server import RemoteServer

logger = logging.getLogger(__name__)

SERVICE: Final = "inference.GRPCInferenceService"
"""The protocol's name for the service; our messages are declared in a package of our own."""

ACCESS_SECONDS: Final = 60.0
"""Between looks at the files of certificates and tokens, which are replaced well before they are worth nothing."""

REOPEN_SECONDS: Final = 10.0
"""A connection is given up at most so often."""


class Channel:
    """Calls to the server's methods. What goes in and out is bytes."""

    def __init__(self, server: RemoteServer, access: Access) -> None:
        self._server = server
        self._access = access
        self._channel: grpc.aio.Channel | None = None
        self._methods: dict[str, Callable[..., Any]] = {}
        self._looked = self._opened = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def call(self, method: str, request: bytes, timeout: float) -> Any:
        """The call, under way; awaited it gives the answer's bytes or raises grpc.RpcError or grpc.aio.UsageError."""
        if self._closed:
            raise grpc.aio.UsageError("the connection is closed")
        self._look_at_files()
        if self._channel is None:
            self._open()
        token = self._access.token
        metadata = (("authorization", f"Bearer {token}"),) if token else None
        return self._methods_of(method)(request, timeout=timeout, metadata=metadata)

    def renew(self) -> None:
        """Connect anew for what is called from here on: packets may go nowhere although nobody has hung up."""
        now = asyncio.get_running_loop().time()
        if self._channel is None or now - self._opened < REOPEN_SECONDS:
            return
        self._let_go()

    async def close(self) -> None:
        """End every call."""
        self._closed = True
        for task in tuple(self._tasks):
            task.cancel()
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close(None)

    def _methods_of(self, method: str) -> Callable[..., Any]:
        if method not in self._methods:
            assert self._channel is not None
            # Bytes both ways: a large request is written down in a thread, an answer is read where it is looked at.
            self._methods[method] = self._channel.unary_unary(f"/{SERVICE}/{method}", _as_it_is, _as_it_is)
        return self._methods[method]

    def _open(self) -> None:
        server, access = self._server, self._access
        self._opened = self._looked = asyncio.get_running_loop().time()
        target = f"dns:///{server.target}"
        options = _options(server)
        if not server.secure:
            self._channel = grpc.aio.insecure_channel(target, options)
            return
        credentials = grpc.ssl_channel_credentials(access.ca, access.key, access.cert)
        self._channel = grpc.aio.secure_channel(target, credentials, options)

    def _let_go(self) -> None:
        """Calls that are under way get the time they were given."""
        channel, self._channel = self._channel, None
        self._methods.clear()
        if channel is not None:
            self._beside(channel.close(self._server.timeout))

    def _look_at_files(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._looked and now - self._looked >= ACCESS_SECONDS and may_change(self._server):
            self._looked = now
            self._beside(self._look())

    async def _look(self) -> None:
        try:
            access = await asyncio.to_thread(read_access, self._server)
        except RemoteSetupError as error:
            logger.warning("access to a remote encoder not read again", extra={"fields": {"why": str(error)}})
            return
        before, self._access = self._access, access
        if (before.ca, before.cert, before.key) != (access.ca, access.cert, access.key):
            self._let_go()

    def _beside(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _as_it_is(message: bytes) -> bytes:
    return message


def _options(server: RemoteServer) -> list[tuple[str, Any]]:
    options: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", server.message_bytes),
        ("grpc.max_send_message_length", server.message_bytes),
        # Retries are the client's, which knows how much time is left.
        ("grpc.enable_retries", 0),
        # A proxy of the environment is meant for the world outside.
        ("grpc.enable_http_proxy", 0),
        # A new channel is a new connection.
        ("grpc.use_local_subchannel_pool", 1),
        # Each of a name's addresses: a headless service's replicas share the work.
        ("grpc.lb_policy_name", "round_robin"),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 2000),
        ("grpc.primary_user_agent", "pointsman"),
    ]
    if server.server_name:
        options.append(("grpc.ssl_target_name_override", server.server_name))
    return options
