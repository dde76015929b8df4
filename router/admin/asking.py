"""Asks the workers at their private sockets, all at once, and puts their answers together.

A worker that does not answer in time is left out and named in `silent`: an admin page shows what there is to see.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import grpc
import grpc.aio
import msgspec

from router.admin.findings import Findings
from router.admin.insight import Document, Filter, NobodyAnswersError, WrongFilterError
from router.admin.moments import since
from router.proto.pointsman.v1 import explain_pb2
from router.proto.pointsman.v1 import inspection_pb2 as pb
from router.telemetry.prometheus import join

SECONDS: Final = 1.0
"""How long a worker has to answer."""

STORE_SECONDS: Final = 2.5
"""How long one has that looks into the store."""

MESSAGE_BYTES: Final = 64 * 2**20

FINDINGS_SECONDS: Final = 2.0
"""How long an answer waits for the findings; later ones have them."""

RECONNECT_MS: Final = 250
"""The longest pause between two tries to reach a worker that was away: it may be back at once."""

T = TypeVar("T")


class Asking:
    """The insight of one `serve`. Its methods belong to one event loop, that of whoever asks first."""

    def __init__(
        self, sockets: Sequence[Path], findings: Findings, explain_seconds: float, seconds: float = SECONDS
    ) -> None:
        """`sockets` are the private ones of the workers, by index. `explain_seconds` bounds an explanation."""
        self._sockets = tuple(sockets)
        self._findings = findings
        self._explain_seconds = explain_seconds
        self._seconds = seconds
        self._channels: dict[int, grpc.aio.Channel] = {}
        self._silent: dict[int, str] = {}
        self._next = 0

    async def decisions(self, wanted: Filter) -> list[Document]:
        """See `Insight`."""
        try:
            moment = int(since(wanted.since) * 1e9) if wanted.since else 0
        except ValueError as error:
            raise WrongFilterError(str(error)) from None
        request = pb.RecentRequest(
            decision=wanted.decision,
            outcome=wanted.outcome,
            model=wanted.model,
            signal=wanted.signal,
            failed=wanted.failed,
            since=max(0, min(moment, 2**63 - 1)),
            limit=max(0, min(wanted.limit, 2**31)),
        )
        answers = await self._ask_all("Recent", request, pb.RecentResponse)
        found = [(one.at, worker, one.document) for worker, answer in answers.items() for one in answer.requests]
        found.sort(key=lambda one: one[0], reverse=True)
        return [{**msgspec.json.decode(document), "worker": worker} for _, worker, document in found[: wanted.limit]]

    async def record(self, identifier: str) -> Document | None:
        """See `Insight`."""
        request = pb.RecordRequest(record=identifier)
        answers = await self._ask_all("Record", request, pb.RecordResponse)
        for worker, answer in answers.items():
            if answer.HasField("document"):
                kept = await self._kept(identifier, [worker])
                captured = kept and kept["captured"]
                document = msgspec.json.decode(answer.document)
                return {**document, "captured": captured, "worker": worker, "remembered": "worker"}
        return await self._kept(identifier, list(answers))

    async def _kept(self, identifier: str, workers: Sequence[int]) -> Document | None:
        """The record out of the store, which all workers share: the first of these that answers is believed."""
        request = pb.RecordRequest(record=identifier, in_store=True)
        for worker in workers:
            answer = await self._ask(worker, "Record", request, pb.RecordResponse, STORE_SECONDS)
            if answer is not None:
                if not answer.HasField("document"):
                    return None
                return {**msgspec.json.decode(answer.document), "worker": None, "remembered": "store"}
        return None

    async def policy(self) -> Document:
        """See `Insight`."""
        answers = self._some(await self._ask_all("Policy", pb.PolicyRequest(), pb.PolicyResponse))
        digest, _ = Counter(answer.digest for answer in answers.values()).most_common(1)[0]
        served = next(answer for answer in answers.values() if answer.digest == digest)
        hits: Counter[str] = Counter()
        for answer in answers.values():
            if answer.digest == digest:
                hits.update(dict(answer.hits))
        found = await self._findings.of(digest, Path(served.path), served.text, FINDINGS_SECONDS)
        return {
            "digest": digest,
            "path": Path(served.path).name,
            "document": served.text.decode("utf-8-sig", "replace"),
            "workers": [{"worker": worker, "digest": answer.digest} for worker, answer in sorted(answers.items())],
            "findings": found or [],
            "findings_complete": found is not None,
            **msgspec.json.decode(served.document),
            "hits": dict(hits),
        }

    async def parity(self) -> Document:
        """See `Insight`."""
        answers = self._some(await self._ask_all("Parity", pb.ParityRequest(), pb.ParityResponse))
        rows = [{"worker": worker, **msgspec.json.decode(answer.document)} for worker, answer in answers.items()]
        return {"workers": sorted(rows, key=lambda row: row["worker"])}

    async def explain(self, path: str, headers: dict[str, str], body: bytes) -> Document:
        """See `Insight`. Workers take turns; one that has no time now hands on to the next."""
        request = explain_pb2.ExplainRequest(path=path, headers=headers, body=body)
        code, why = "nobody_answers", "No worker answers."
        first, self._next = self._next, (self._next + 1) % len(self._sockets)
        for turn in range(len(self._sockets)):
            worker = (first + turn) % len(self._sockets)
            try:
                answer = await self._call(
                    worker, "Explain", "Explain", request, explain_pb2.ExplainResponse, self._explain_seconds
                )
            except grpc.aio.AioRpcError as error:
                code, why = _busy(error)
                continue
            return _explained(answer, worker)
        return {"error": {"status": 503, "code": code, "message": why, "pointer": None}}

    async def metrics(self) -> bytes:
        """See `Insight`."""
        answers = await self._ask_all("Metrics", pb.MetricsRequest(), pb.MetricsResponse)
        texts = {worker: answers[worker].text if worker in answers else b"" for worker in range(len(self._sockets))}
        return await asyncio.to_thread(join, texts)

    def silent(self) -> list[Document]:
        """See `Insight`."""
        return [{"worker": worker, "why": why} for worker, why in sorted(self._silent.items())]

    async def close(self) -> None:
        """Give the connections up."""
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.close(None)

    async def _ask_all(self, method: str, request: Any, response: type[T]) -> dict[int, T]:
        """The answers of those that give one, by their index."""
        workers = range(len(self._sockets))
        answers = await asyncio.gather(
            *(self._ask(worker, method, request, response, self._seconds) for worker in workers)
        )
        return {worker: answer for worker, answer in zip(workers, answers, strict=True) if answer is not None}

    async def _ask(self, worker: int, method: str, request: Any, response: type[T], seconds: float) -> T | None:
        try:
            answer: T = await self._call(worker, "Inspection", method, request, response, seconds)
        except grpc.aio.AioRpcError as error:
            self._silent[worker] = _why(error)
            return None
        self._silent.pop(worker, None)
        return answer

    async def _call(self, worker: int, service: str, method: str, request: Any, response: Any, seconds: float) -> Any:
        """Raises AioRpcError."""
        channel = self._channels.get(worker)
        if channel is None:
            channel = self._channels[worker] = grpc.aio.insecure_channel(
                f"unix:{self._sockets[worker]}",
                options=[
                    ("grpc.max_receive_message_length", MESSAGE_BYTES),
                    ("grpc.max_send_message_length", -1),
                    ("grpc.initial_reconnect_backoff_ms", RECONNECT_MS),
                    ("grpc.min_reconnect_backoff_ms", RECONNECT_MS),
                    ("grpc.max_reconnect_backoff_ms", RECONNECT_MS),
                    ("grpc.enable_http_proxy", 0),
                ],
            )
        call = channel.unary_unary(
            f"/pointsman.v1.{service}/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )
        return await call(request, timeout=seconds)

    def _some(self, answers: dict[int, T]) -> dict[int, T]:
        if not answers:
            raise NobodyAnswersError
        return answers


def _explained(answer: explain_pb2.ExplainResponse, worker: int) -> Document:
    if answer.WhichOneof("result") == "error":
        error = answer.error
        pointer = error.pointer if error.HasField("pointer") else None
        told = {"status": error.status, "code": error.code, "message": error.message, "pointer": pointer}
        return {"error": told}
    explanation, would = answer.explanation, answer.explanation.would
    return {
        **msgspec.json.decode(explanation.document),
        "worker": worker,
        "would": {
            "status": would.status if would.HasField("status") else None,
            "headers": [[header.name, header.value] for header in would.headers],
            "body_changed": would.body_changed,
        },
    }


def _busy(error: grpc.aio.AioRpcError) -> tuple[str, str]:
    """Why nothing was explained: a code and a sentence."""
    match error.code():
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return "busy", "The workers have no time to explain; traffic comes first. Try again."
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return "deadline", "It took too long."
        case grpc.StatusCode.UNAVAILABLE:
            return "not_ready", "No worker is ready."
    return "failed", "The workers could not explain it."


def _why(error: grpc.aio.AioRpcError) -> str:
    """In our own words; gRPC's name files of this machine."""
    match error.code():
        case grpc.StatusCode.UNAVAILABLE:
            return "it does not take questions: it starts, it ends, or it serves no policy"
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return "it did not answer in time"
        case code:
            return f"it answered with {code.name.lower()}"
