"""The server as a gRPC client sees it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from router.actions.edits import Edits
from router.extproc.exchange import FailureKind
from router.extproc.head import RequestHead
from router.extproc.service import SERVICE_NAME, Service, build_service
from router.extproc.sockets import SocketUnavailableError
from router.proto import ext_proc_pb2 as pb
from router.request.reply import Reply
from router.telemetry.instruments import create_instruments

BODY_BYTES = 5 << 20


class Judge:
    """Says how long the body was; waits first while `gate` is closed."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.working = asyncio.Event()
        self.cancelled = asyncio.Event()

    def reads_body(self, head: RequestHead) -> bool:
        return True

    async def judge_headers(self, head: RequestHead) -> Edits | Reply:
        return await self.judge(head, b"")

    async def judge(self, head: RequestHead, body: bytes) -> Edits | Reply:
        self.working.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return Edits((("x-pointsman-model", str(len(body))),))

    def failed(self, head: RequestHead | None, kind: FailureKind) -> Edits | Reply:
        return Reply(503, "text/plain", kind.encode())


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
async def service(tmp_path: Path, judge: Judge) -> AsyncIterator[Service]:
    service = build_service(
        judge,
        address=f"unix:{tmp_path}/w.sock",
        body_bytes=BODY_BYTES,
        deadline=30.0,
        instruments=create_instruments(),
    )
    await service.start()
    yield service
    await service.drain(notice=0, grace=0)


@pytest.fixture
async def channel(tmp_path: Path, service: Service) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(f"unix:{tmp_path}/w.sock") as channel:
        yield channel


def process(channel: grpc.aio.Channel) -> grpc.aio.StreamStreamCall:
    """A new stream of the service."""
    return channel.stream_stream(
        f"/{SERVICE_NAME}/Process",
        request_serializer=pb.ProcessingRequest.SerializeToString,
        response_deserializer=pb.ProcessingResponse.FromString,
    )(timeout=30)


async def health(channel: grpc.aio.Channel, service: str = "") -> int:
    answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service), timeout=30)
    return answer.status


HEADERS = pb.ProcessingRequest(request_headers=pb.HttpHeaders())


async def test_a_body_as_large_as_allowed_is_judged(channel: grpc.aio.Channel) -> None:
    call = process(channel)
    await call.write(HEADERS)
    assert (await call.read()).HasField("request_headers")
    await call.write(pb.ProcessingRequest(request_body=pb.HttpBody(body=bytes(BODY_BYTES))))
    answer = await call.read()
    (header,) = answer.request_body.response.header_mutation.set_headers
    assert header.header.raw_value == str(BODY_BYTES).encode()
    assert await call.read() is grpc.aio.EOF
    assert await call.code() == grpc.StatusCode.OK


async def test_a_body_that_was_judged_is_kept_by_nobody(channel: grpc.aio.Channel) -> None:
    async def judged() -> None:
        call = process(channel)
        await call.write(HEADERS)
        await call.read()
        await call.write(pb.ProcessingRequest(request_body=pb.HttpBody(body=bytes(777_777))))
        await call.read()
        assert await call.read() is grpc.aio.EOF
        await call.code()

    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            await judged()
        requests = [one for one in gc.get_objects() if isinstance(one, pb.ProcessingRequest)]
        kept = [one for one in requests if len(one.request_body.body) == 777_777]
    finally:
        gc.enable()
    # Of the last one, its end may still be on the way.
    assert len(kept) <= 1


async def test_a_stream_without_messages_ends_well(channel: grpc.aio.Channel) -> None:
    call = process(channel)
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert await call.code() == grpc.StatusCode.OK


async def test_a_client_that_cancels_frees_the_work(channel: grpc.aio.Channel, judge: Judge) -> None:
    judge.gate.clear()
    call = process(channel)
    await call.write(pb.ProcessingRequest(request_headers=pb.HttpHeaders(end_of_stream=True)))
    async with asyncio.timeout(30):
        await judge.working.wait()
        call.cancel()
        await judge.cancelled.wait()


async def test_health_follows_what_the_worker_says(channel: grpc.aio.Channel, service: Service) -> None:
    serving, not_serving = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
    for name in ("", SERVICE_NAME):
        assert await health(channel, name) == not_serving
    await service.set_ready(True)
    for name in ("", SERVICE_NAME):
        assert await health(channel, name) == serving
    await service.set_ready(False)
    assert await health(channel) == not_serving


async def test_draining_serves_on_and_lets_running_exchanges_end(
    channel: grpc.aio.Channel, service: Service, judge: Judge
) -> None:
    await service.set_ready(True)
    judge.gate.clear()
    call = process(channel)
    await call.write(pb.ProcessingRequest(request_headers=pb.HttpHeaders(end_of_stream=True)))
    await judge.working.wait()
    draining = asyncio.create_task(service.drain(notice=1.0, grace=30))
    await asyncio.sleep(0)
    await service.set_ready(True)
    assert await health(channel) == health_pb2.HealthCheckResponse.NOT_SERVING
    judge.gate.set()
    assert (await call.read()).HasField("request_headers")
    await draining


async def test_a_second_server_does_not_take_the_socket(tmp_path: Path, service: Service, judge: Judge) -> None:
    with pytest.raises(SocketUnavailableError):
        build_service(
            judge, address=f"unix:{tmp_path}/w.sock", body_bytes=1, deadline=1, instruments=create_instruments()
        )
