"""Messages, and the moments between them at which something has waited long enough."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from router.extproc.answers.ticking import with_ticks
from router.proto import ext_proc_pb2 as pb

FIRST, SECOND, THIRD = (
    pb.ProcessingRequest(response_body=pb.HttpBody(body=body)) for body in (b"first", b"second", b"third")
)


async def test_a_message_that_is_on_its_way_is_not_lost_to_a_tick() -> None:
    ticked = asyncio.Event()

    async def rest() -> AsyncIterator[pb.ProcessingRequest]:
        await ticked.wait()
        yield SECOND
        yield THIRD

    waits: list[float | None] = [0.001, None, None, None]
    seen = []
    async for message in with_ticks(FIRST, rest(), lambda: waits.pop(0) if waits else None):
        seen.append(message)
        if message is None:
            ticked.set()
    assert seen == [FIRST, None, SECOND, THIRD]


async def test_where_nothing_waits_there_are_no_ticks() -> None:
    async def rest() -> AsyncIterator[pb.ProcessingRequest]:
        yield SECOND

    assert [message async for message in with_ticks(FIRST, rest(), lambda: None)] == [FIRST, SECOND]


async def test_what_is_waited_for_is_given_up_when_nobody_asks_any_more() -> None:
    given_up = asyncio.Event()

    async def rest() -> AsyncIterator[pb.ProcessingRequest]:
        try:
            await asyncio.Event().wait()
            yield SECOND
        finally:
            given_up.set()

    messages = with_ticks(FIRST, rest(), lambda: 0.001)
    assert await anext(messages) == FIRST
    assert await anext(messages) is None
    await messages.aclose()
    async with asyncio.timeout(10):
        await given_up.wait()


async def test_what_goes_wrong_with_the_messages_is_not_hidden() -> None:
    async def rest() -> AsyncIterator[pb.ProcessingRequest]:
        raise ConnectionError
        yield SECOND

    with pytest.raises(ConnectionError):
        async for _ in with_ticks(FIRST, rest(), lambda: 0.5):
            pass
