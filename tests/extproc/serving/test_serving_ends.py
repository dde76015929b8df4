"""How calls and connections end that somebody gave up: never as if all had gone well, and never not at all."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from pathlib import Path

import grpc
import grpc.aio
import pytest
import trustme
from grpc_health.v1 import health_pb2, health_pb2_grpc

from router.extproc.certificates import CertificateFiles, TlsFiles
from router.extproc.serving import server as server_module
from router.extproc.serving.call import Call
from router.extproc.serving.health import Health
from router.extproc.serving.server import Server


async def swallow(call: Call) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


async def bound_time(call: Call) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()


async def served(path: Path) -> tuple[Server, Health, grpc.aio.Channel]:
    health = Health(("",))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path / "s.sock"))
    server = Server({"/t/Swallow": swallow, "/t/Time": bound_time, **health.handlers}, listener, 1 << 20)
    await server.start()
    return server, health, grpc.aio.insecure_channel(f"unix:{path}/s.sock")


async def code(call: grpc.aio.StreamStreamCall[bytes, bytes]) -> str:
    return (await call.code()).name


async def test_a_call_that_was_cancelled_never_ends_well(tmp_path: Path) -> None:
    server, _, channel = await served(tmp_path)
    async with channel:
        swallowing, timing = (channel.stream_stream(f"/t/{name}")(timeout=30) for name in ("Swallow", "Time"))
        assert await code(timing) == "OK"
        await asyncio.sleep(0.05)
        await server.stop(0.05)
        assert await code(swallowing) == "UNAVAILABLE"


async def test_who_watches_the_health_does_not_delay_the_end(tmp_path: Path) -> None:
    server, health, channel = await served(tmp_path)
    async with channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=60)
        await watch.read()
        health.set(True)
        await watch.read()
        health.shut_down()
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        began = time.monotonic()
        await server.stop(5)
        assert time.monotonic() - began < 3


async def test_a_peer_that_is_gone_without_a_word_is_noticed() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    server = Server({}, listener, 1 << 20)
    await server.start()
    _, writer = await asyncio.open_connection(*listener.getsockname())
    await asyncio.sleep(0.05)
    [connection] = server._connections
    accepted = connection._transport.get_extra_info("socket")
    assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 60
    writer.close()
    await server.stop(0)


async def test_clients_that_stall_with_their_handshake_keep_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "HANDSHAKES", 3)
    monkeypatch.setattr(server_module, "HANDSHAKE_SECONDS", 3600.0)
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    files = CertificateFiles(TlsFiles(tmp_path / "cert.pem", tmp_path / "key.pem", None))
    listener = socket.create_server(("127.0.0.1", 0))
    health = Health(("",))
    health.set(True)
    server = Server(dict(health.handlers), listener, 1 << 20, files)
    await server.start()
    stalled = [await asyncio.open_connection(*listener.getsockname()) for _ in range(5)]
    credentials = grpc.ssl_channel_credentials(authority.cert_pem.bytes())
    async with grpc.aio.secure_channel(f"localhost:{listener.getsockname()[1]}", credentials) as channel:
        told = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60)
        assert told.status == health_pb2.HealthCheckResponse.SERVING
        for reader, _ in stalled[:2]:
            # The oldest were hung up on.
            async with asyncio.timeout(60):
                assert await reader.read() == b""
    await server.stop(0)
    for _, writer in stalled:
        writer.close()
