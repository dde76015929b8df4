"""Asks one model at one server: in time, again where no server was met, with every failure in one of our words.

It knows the protocol's methods and no tower. It never logs or tells what was sent, nor a server's own words once there
may be content in them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Final, Literal, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message

from router.inference.executor import Overloaded
from router.inference.remote.access import Access
from router.inference.remote.backoff import pause
from router.inference.remote.channel import Channel
from router.inference.remote.errors import (
    RemoteAnswerError,
    RemoteError,
    RemoteRefusedError,
    RemoteTimeoutError,
    RemoteUnavailableError,
)
from router.inference.remote.server import RemoteServer
from router.proto import open_inference_pb2 as pb

logger = logging.getLogger(__name__)

AnswerT = TypeVar("AnswerT", bound=Message)
End = Literal["answered", "retried", "unavailable", "timed_out", "refused", "nonsense", "shed"]

SILENT_CALLS: Final = 3
"""Calls in a row without an answer in time, after which the connection is taken to be dead."""

SHOWN: Final = 200
"""Characters of what gRPC says of a connection."""

_ENDS: Final[dict[type[Exception], End]] = {
    RemoteUnavailableError: "unavailable",
    RemoteTimeoutError: "timed_out",
    RemoteRefusedError: "refused",
    RemoteAnswerError: "nonsense",
    Overloaded: "shed",
}


class RemoteClient:
    """Belongs to one event loop. `ends` counts calls by how they ended, and retries; any thread may read it."""

    def __init__(self, server: RemoteServer, access: Access) -> None:
        self.server = server
        self.ends: Counter[End] = Counter()
        self._channel = Channel(server, access)
        self._silent = 0
        self._up = True

    async def require_ready(self) -> None:
        """Raises RemoteError unless server and model say that they are ready."""
        try:
            answer = await self._call("ServerReady", pb.ServerReadyRequest(), pb.ServerReadyResponse, quoting=True)
            if not answer.ready:
                raise RemoteUnavailableError(f"the server at {self.server.target} says that it is not ready")
        except RemoteRefusedError as error:
            # Some servers have models alone.
            if not error.unknown:
                raise
        wanted = pb.ModelReadyRequest(name=self.server.model, version=self.server.version)
        if not (await self._call("ModelReady", wanted, pb.ModelReadyResponse, quoting=True)).ready:
            raise RemoteUnavailableError(f"{self.server.named} is not ready")

    async def metadata(self) -> pb.ModelMetadataResponse:
        """What the server says of the model; nothing where it does not say."""
        wanted = pb.ModelMetadataRequest(name=self.server.model, version=self.server.version)
        try:
            return await self._call("ModelMetadata", wanted, pb.ModelMetadataResponse, quoting=True)
        except RemoteRefusedError as error:
            if error.unknown:
                return pb.ModelMetadataResponse()
            raise

    async def infer(self, request: bytes) -> pb.ModelInferResponse:
        """The answer to a written ModelInferRequest; raises RemoteError and Overloaded."""
        return await self._call("ModelInfer", request, pb.ModelInferResponse)

    def ended(self, error: Exception | None) -> None:
        """A call for an embedding has ended so; told in the log when it is not as the last one."""
        end = "answered" if error is None else _ENDS.get(type(error), "refused")
        self.ends[end] += 1
        if end == "shed" or (end == "answered") == self._up:
            return
        self._up = end == "answered"
        fields = {"model": self.server.model, "server": self.server.target}
        if self._up:
            logger.info("remote encoder answers again", extra={"fields": fields})
        else:
            logger.warning("remote encoder fails", extra={"fields": {**fields, "why": str(error)}})

    async def close(self) -> None:
        """Make no more calls, and end those that are under way."""
        await self._channel.close()

    async def _call(self, method: str, request: Message | bytes, kind: type[AnswerT], quoting: bool = False) -> AnswerT:
        """`quoting`: the request has no content, so that the words of a refusal may be shown."""
        written = request if isinstance(request, bytes) else request.SerializeToString()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.server.timeout
        for attempt in range(self.server.retries + 1):
            try:
                answer = kind.FromString(await self._channel.call(method, written, deadline - loop.time()))
            except grpc.RpcError as error:
                failure = self._failure(error, quoting)
            except grpc.aio.UsageError:
                raise RemoteUnavailableError(f"the connection to {self.server.target} is closed") from None
            except DecodeError:
                raise RemoteAnswerError(f"{self.server.named} answers with no message of the protocol") from None
            else:
                self._silent = 0
                return answer
            wait = pause(attempt)
            again = isinstance(failure, RemoteUnavailableError) and attempt < self.server.retries
            if not again or loop.time() + wait >= deadline:
                break
            self.ends["retried"] += 1
            await asyncio.sleep(wait)
        self._count_silence(failure)
        raise failure

    def _failure(self, error: grpc.RpcError, quoting: bool) -> RemoteError | Overloaded:
        code = error.code()
        said = error.details() or ""
        told = f"{self.server.named}: {code.name}"
        if quoting and said:
            told += f" ({''.join(each if each.isprintable() else ' ' for each in said)[:SHOWN]})"
        match code:
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                return RemoteTimeoutError(f"{self.server.named} has not answered in {self.server.timeout:g} s")
            case grpc.StatusCode.RESOURCE_EXHAUSTED if "larger than max" in said:
                # gRPC's own, at either end; the code alone would say that there is too much to do.
                return RemoteAnswerError(f"{self.server.named}: a message is larger than one of the two ends takes")
            case grpc.StatusCode.RESOURCE_EXHAUSTED:
                return Overloaded(told)
            case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.CANCELLED:
                return RemoteUnavailableError(told)
            case _:
                return RemoteRefusedError(told, unknown=code is grpc.StatusCode.UNIMPLEMENTED)

    def _count_silence(self, failure: Exception) -> None:
        self._silent = self._silent + 1 if isinstance(failure, RemoteTimeoutError) else 0
        if self._silent >= SILENT_CALLS:
            self._silent = 0
            self._channel.renew()
