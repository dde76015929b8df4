"""Messages of a stream, and between them the moments at which something has waited as long as it may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable

from router.proto import ext_proc_pb2 as pb

Message = pb.ProcessingRequest


async def with_ticks(
    first: Message, rest: AsyncIterator[Message], waits: Callable[[], float | None]
) -> AsyncGenerator[Message | None]:
    """The messages, and None each time `waits` seconds have passed without one; it says None where nothing waits.

    A message that is on its way is waited for further: to cancel that would lose it, and the stream with it.
    """
    yield first
    coming: asyncio.Future[Message | None] | None = None
    try:
        while True:
            wait = waits()
            if wait is None and coming is None:
                message = await anext(rest, None)
            else:
                coming = coming or asyncio.ensure_future(anext(rest, None))
                done, _ = await asyncio.wait({coming}, timeout=wait)
                if not done:
                    yield None
                    continue
                message, coming = coming.result(), None
            if message is None:
                return
            yield message
    finally:
        if coming is not None:
            coming.cancel()
