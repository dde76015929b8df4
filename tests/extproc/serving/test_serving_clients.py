"""The server as clients of gRPC's own library see it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from router.extproc.serving.call import Call, CallError, Status
from router.extproc.serving.health import Health
from router.extproc.serving.server import Server

MESSAGE_BYTES = 12 << 20


async def echo(call: Call) -> None:
    async for message in call:
        await call.send(message)


async def first(call: Call) -> None:
    await call.send(await anext(call))


async def refuse(call: Call) -> None:
    raise CallError(Status.RESOURCE_EXHAUSTED, "Too much, 100 % – of it.".replace("–", "-"))


async def wait(call: Call) -> None:
    await asyncio.Event().wait()


HANDLERS = {"/t/Echo": echo, "/t/First": first, "/t/Refuse": refuse, "/t/Wait": wait}


@pytest.fixture
async def health() -> Health:
    return Health(("", "t"))


@pytest.fixture
async def server(tmp_path: Path, health: Health) -> AsyncIterator[Server]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s.sock"))
    server = Server({**HANDLERS, **health.handlers}, listener, MESSAGE_BYTES)
    await server.start()
    yield server
    await server.stop(0)


@pytest.fixture
async def channel(tmp_path: Path, server: Server) -> AsyncIterator[grpc.aio.Channel]:
    options = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(f"unix:{tmp_path}/s.sock", options=options) as channel:
        yield channel


@pytest.mark.parametrize("size", [0, 1, 16_379, 16_380, 70_000, 3 << 20, 10 << 20])
async def test_messages_of_any_size_come_back(channel: grpc.aio.Channel, size: int) -> None:
    message = bytes(range(256)) * (size // 256 + 1)
    assert await channel.unary_unary("/t/First")(message[:size], timeout=30) == message[:size]


async def test_a_conversation_goes_on_for_as_long_as_both_like(channel: grpc.aio.Channel) -> None:
    call = channel.stream_stream("/t/Echo")(timeout=60)
    for number in range(300):
        await call.write(b"%d" % number * 999)
        assert await call.read() == b"%d" % number * 999
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert await call.code() == grpc.StatusCode.OK


async def test_many_calls_at_once_do_not_mix(channel: grpc.aio.Channel) -> None:
    async def one(number: int) -> None:
        message = b"%d," % number * 2000
        assert await channel.unary_unary("/t/First")(message, timeout=60) == message

    await asyncio.gather(*map(one, range(500)))


async def test_many_large_messages_at_once_share_the_window(channel: grpc.aio.Channel) -> None:
    async def one(number: int) -> None:
        message = bytes([number]) * (3 << 20)
        assert await channel.unary_unary("/t/First")(message, timeout=60) == message

    await asyncio.gather(*map(one, range(12)))


async def code_of(channel: grpc.aio.Channel, path: str, message: bytes = b"", timeout: float = 30) -> tuple[str, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await channel.unary_unary(path)(message, timeout=timeout)
    return caught.value.code().name, caught.value.details() or ""


async def test_errors_have_their_code_and_words(channel: grpc.aio.Channel) -> None:
    assert await code_of(channel, "/t/Refuse") == ("RESOURCE_EXHAUSTED", "Too much, 100 % - of it.")
    assert (await code_of(channel, "/t/None"))[0] == "UNIMPLEMENTED"
    assert (await code_of(channel, "/t/First", bytes(MESSAGE_BYTES + 1)))[0] == "RESOURCE_EXHAUSTED"
    assert (await code_of(channel, "/t/Wait", timeout=0.05))[0] == "DEADLINE_EXCEEDED"


async def test_a_compressed_message_is_refused(channel: grpc.aio.Channel) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await channel.unary_unary("/t/First")(bytes(10_000), timeout=30, compression=grpc.Compression.Gzip)
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED


async def test_health_is_told_and_watched(channel: grpc.aio.Channel, health: Health) -> None:
    stub, states = health_pb2_grpc.HealthStub(channel), health_pb2.HealthCheckResponse
    watch = stub.Watch(health_pb2.HealthCheckRequest(service="t"), timeout=60)
    assert (await watch.read()).status == states.NOT_SERVING
    health.set(True)
    assert (await watch.read()).status == states.SERVING
    assert (await stub.Check(health_pb2.HealthCheckRequest(), timeout=30)).status == states.SERVING
    health.shut_down()
    health.set(True)
    assert (await watch.read()).status == states.NOT_SERVING
    watch.cancel()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Check(health_pb2.HealthCheckRequest(service="other"), timeout=30)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    unknown = stub.Watch(health_pb2.HealthCheckRequest(service="other"), timeout=30)
    assert (await unknown.read()).status == states.SERVICE_UNKNOWN
    unknown.cancel()


async def test_stopping_lets_running_calls_end_and_takes_no_more(
    channel: grpc.aio.Channel, server: Server, tmp_path: Path
) -> None:
    call = channel.stream_stream("/t/Echo")(timeout=60)
    await call.write(b"a")
    assert await call.read() == b"a"
    stopping = asyncio.create_task(server.stop(30))
    await asyncio.sleep(0.05)
    await call.write(b"b")
    assert await call.read() == b"b"
    async with grpc.aio.insecure_channel(f"unix:{tmp_path}/s.sock") as other:
        assert (await code_of(other, "/t/First"))[0] == "UNAVAILABLE"
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert await call.code() == grpc.StatusCode.OK
    await stopping


async def test_calls_that_outlast_the_grace_are_told(channel: grpc.aio.Channel, server: Server) -> None:
    waiting = asyncio.create_task(code_of(channel, "/t/Wait"))
    await asyncio.sleep(0.05)
    await server.stop(0.05)
    assert (await waiting)[0] == "UNAVAILABLE"
