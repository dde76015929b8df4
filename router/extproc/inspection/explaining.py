"""Explains requests by the house that serves: the same judging as of traffic, of which nothing is told or kept.

Traffic comes first: few are explained at a time, and none while model calls of traffic wait. Served to Envoy's side by
`service.py` and to the admin address by `serving.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.metadata import version
from typing import Final

import msgspec
from google.protobuf.message import DecodeError

from router.actions.edits import Edits
from router.extproc.head import RequestHead
from router.extproc.house import House, bodies_of
from router.extproc.pipeline import Judgement
from router.extproc.readiness import Door, NotReadyError
from router.extproc.room import Room
from router.extproc.unary import RefusedError
from router.extproc.unjudged import Answer, api_of, only_observed
from router.policy.model import Policy
from router.proto.pointsman.v1 import explain_pb2 as pb
from router.records.stored import to_stored
from router.records.wire import to_message
from router.request.apis import effective_method, unreadable
from router.request.content_coding import UnknownCoding
from router.request.errors import RequestError, UnreadablePrompt
from router.request.reply import Reply

AT_ONCE: Final = 2

QUIET_SECONDS: Final = 1.0
"""How long one waits for a moment in which no model call of traffic waits."""

LOOK_SECONDS: Final = 0.02

SLACK_SECONDS: Final = 2.0
"""What explaining may take beyond the policy's decision time: reading, the trees, and the wait for a quiet moment."""

DEFAULT_PATH: Final = "/v1/chat/completions"
PASSES: Final = 0
METHOD: Final = "/pointsman.v1.Explain/Explain"


class Explainer:
    """Explains by `house()`, as long as the door is open. Belongs to one event loop."""

    def __init__(self, door: Door, house: Callable[[], House], room: Room) -> None:
        self._door = door
        self._house = house
        self._room = room
        self._running = 0
        self._version = version("pointsman")

    async def explain(self, request: pb.ExplainRequest) -> pb.ExplainResponse:
        """The answer; raises RefusedError."""
        if self._running >= AT_ONCE:
            raise RefusedError("RESOURCE_EXHAUSTED", f"{AT_ONCE} requests are being explained already")
        if not self._room.fits(len(request.body)):
            raise RefusedError("RESOURCE_EXHAUSTED", "the worker has as many bodies in hand as it may")
        self._running += 1
        try:
            # The house stays as long as somebody is before its judge.
            with self._door.judging():
                return await self._by(self._house(), request)
        except NotReadyError:
            raise RefusedError("UNAVAILABLE", "the worker is not ready") from None
        finally:
            self._running -= 1

    async def answer(self, request: bytes) -> bytes:
        """The same in bytes; see `Unary`."""
        try:
            asked = pb.ExplainRequest.FromString(request)
        except DecodeError:
            raise RefusedError("INVALID_ARGUMENT", "it is no pointsman.v1.ExplainRequest") from None
        return (await self.explain(asked)).SerializeToString()

    async def _by(self, house: House, request: pb.ExplainRequest) -> pb.ExplainResponse:
        limit = house.loaded.limits.decision_ms / 1000 + SLACK_SECONDS
        try:
            async with asyncio.timeout(limit):
                await _quiet(house)
                return await _explain(house, request, self._version)
        except TimeoutError:
            why = f"it took longer than {limit:g} seconds"
            raise RefusedError("DEADLINE_EXCEEDED", why) from None


async def nobody_explains(_request: bytes) -> bytes:
    """For a worker that is not ready; see `Unary`."""
    raise RefusedError("UNAVAILABLE", "the worker is not ready")


async def _quiet(house: House) -> None:
    """Wait until no model call waits; raises RefusedError when that takes too long."""
    loop = asyncio.get_running_loop()
    limit = loop.time() + QUIET_SECONDS
    # An event would be set and cleared with every request of traffic, for what is asked a few times a day.
    while house.machinery.executor.waiting:
        if loop.time() >= limit:
            raise RefusedError("RESOURCE_EXHAUSTED", "the worker is busy with traffic; ask again later")
        await asyncio.sleep(LOOK_SECONDS)


async def _explain(house: House, request: pb.ExplainRequest, program: str) -> pb.ExplainResponse:
    policy = house.loaded.policy
    headers = {name.lower(): value for name, value in request.headers.items()}
    head = RequestHead(request.method or "POST", request.path or DEFAULT_PATH, headers)
    api = api_of(policy, head)
    if api is None:
        return _not_explained(*_no_request_of_ours(policy, head))
    bodies = bodies_of(house.loaded, house.machinery)
    try:
        read = await bodies.read(head, request.body)
        judgement = await house.pipeline.judge_body(api, read.data, headers)
        answer = await bodies.write(judgement.answer, read)
    except UnknownCoding:
        return _not_explained(PASSES, "unknown_encoding", "The policy lets this encoding pass without judging it.")
    except RequestError as error:
        passes = isinstance(error, UnreadablePrompt) and policy.on_failure == "open"
        return _not_explained(PASSES if passes else error.status, error.code, error.message, error.pointer)
    answer = only_observed(policy, answer) if policy.observe_only else answer
    return await asyncio.to_thread(_explained, judgement, answer, program)


def _no_request_of_ours(policy: Policy, head: RequestHead) -> tuple[int, str, str]:
    if not unreadable(effective_method(head.method, head.headers), head.path, policy.apis):
        return PASSES, "no_llm_request", f"This is no path of an LLM request; try {DEFAULT_PATH}."
    message = "Requests to this endpoint cannot be judged."
    return PASSES if policy.on_failure == "open" else 501, "unsupported_api", message


def _explained(judgement: Judgement, answer: Answer, program: str) -> pb.ExplainResponse:
    record = judgement.record
    would = pb.Would(
        status=answer.status if isinstance(answer, Reply) else None,
        headers=[pb.Header(name=name, value=value) for name, value in answer.headers],
        body_changed=isinstance(answer, Edits) and answer.body is not None,
    )
    return pb.ExplainResponse(
        explanation=pb.Explanation(
            record=to_message(to_stored(record, program), record.verdict.trace),
            would=would,
            document=msgspec.json.encode(record.whole()),
        )
    )


def _not_explained(status: int, code: str, message: str, pointer: str = "") -> pb.ExplainResponse:
    error = pb.NotExplained(status=status, code=code, message=message, pointer=pointer or None)
    return pb.ExplainResponse(error=error)
