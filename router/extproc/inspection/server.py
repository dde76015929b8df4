"""The private socket at which a worker tells the supervisor's process what it does: `Inspection`, and `Explain`.

For the worker's own user alone. It has a server of its own, small limits and deadlines, so that whatever is asked here
costs traffic no more than a little time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec
from google.protobuf.message import DecodeError

from router.extproc.house import House
from router.extproc.inspection.explaining import METHOD as EXPLAIN
from router.extproc.inspection.explaining import Explainer
from router.extproc.inspection.kept import kept_document
from router.extproc.inspection.remembering import summary_of, whole_of
from router.extproc.inspection.ring import Ring, Wanted
from router.extproc.inspection.showing import parity_document, policy_document
from router.extproc.listening import bound
from router.extproc.readiness import Readiness
from router.extproc.room import Room
from router.extproc.serving.server import Server
from router.extproc.unary import RefusedError, Unary, served
from router.inference.gate import Miss
from router.proto.pointsman.v1 import explain_pb2, inspection_pb2
from router.proto.pointsman.v1 import inspection_pb2 as pb

CALLS: Final = 16
"""At a time."""

SECONDS: Final = 2.0
"""What one may take; explaining has its own limit."""

MOST: Final = 512
"""Requests in one answer."""

BESIDE_BODY: Final = 1 << 20
"""Room in a message beside the body."""

T = TypeVar("T")


class _Message(Protocol):
    def SerializeToString(self) -> bytes: ...  # noqa: N802 - protobuf's


class Sight:
    """What there is to be seen of a worker. `house` and `explainer` are None while it has no policy to serve by."""

    def __init__(self, ring: Ring, metrics: Callable[[], bytes]) -> None:
        """`metrics` may take some milliseconds; it is called in a thread."""
        self.ring = ring
        self.metrics = metrics
        self.house: Callable[[], House] | None = None
        self.explainer: Explainer | None = None
        self._readiness: Readiness | None = None

    def serves(self, house: Callable[[], House], explainer: Explainer, readiness: Readiness) -> None:
        """From now on, by whatever `house` gives."""
        self.house, self.explainer, self._readiness = house, explainer, readiness

    def serves_no_more(self) -> None:
        """What was handled is seen still."""
        self.house = self.explainer = None

    @property
    def misses(self) -> Sequence[Miss]:
        """What the worker's packs missed since it began to serve."""
        return () if self._readiness is None else self._readiness.misses


class InspectionServer:
    """Serves a sight at a socket: `start`, `close`."""

    def __init__(self, sight: Sight, socket: Path, body_bytes: int) -> None:
        """`body_bytes` is the largest body that is explained. Raises SocketUnavailableError."""
        self._socket = socket
        self._inspection = Inspection(sight)
        listener, _ = bound(f"unix:{socket}")
        turns = Turns(CALLS)
        methods = {**self._inspection.methods(), EXPLAIN: _explain(sight)}
        handlers = {path: served(turns.taken_by(answer)) for path, answer in methods.items()}
        room = Room(CALLS * float(BESIDE_BODY) + body_bytes)
        self._server = Server(handlers, listener, body_bytes + BESIDE_BODY, in_hand=room)

    async def start(self) -> None:
        """Accept connections of the worker's own user."""
        self._socket.chmod(0o600)
        await self._server.start()

    async def close(self) -> None:
        """End at once: whoever asks here asks again."""
        await self._server.stop(0)
        self._inspection.close()


class Turns:
    """So many calls at a time and no more; belongs to one event loop."""

    def __init__(self, count: int) -> None:
        self._free = count

    def taken_by(self, answer: Unary) -> Unary:
        """The same, where it is the call's turn."""

        async def limited(request: bytes) -> bytes:
            if not self._free:
                raise RefusedError("RESOURCE_EXHAUSTED", "too much is asked at a time")
            self._free -= 1
            try:
                return await answer(request)
            finally:
                self._free += 1

        return limited


def _explain(sight: Sight) -> Unary:
    """By the explainer that there is at the time."""

    async def explain(request: explain_pb2.ExplainRequest) -> explain_pb2.ExplainResponse:
        if sight.explainer is None:
            raise RefusedError("UNAVAILABLE", "the worker is not ready")
        return await sight.explainer.explain(request)

    return _unary(explain, explain_pb2.ExplainRequest)


