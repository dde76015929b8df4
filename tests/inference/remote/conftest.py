from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from stand_in import StandIn, standing_in, well

from router.inference.open import open_remote
from router.inference.remote.session import RemoteSession
from router.packs.store import Pack


@pytest.fixture
async def server(vision_pack: Pack) -> AsyncIterator[StandIn]:
    """A stand-in that serves the tiny vision tower, well."""
    async with standing_in(StandIn(vision_pack.folder / "vision.onnx", well)) as here:
        yield here


@pytest.fixture
async def opened(vision_pack: Pack) -> AsyncIterator[Callable[..., Any]]:
    """`await opened(server, **facts)` is a session of the tiny vision tower at the stand-in."""
    sessions: list[RemoteSession] = []

    async def open_one(here: StandIn, pack: Pack = vision_pack, kind: Any = "vision", **facts: Any) -> RemoteSession:
        loop = asyncio.get_running_loop()
        session = await asyncio.to_thread(open_remote, pack, kind, here.server(**facts), loop)
        sessions.append(session)
        return session

    yield open_one
    for session in sessions:
        session.lane.close()
        await session.client.close()
