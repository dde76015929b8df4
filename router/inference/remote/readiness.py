"""Waits until servers are ready that were not, so that a worker that could not start knows when to try again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from router.inference.executor import Overloaded
from router.inference.remote.access import read_access
from router.inference.remote.backoff import pause
from router.inference.remote.errors import RemoteError, RemoteSetupError
from router.inference.remote.server import RemoteServer

FIRST_SECONDS = 1.0
MOST_SECONDS = 15.0
"""Between looks, from the first on and in the end."""


async def until_ready(servers: Sequence[RemoteServer]) -> None:
    """Return once all of them are ready and their files can be read, but not at once; else when cancelled."""
    attempt = 0
    while True:
        await asyncio.sleep(pause(attempt, FIRST_SECONDS, MOST_SECONDS))
        attempt += 1
        try:
            for server in servers:
                await _look(server)
        except (RemoteError, RemoteSetupError, Overloaded):
            continue
        return


async def _look(server: RemoteServer) -> None:
    # Loads gRPC, which processes without such servers go without.
    from router.inference.remote.client import RemoteClient  # noqa: PLC0415

    client = RemoteClient(server, await asyncio.to_thread(read_access, server))
    try:
        await client.require_ready()
    finally:
        await client.close()
