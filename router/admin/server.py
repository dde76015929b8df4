"""Serves the admin application from a thread of the supervisor, with an event loop of its own.

The supervisor's loop never waits for a client, and no signal is taken from it. Whoever can connect is answered, so the
listener belongs on a loopback address. What is answered is `app.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Iterator

import uvicorn
from starlette.applications import Starlette

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 1
"""How long running answers have to end; each takes milliseconds."""

STOP_SECONDS = 3.0
"""How long the end waits for the thread, which may be in the middle of closing."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at this literal IP address; raises OSError, for a port in use too."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


@contextlib.contextmanager
def serving(app: Starlette, listener: socket.socket) -> Iterator[None]:
    """Answer at the listener while the block runs; the listener is closed with it."""
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        # Its lines go where all others go, and none is written for a probe that comes every second.
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    server = uvicorn.Server(config)
    host, port = listener.getsockname()[:2]
    thread = threading.Thread(target=_run, args=(server, listener), name="admin", daemon=True)
    thread.start()
    logger.info("admin listens", extra={"fields": {"host": host, "port": port}})
    try:
        yield
    finally:
        # Read ten times a second by the server's loop.
        server.should_exit = True
        thread.join(STOP_SECONDS)


def _run(server: uvicorn.Server, listener: socket.socket) -> None:
    with listener:
        try:
            asyncio.run(server.serve(sockets=[listener]))
        except Exception:
            # The workers serve on; whoever probes this address finds it gone.
            logger.exception("admin ended")
