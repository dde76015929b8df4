"""A service on TCP, with and without TLS, as clients of each kind see it."""

from __future__ import annotations

import socket
from pathlib import Path

import grpc
import grpc.aio
import pytest
import trustme
from grpc_health.v1 import health_pb2, health_pb2_grpc

from router.actions.edits import Edits
from router.extproc.certificates import TlsFiles
from router.extproc.exchange import FailureKind
from router.extproc.head import RequestHead
from router.extproc.service import Service, build_service
from router.extproc.sockets import SocketUnavailableError
from router.request.reply import Reply
from router.telemetry.instruments import create_instruments


class NoJudge:
    def reads_body(self, head: RequestHead) -> bool:
        return False

    async def judge_headers(self, head: RequestHead) -> Edits | Reply:
        raise NotImplementedError

    async def judge(self, head: RequestHead, body: bytes) -> Edits | Reply:
        raise NotImplementedError

    def failed(self, head: RequestHead | None, kind: FailureKind) -> Edits | Reply:
        raise NotImplementedError


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


class Place:
    """An authority, a server's files, and what a client needs."""

    def __init__(self, folder: Path) -> None:
        self.ca = trustme.CA()
        self.files = TlsFiles(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")
        self.ca.cert_pem.write_to_path(folder / "ca.crt")
        self.issue()

    def issue(self) -> None:
        self.put(self.ca.issue_cert("127.0.0.1"))

    def put(self, leaf: trustme.LeafCert) -> None:
        leaf.private_key_pem.write_to_path(self.files.key)
        self.files.cert.write_bytes(leaf.cert_chain_pems[0].bytes())

    def credentials(self, own: trustme.CA | None, trusts: trustme.CA | None = None) -> grpc.ChannelCredentials:
        roots = (trusts or self.ca).cert_pem.bytes()
        if own is None:
            return grpc.ssl_channel_credentials(roots)
        leaf = own.issue_cert("envoy")
        return grpc.ssl_channel_credentials(roots, leaf.private_key_pem.bytes(), leaf.cert_chain_pems[0].bytes())


def service_at(address: str, tls: TlsFiles | None) -> Service:
    return build_service(
        NoJudge(), address=address, body_bytes=1 << 20, deadline=1, instruments=create_instruments(), tls=tls
    )


async def answered(address: str, credentials: grpc.ChannelCredentials | None) -> bool:
    """Whether a client with these credentials, on a connection of its own, is told of the health."""
    # Without a pool of its own a channel would take over a connection that another has made.
    options = [("grpc.use_local_subchannel_pool", 1)]
    make = grpc.aio.insecure_channel if credentials is None else grpc.aio.secure_channel
    async with make(address, *([credentials] if credentials else []), options=options) as channel:
        try:
            await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=20)
        except grpc.aio.AioRpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE
            return False
        return True


async def test_tcp_in_the_clear_answers_whoever_connects() -> None:
    address = free_address()
    service = service_at(address, None)
    await service.start()
    assert await answered(address, None)
    await service.drain(0, 0)


async def test_a_port_in_use_is_not_shared() -> None:
    address = free_address()
    service = service_at(address, None)
    await service.start()
    with pytest.raises(SocketUnavailableError, match=address):
        service_at(address, None)
    await service.drain(0, 0)


async def test_only_clients_with_a_certificate_of_the_authority_get_in(tmp_path: Path) -> None:
    place, address = Place(tmp_path), free_address()
    service = service_at(address, place.files)
    await service.start()
    assert await answered(address, place.credentials(place.ca))
    assert not await answered(address, place.credentials(None))
    assert not await answered(address, place.credentials(trustme.CA()))
    assert not await answered(address, None)
    await service.drain(0, 0)


async def test_without_an_authority_every_client_with_tls_gets_in(tmp_path: Path) -> None:
    place, address = Place(tmp_path), free_address()
    service = service_at(address, TlsFiles(place.files.cert, place.files.key))
    await service.start()
    assert await answered(address, place.credentials(None))
    assert not await answered(address, None)
    await service.drain(0, 0)


async def test_new_certificates_are_shown_to_new_connections_and_old_ones_go_on(tmp_path: Path) -> None:
    place, address = Place(tmp_path), free_address()
    service = service_at(address, place.files)
    await service.start()
    other = trustme.CA()
    async with grpc.aio.secure_channel(address, place.credentials(place.ca)) as old:
        stub = health_pb2_grpc.HealthStub(old)
        await stub.Check(health_pb2.HealthCheckRequest(), timeout=20)
        place.put(other.issue_cert("127.0.0.1"))
        assert not await answered(address, place.credentials(place.ca))
        assert await answered(address, place.credentials(place.ca, trusts=other))
        await stub.Check(health_pb2.HealthCheckRequest(), timeout=20)
    await service.drain(0, 0)


async def test_new_authorities_let_in_their_clients_and_no_others_any_more(tmp_path: Path) -> None:
    place, address = Place(tmp_path), free_address()
    service = service_at(address, place.files)
    await service.start()
    other = trustme.CA()
    assert not await answered(address, place.credentials(other))
    other.cert_pem.write_to_path(tmp_path / "ca.crt")
    assert await answered(address, place.credentials(other))
    assert not await answered(address, place.credentials(place.ca))
    await service.drain(0, 0)


async def test_a_broken_certificate_leaves_the_former_one_in_use(tmp_path: Path) -> None:
    place, address = Place(tmp_path), free_address()
    service = service_at(address, place.files)
    await service.start()
    place.files.cert.write_text("not a certificate")
    assert await answered(address, place.credentials(place.ca))
    place.issue()
    assert await answered(address, place.credentials(place.ca))
    await service.drain(0, 0)


async def test_files_that_cannot_be_used_keep_the_service_from_being_bound(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.files.key.unlink()
    with pytest.raises(SocketUnavailableError, match=r"tls\.key"):
        service_at(free_address(), place.files)
