"""A worker process whose judge does what the request's `x-test` header asks for.

Run with a socket, a behaviour, the seconds of notice that it drains with and the largest body. It prints what it was
asked to judge and what it was told of responses. `closed` and `open` are the failure
outcomes; `mute` is a processor that is not ours and ends each stream without an answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import asdict

from router.actions.edits import Edits
from router.extproc.claims import with_claims
from router.extproc.exchange import Exchange, FailureKind
from router.extproc.head import RequestHead
from router.extproc.reading import ResponseFacts
from router.extproc.service import build_service
from router.request.reply import Reply
from router.telemetry.instruments import create_instruments

CLOSED = Reply(503, "application/json", b'{"error":{"code":"refused_by_worker"}}')
TOO_LARGE = Reply(413, "application/json", b'{"error":{"code":"too_large_by_worker"}}')
DEADLINE = 1.0
TOLD = (("decision", "test"), ("reason", "priority"))
ATTRIBUTES = {"x-from": "source.address", "x-protocol": "request.protocol"}
OWN = (("x-pointsman-decision", "no"),)
BODY_BYTES = 1 << 20


class Judge:
    def __init__(self, on_failure: str) -> None:
        self._on_failure = on_failure

    def reads_body(self, head: RequestHead) -> bool:
        return not head.path.startswith("/unseen")

    async def judge_headers(self, head: RequestHead) -> Edits | Reply:
        return await self.judge(head, b"")

    async def judge(self, head: RequestHead, body: bytes) -> Edits | Reply:
        action, _, argument = head.headers.get("x-test", "route:b").partition(":")
        print(
            json.dumps({"judged": len(body), "sha256": hashlib.sha256(body).hexdigest(), "copy": head.copy}), flush=True
        )
        match action:
            case "route":
                return Edits((("x-pointsman-cluster", argument), *self._marks(argument)), metadata=TOLD)
            case "claims":
                found = with_claims(head, {"x-team": "test.claims:payload:team"}, ATTRIBUTES)
                claims = {name: value for name, value in found.items() if name in ("x-team", *ATTRIBUTES)}
                print(json.dumps({"claims": claims}), flush=True)
                return Edits((("x-pointsman-cluster", "b"), *self._marks("b")))
            case "sleep":
                await asyncio.sleep(float(argument))
                return Edits((("x-pointsman-cluster", "b"), *self._marks("b")))
            case "replace":
                return Edits((("x-pointsman-cluster", "b"), *self._marks("b")), body=argument.encode())
            case "double":
                return Edits((("x-pointsman-cluster", "b"), *self._marks("b")), body=body + body)
            case "reply":
                return Reply(int(argument), "application/json", b'{"from":"worker"}', OWN, TOLD)
            case "raise":
                raise RuntimeError("the text of a request")
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError(action)

    def failed(self, head: RequestHead | None, kind: FailureKind) -> Edits | Reply:
        if kind == "body_too_large":
            return TOO_LARGE
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


def tell_response(facts: ResponseFacts) -> None:
    print(json.dumps({"response": asdict(facts)}), flush=True)


async def main(path: str, behaviour: str, notice: float, body_bytes: int) -> None:
    if behaviour == "mute":
        Exchange.answers = mute_answers
    service = build_service(
        Judge(behaviour),
        address=f"unix:{path}",
        body_bytes=body_bytes,
        deadline=DEADLINE,
        instruments=create_instruments(),
        tell_response=tell_response,
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
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])))
