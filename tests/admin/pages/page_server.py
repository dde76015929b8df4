"""The page on a free loopback port, as `serve` has it: the whole admin application behind its guard, in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

import uvicorn
from page_insight import PageInsight, demo_policy
from starlette.types import ASGIApp

from router.admin.app import Shown, build_app
from router.admin.guard import Guard, loopback_access
from router.admin.server import listen
from router.extproc.house import build_house


def page_app(insight: PageInsight) -> ASGIApp:
    return Guard(build_app(Shown((), insight, None, 8 * 2**20)), loopback_access("127.0.0.1"))


@contextlib.contextmanager
def serving_page(insight: PageInsight, *, explaining: bool = False) -> Iterator[str]:
    """The page's address. With `explaining` a house of the demo's policy is built in the server's loop."""
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        page_app(insight),
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    began = threading.Event()

    async def run() -> None:
        async with contextlib.AsyncExitStack() as stack:
            if explaining:
                insight.house = await stack.enter_async_context(build_house(demo_policy(), threads=1))
            began.set()
            await server.serve(sockets=[listener])

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    assert began.wait(120)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
