"""Serves the admin applications from a thread of the supervisor, with an event loop of its own.

The supervisor's loop never waits for a client, and no signal is taken from it. What is answered is `app.py`, and to
whom `guard.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp

from router.admin.limits import PatientProtocol, bounded
from router.admin.tls import AdminTls

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 1
"""How long running answers have to end; most take milliseconds."""

STOP_SECONDS = 3.0
"""How long the end waits for the thread, which may be in the middle of closing."""

HEAD_BYTES = 32 * 1024
"""Largest head of a request."""


@dataclass(frozen=True, slots=True)
class Front:
    """An application at a listener; `name` is what the log calls it."""

    name: str
    app: ASGIApp
    listener: socket.socket
    tls: AdminTls | None = None


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at this literal IP address; raises OSError, for a port in use too."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


async def nothing_to_close() -> None:
    """For applications that hold nothing."""


@contextlib.contextmanager
def serving(fronts: Sequence[Front], close: Callable[[], Awaitable[None]] = nothing_to_close) -> Iterator[None]:
    """Answer at the listeners while the block runs; they are closed with it.

    `close` is called at the end, in the loop that the applications ran in. Raises TlsError.
    """
    servers = [_Server(front) for front in fronts]
    thread = threading.Thread(target=_run, args=(servers, close), name="admin", daemon=True)
    thread.start()
    for front in servers:
        logger.info(f"{front.name} listens", extra={"fields": front.place})
    try:
        yield
    finally:
        for server in servers:
            # Read ten times a second by the server's loop.
            server.uvicorn.should_exit = True
        thread.join(STOP_SECONDS)


class _Server:
    """A front and what serves it."""

    def __init__(self, front: Front) -> None:
        self.name = front.name
        self.tls = front.tls
        self.context: ssl.SSLContext | None = None if front.tls is None else front.tls.context()
        name = front.listener.getsockname()
        self.place = {"socket": str(name)} if isinstance(name, str) else {"host": name[0], "port": name[1]}
        self.listener = bounded(front.listener)
        context = self.context
        config = uvicorn.Config(
            front.app,
            http=PatientProtocol,
            ws="none",
            lifespan="off",
            # Its lines say nothing that the application does not say itself, without quoting what was sent.
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=HEAD_BYTES,
            timeout_graceful_shutdown=DRAIN_SECONDS,
            ssl_context_factory=None if context is None else lambda _config, _default: context,
        )
        self.uvicorn = uvicorn.Server(config)

    async def serve(self) -> None:
        following = None
        if self.tls is not None and self.context is not None:
            following = asyncio.create_task(self.tls.follow(self.context))
        try:
            await self.uvicorn.serve(sockets=[self.listener])
        finally:
            if following is not None:
                following.cancel()


def _run(servers: Sequence[_Server], close: Callable[[], Awaitable[None]]) -> None:
    async def serve_all() -> None:
        try:
            await asyncio.gather(*(server.serve() for server in servers))
        finally:
            await close()

    try:
        asyncio.run(serve_all())
    except Exception:
        # The workers serve on; whoever probes this address finds it gone.
        logger.exception("admin ended")
    finally:
        for server in servers:
            server.listener.close()
