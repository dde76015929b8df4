"""A worker in the test's own process, and what can be asked of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from router.extproc.life import run
from router.extproc.options import WorkerOptions
from router.extproc.service import SERVICE_NAME
from router.proto import ext_proc_pb2 as pb
from router.telemetry.instruments import create_instruments
from router.telemetry.otel import Exporting
from router.telemetry.worker_state import state_file

PATIENCE = 60.0


@dataclass
class Running:
    """A worker: its policy file, its state, its channel, what its counters have; `reload` is its SIGHUP."""

    config: Path

    state: Callable[[], dict[str, Any]]
    channel: grpc.aio.Channel
    reader: InMemoryMetricReader
    reload: asyncio.Event

    async def until(self, ready: bool) -> dict[str, Any]:
        limit = time.monotonic() + PATIENCE
        while self.state().get("state") != ("ready" if ready else "not_ready"):
            if time.monotonic() > limit:
                pytest.fail(f"waited for ready={ready}; the state is {self.state()}")
            await asyncio.sleep(0.01)
        return self.state()

    async def health(self) -> int:
        request = health_pb2.HealthCheckRequest(service=SERVICE_NAME)
        return (await health_pb2_grpc.HealthStub(self.channel).Check(request, timeout=30)).status

    async def status_of_a_request(self) -> int:
        """What a client gets from the worker itself; 0 when the request may go on."""
        call = self.channel.stream_stream(
            f"/{SERVICE_NAME}/Process",
            request_serializer=pb.ProcessingRequest.SerializeToString,
            response_deserializer=pb.ProcessingResponse.FromString,
        )(timeout=30)
        pairs = {":method": b"GET", ":path": b"/healthz"}.items()
        headers = pb.HeaderMap(headers=[pb.HeaderValue(key=key, raw_value=value) for key, value in pairs])
        await call.write(pb.ProcessingRequest(request_headers=pb.HttpHeaders(headers=headers, end_of_stream=True)))
        return (await call.read()).immediate_response.status.code

    def counted(self, name: str) -> list[tuple[dict[str, Any], int]]:
        """The series of a metric that are not 0: those that alerts look at are there from the start."""
        data = self.reader.get_metrics_data()
        metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics if m.name == name]
        return [(dict(point.attributes), point.value) for m in metrics for point in m.data.data_points if point.value]

    async def headers_of_a_chat(self, **body: Any) -> tuple[int, Mapping[str, str]]:
        """Status (0 when it may go on) and the headers that the worker sets for a chat completion."""
        status, made, _ = await self.chat({}, **body)
        return status, made

    async def chat(
        self, sent: Mapping[str, str], carried: Mapping[str, str] | None = None, **body: Any
    ) -> tuple[int, Mapping[str, str], list[str]]:
        """As above, of a request with these headers in a call with those; and the headers that it removes."""
        text = json.dumps({"messages": [{"role": "user", "content": "hello"}], "model": "any", **body}).encode()
        call = self.channel.stream_stream(
            f"/{SERVICE_NAME}/Process",
            request_serializer=pb.ProcessingRequest.SerializeToString,
            response_deserializer=pb.ProcessingResponse.FromString,
        )(timeout=30, metadata=tuple((carried or {}).items()))
        given = {":method": "POST", ":path": "/v1/chat/completions", "content-type": "application/json", **sent}
        pairs = [pb.HeaderValue(key=key, raw_value=value.encode()) for key, value in given.items()]
        headers = pb.HeaderMap(headers=pairs)
        await call.write(pb.ProcessingRequest(request_headers=pb.HttpHeaders(headers=headers, end_of_stream=False)))
        await call.read()
        await call.write(pb.ProcessingRequest(request_body=pb.HttpBody(body=text, end_of_stream=True)))
        answer = await call.read()
        if answer.HasField("immediate_response"):
            response = answer.immediate_response
            return response.status.code, _set(response.headers), []
        mutation = answer.request_body.response.header_mutation
        return 0, _set(mutation), list(mutation.remove_headers)

    async def until_policy(self, digest: str) -> dict[str, Any]:
        """Wait until the worker says that it serves the policy of this digest."""
        limit = time.monotonic() + PATIENCE
        while self.state().get("policy") != digest:
            if time.monotonic() > limit:
                pytest.fail(f"waited for policy {digest}; the state is {self.state()}")
            await asyncio.sleep(0.01)
        return self.state()


def _set(mutation: pb.HeaderMutation) -> dict[str, str]:
    return {option.header.key: option.header.raw_value.decode() for option in mutation.set_headers}


@asynccontextmanager
async def running_worker(folder: Path, policy: str, exporting: Exporting | None = None) -> AsyncIterator[Running]:
    """A worker under this policy, which stands in `policy.yaml`; it exports its spans by `exporting`."""
    config, socket = folder / "policy.yaml", folder / "worker-0.sock"
    config.write_text(policy)
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    stop, reload = asyncio.Event(), asyncio.Event()
    options = WorkerOptions(config, socket, index=0, threads=1)
    instruments = create_instruments(provider.get_meter("test"))
    task = asyncio.create_task(run(options, stop, instruments, reload, exporting=exporting))

    def state() -> dict[str, Any]:
        if task.done():
            task.result()
        file = state_file(socket)
        return json.loads(file.read_text()) if file.exists() else {}

    async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
        try:
            yield Running(config, state, channel, reader, reload)
        finally:
            stop.set()
            await task
            provider.shutdown()
    assert not state_file(socket).exists()
