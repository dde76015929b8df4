"""A worker process whose judge does what the request's `x-test` header asks for.

Run with a socket, a behaviour and the seconds of notice that it drains with. `closed` and `open` are the failure
outcomes; `mute` is a processor that is not ours and ends each stream without an answer.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterable, AsyncIterator

from router.actions.edits import Edits
from router.extproc.exchange import Exchange, FailureKind
from router.extproc.head import RequestHead
from router.extproc.service import build_service
from router.request.reply import Reply
from router.telemetry.instruments import create_instruments

CLOSED = Reply(503, "application/json", b'{"error":{"code":"refused_by_worker"}}')
DEADLINE = 1.0
BODY_BYTES = 1 << 20


class Judge:
    def __init__(self, on_failure: str) -> None:
        self._on_failure = on_failure

    async def judge_headers(self, head: RequestHead) -> Edits | Reply:
        return await self.judge(head, b"")

    async def judge(self, head: RequestHead, body: bytes) -> Edits | Reply:
        action, _, argument = head.headers.get("x-test", "route:b").partition(":")
        match action:
            case "route":
                return Edits((("x-pointsman-cluster", argument), *self._marks(argument)))
            case "sleep":
                await asyncio.sleep(float(argument))
                return Edits((("x-pointsman-cluster", "b"), *self._marks("b")))
            case "replace":
                return Edits((("x-pointsman-cluster", "b"), *self._marks("b")), body=argument.encode())
            case "double":
                return Edits((("x-pointsman-cluster", "b"), *self._marks("b")), body=body + body)
            case "reply":
                return Reply(int(argument), "application/json", b'{"from":"worker"}', (("x-pointsman-decision", "no"),))
            case "raise":
                raise RuntimeError("the text of a request")
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError(action)

    def failed(self, head: RequestHead | None, kind: FailureKind) -> Edits | Reply:
        if self._on_failure == "closed":
            return CLOSED
        return Edits((("x-pointsman-cluster", "a"), *self._marks("a")))

    @staticmethod
    def _marks(model: str) -> tuple[tuple[str, str], ...]:
        return (("x-pointsman-decision", "test"), ("x-pointsman-model", model), ("x-pointsman-record", "r1"))


async def mute_answers(self: object, messages: AsyncIterable[object]) -> AsyncIterator[object]:
    async for _ in messages:
        return
    yield


async def main(path: str, behaviour: str, notice: float) -> None:
    if behaviour == "mute":
        Exchange.answers = mute_answers
    service = build_service(
        Judge(behaviour),
        address=f"unix:{path}",
        body_bytes=BODY_BYTES,
        deadline=DEADLINE,
        instruments=create_instruments(),
    )
    await service.start()
    await service.set_ready(True)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print("ready", flush=True)
    await stop.wait()
    await service.drain(notice, grace=5.0)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