class Inspection:
    """The service of that name. What takes long is done in threads."""

    def __init__(self, sight: Sight) -> None:
        self._sight = sight
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="inspection")
        self._looking = False
        self._described: tuple[str, bytes] = ("", b"")

    def methods(self) -> Mapping[str, Unary]:
        """What is served, by path."""
        methods: dict[str, tuple[Callable[[Any], Awaitable[_Message]], Any]] = {
            "Metrics": (self.metrics, pb.MetricsRequest),
            "Recent": (self.recent, pb.RecentRequest),
            "Record": (self.record, pb.RecordRequest),
            "Policy": (self.policy, pb.PolicyRequest),
            "Parity": (self.parity, pb.ParityRequest),
        }
        return {
            f"/pointsman.v1.Inspection/{name}": _unary(_within(SECONDS, call), request)
            for name, (call, request) in methods.items()
        }

    def close(self) -> None:
        """Let the threads go."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def metrics(self, _request: inspection_pb2.MetricsRequest) -> inspection_pb2.MetricsResponse:
        """See the service."""
        return pb.MetricsResponse(text=await self._in_thread(self._sight.metrics))

    async def recent(self, request: inspection_pb2.RecentRequest) -> inspection_pb2.RecentResponse:
        """See the service."""
        wanted = Wanted(request.decision, request.outcome, request.model, request.signal, request.failed, request.since)
        return await self._in_thread(lambda: self._recent(wanted, min(request.limit, MOST)))

    def _recent(self, wanted: Wanted, limit: int) -> inspection_pb2.RecentResponse:
        requests = [
            pb.Remembered(at=handled.began, document=msgspec.json.encode(summary_of(handled)))
            for handled in self._sight.ring.newest(wanted, limit)
        ]
        return pb.RecentResponse(requests=requests)

    async def record(self, request: inspection_pb2.RecordRequest) -> inspection_pb2.RecordResponse:
        """See the service."""
        if not request.in_store:
            document = await self._in_thread(lambda: self._remembered(request.record))
        elif self._looking:
            raise RefusedError("RESOURCE_EXHAUSTED", "a record is being looked for already")
        else:
            # Also while the thread goes on after its time is over: a store that hangs gets one thread and no more.
            self._looking = True
            document = await self._in_thread(lambda: self._looked_up(request.record))
        return pb.RecordResponse(document=document)

    def _remembered(self, identifier: str) -> bytes | None:
        handled = self._sight.ring.find(identifier)
        return None if handled is None else msgspec.json.encode(whole_of(handled))

    def _looked_up(self, identifier: str) -> bytes | None:
        try:
            if self._sight.house is None:
                return None
            document = kept_document(self._sight.house().loaded, identifier)
            return None if document is None else msgspec.json.encode(document)
        finally:
            self._looking = False

    async def policy(self, _request: inspection_pb2.PolicyRequest) -> inspection_pb2.PolicyResponse:
        """See the service."""
        loaded = self._house().loaded
        digest = loaded.policy.digest
        if self._described[0] != digest:
            document = await self._in_thread(lambda: msgspec.json.encode(policy_document(loaded)))
            self._described = (digest, document)
        return pb.PolicyResponse(
            digest=digest,
            path=str(loaded.path.absolute()),
            text=loaded.source.text,
            hits=self._sight.ring.hits(digest),
            document=self._described[1],
        )

    async def parity(self, _request: inspection_pb2.ParityRequest) -> inspection_pb2.ParityResponse:
        """See the service."""
        house = self._house()
        document = parity_document(house, house.machinery.ledger, self._sight.misses)
        return pb.ParityResponse(document=msgspec.json.encode(document))

    def _house(self) -> House:
        if self._sight.house is None:
            raise RefusedError("UNAVAILABLE", "the worker serves no policy")
        return self._sight.house()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _within(seconds: float, call: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
    async def limited(request: Any) -> Any:
        try:
            async with asyncio.timeout(seconds):
                return await call(request)
        except TimeoutError:
            why = f"it took longer than {seconds:g} seconds"
            raise RefusedError("DEADLINE_EXCEEDED", why) from None

    return limited


def _unary(call: Callable[[Any], Awaitable[_Message]], request: Any) -> Unary:
    async def answer(asked: bytes) -> bytes:
        try:
            message = request.FromString(asked)
        except DecodeError:
            raise RefusedError("INVALID_ARGUMENT", "that is no such request") from None
        return (await call(message)).SerializeToString()

    return answer
