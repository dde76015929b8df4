"""A server of the Open Inference Protocol in the test's own process, which does as it is told: also wrong, late or not.

It runs a graph by ONNX Runtime, and answers as `behaves` says; `calls` keeps what was asked of it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import numpy as np
import onnxruntime as ort

from router.inference.remote.channel import SERVICE
from router.inference.remote.server import RemoteServer
from router.proto import open_inference_pb2 as pb

TYPES = {"INT64": np.int64, "INT32": np.int32, "FP32": np.float32, "FP16": np.float16}
MODEL = "tiny"

Behaviour = Callable[["StandIn", pb.ModelInferRequest, Any], Awaitable[pb.ModelInferResponse]]


@dataclass
class StandIn:
    graph: Path
    behaves: Behaviour
    ready: bool = True
    metadata: pb.ModelMetadataResponse = field(default_factory=pb.ModelMetadataResponse)
    without: frozenset[str] = frozenset()
    calls: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    running: int = 0
    most: int = 0
    cancelled: int = 0
    address: str = ""

    def __post_init__(self) -> None:
        self.session = ort.InferenceSession(str(self.graph), providers=["CPUExecutionProvider"])

    @property
    def inferred(self) -> int:
        return self.calls.count("ModelInfer")

    def server(self, **facts: Any) -> RemoteServer:
        return RemoteServer(**{"target": self.address, "secure": False, "model": MODEL, "timeout": 20.0, **facts})

    async def answer(self, method: str, request: bytes, context: Any) -> bytes:
        self.calls.append(method)
        self.tokens += [str(value) for key, value in context.invocation_metadata() if key == "authorization"]
        match method:
            case "ServerReady":
                return pb.ServerReadyResponse(ready=self.ready).SerializeToString()
            case "ModelReady":
                named = pb.ModelReadyRequest.FromString(request).name
                return pb.ModelReadyResponse(ready=self.ready and named == MODEL).SerializeToString()
            case "ModelMetadata":
                return self.metadata.SerializeToString()
        asked = pb.ModelInferRequest.FromString(request)
        self.rows.append(asked.inputs[0].shape[0])
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return (await self.behaves(self, asked, context)).SerializeToString()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1

    def run(self, asked: pb.ModelInferRequest) -> np.ndarray[Any, Any]:
        feed = {}
        wanted = {each.name: each.type for each in self.session.get_inputs()}
        for tensor, raw in zip(asked.inputs, asked.raw_input_contents, strict=True):
            values = np.frombuffer(raw, TYPES[tensor.datatype]).reshape(tensor.shape)
            feed[tensor.name] = values.astype(np.float32 if "float" in wanted[tensor.name] else np.int64)
        return self.session.run([asked.outputs[0].name], feed)[0]


def told(asked: pb.ModelInferRequest, rows: np.ndarray[Any, Any], datatype: str = "FP32") -> pb.ModelInferResponse:
    answer = pb.ModelInferResponse(model_name=asked.model_name)
    answer.outputs.add(name=asked.outputs[0].name, datatype=datatype, shape=rows.shape)
    answer.raw_output_contents.append(rows.tobytes())
    return answer


async def well(here: StandIn, asked: pb.ModelInferRequest, context: Any) -> pb.ModelInferResponse:
    return told(asked, here.run(asked))


def saying(change: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]], datatype: str = "FP32") -> Behaviour:
    async def behave(here: StandIn, asked: pb.ModelInferRequest, context: Any) -> pb.ModelInferResponse:
        return told(asked, change(here.run(asked)), datatype)

    return behave


def refusing(code: grpc.StatusCode, details: str = "") -> Behaviour:
    async def behave(here: StandIn, asked: pb.ModelInferRequest, context: Any) -> pb.ModelInferResponse:
        await context.abort(code, details)
        raise AssertionError

    return behave


def failing_first(times: int, code: grpc.StatusCode) -> Behaviour:
    async def behave(here: StandIn, asked: pb.ModelInferRequest, context: Any) -> pb.ModelInferResponse:
        if here.inferred <= times:
            await context.abort(code, "for now")
        return await well(here, asked, context)

    return behave


def waiting_for(event: asyncio.Event) -> Behaviour:
    async def behave(here: StandIn, asked: pb.ModelInferRequest, context: Any) -> pb.ModelInferResponse:
        await event.wait()
        return await well(here, asked, context)

    return behave


async def hanging(here: StandIn, asked: pb.ModelInferRequest, context: Any) -> pb.ModelInferResponse:
    await asyncio.Event().wait()
    raise AssertionError


@contextlib.asynccontextmanager
async def standing_in(
    here: StandIn, port: int = 0, credentials: grpc.ServerCredentials | None = None
) -> AsyncIterator[StandIn]:
    """The server, for as long as this is entered."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((_Handler(here),))
    address = f"127.0.0.1:{port}"
    bound = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    here.address = f"127.0.0.1:{bound}"
    await server.start()
    try:
        yield here
    finally:
        await server.stop(None)


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, here: StandIn) -> None:
        self._here = here

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        service, _, method = details.method.removeprefix("/").partition("/")
        if service != SERVICE or method in self._here.without:
            return None

        async def answer(request: bytes, context: Any) -> bytes:
            return await self._here.answer(method, request, context)

        return grpc.unary_unary_rpc_method_handler(answer)


def metadata_of(
    inputs: Mapping[str, tuple[str, list[int]]], outputs: Mapping[str, tuple[str, list[int]]]
) -> pb.ModelMetadataResponse:
    said = pb.ModelMetadataResponse(name=MODEL)
    for tensors, facts in ((said.inputs, inputs), (said.outputs, outputs)):
        for name, (datatype, shape) in facts.items():
            tensors.add(name=name, datatype=datatype, shape=shape)
    return said


async def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for it; a test that waits for what never comes fails."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
