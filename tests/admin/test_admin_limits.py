"""Clients that mean ill or are slow: what they cost the admin address, and that others are answered meanwhile."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import trustme
from told_insight import admin_app

from router.admin import limits
from router.admin import tls as tls_module
from router.admin.guard import HEADERS
from router.admin.limits import BoundedListener, PatientProtocol
from router.admin.server import HEAD_BYTES, Front, listen, serving
from router.admin.tls import AdminTls

PATIENCE = 30.0
GOOD = b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


@contextmanager
def admin(tls: AdminTls | None = None) -> Iterator[int]:
    listener = listen("127.0.0.1", 0)
    port = int(listener.getsockname()[1])
    with serving([Front("admin", admin_app(), listener, tls)]):
        yield port


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        yield client


def said(client: socket.socket) -> bytes:
    """All until the server ends the connection, which it does in time or the test fails."""
    data = b""
    try:
        while more := client.recv(65536):
            data += more
    except ConnectionResetError:
        pass
    return data


def is_answered(client: socket.socket) -> bool:
    try:
        client.sendall(GOOD)
        data = b""
        while not data.endswith(b'{"live":true}') and (more := client.recv(65536)):
            data += more
        return data.startswith(b"HTTP/1.1 200")
    except (BrokenPipeError, ConnectionResetError):
        return False


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PatientProtocol, "ask_seconds", 0.1)
    monkeypatch.setattr(PatientProtocol, "answer_seconds", 0.2)
    monkeypatch.setattr(PatientProtocol, "look_seconds", 0.02)


@pytest.mark.parametrize("begun", [b"", b"GET /li", GOOD[:-2], GOOD + b"GET "])
@pytest.mark.usefixtures("impatient")
def test_a_client_that_does_not_go_on_is_let_go(begun: bytes) -> None:
    with admin() as port, connected(port) as client:
        client.sendall(begun)
        assert said(client).count(b"HTTP/1.1 200") == begun.count(GOOD)


@pytest.mark.usefixtures("impatient")
def test_a_client_that_sends_a_byte_at_a_time_is_let_go() -> None:
    with admin() as port, connected(port) as client:
        client.settimeout(0.01)
        sent = 0
        try:
            while sent < 10_000:
                client.sendall(b"GET /livez HTTP/1.1\r\nx: "[sent : sent + 1] or b"y")
                sent += 1
                try:
                    if not client.recv(1):
                        break
                except TimeoutError:
                    continue
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert sent < 10_000


@pytest.mark.usefixtures("impatient")
def test_a_body_that_does_not_come_does_not_keep_the_connection() -> None:
    with admin() as port, connected(port) as client:
        head = (
            b"POST /explain HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n"
        )
        client.sendall(head)
        assert said(client) in (b"",)


def test_more_connections_than_the_bound_are_closed_and_places_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedListener, "most", 3)
    with admin() as port:
        held = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(3)]
        for client in held:
            assert is_answered(client)
        with connected(port) as client:
            assert said(client) == b""
        held.pop().close()
        answered = False
        while not answered:
            with connected(port) as client:
                answered = is_answered(client)
        for client in held:
            assert is_answered(client)
            client.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /livez HTTP/1.1\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: x\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nx: " + b"y" * (HEAD_BYTES + 100_000),
        b"GET /livez HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_and_the_next_is_answered(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with admin() as port:
        with connected(port) as client:
            try:
                client.sendall(sent)
                client.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError, OSError):
                pass
            answer = said(client)
        assert not answer.startswith(b"HTTP/1.1 200")
        assert httpx.get(f"http://127.0.0.1:{port}/livez", trust_env=False).status_code == 200
    assert [record.getMessage() for record in caplog.records if record.levelname != "INFO"] == []


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def tls_files(folder: Path, authority: trustme.CA, asking: bool) -> AdminTls:
    server = authority.issue_cert("127.0.0.1")
    server.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    server.private_key_pem.write_to_path(folder / "key.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    return AdminTls(folder / "cert.pem", folder / "key.pem", folder / "ca.pem" if asking else None)


def client_context(authority: trustme.CA, issuer: trustme.CA | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if issuer is not None:
        issuer.issue_cert("client@example.org").configure_cert(context)
    return context


def test_only_clients_that_the_authorities_vouch_for_get_in(tmp_path: Path, authority: trustme.CA) -> None:
    with admin(tls_files(tmp_path, authority, asking=True)) as port:
        url = f"https://127.0.0.1:{port}/livez"
        known = httpx.get(url, verify=client_context(authority, authority), trust_env=False)
        assert known.json() == {"live": True}
        for issuer in (None, trustme.CA()):
            with pytest.raises(httpx.TransportError):
                httpx.get(url, verify=client_context(authority, issuer), trust_env=False)


def test_clients_that_never_agree_on_tls_are_bounded_too(
    tmp_path: Path, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedListener, "most", 2)
    with admin(tls_files(tmp_path, authority, asking=False)) as port:
        silent = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(2)]
        with connected(port) as client:
            assert said(client) == b""
        for client in silent:
            client.close()


async def test_a_renewed_certificate_is_taken_over_and_a_broken_pair_is_not(
    tmp_path: Path, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned = asyncio.Event()
    monkeypatch.setattr(tls_module.logger, "warning", lambda *_, **__: warned.set())
    tls = tls_files(tmp_path, authority, asking=False)
    context = tls.context()
    loaded: list[AdminTls] = []
    done = asyncio.Event()

    class Seen(AdminTls):
        def load_into(self, context: ssl.SSLContext) -> None:
            super().load_into(context)
            loaded.append(self)
            if len(loaded) == 2:
                done.set()

    following = asyncio.create_task(Seen(tls.cert, tls.key).follow(context, look_seconds=0.01))
    # It begins with what stands there now.
    await asyncio.sleep(0)
    (tmp_path / "key.pem").write_text("no key")
    await asyncio.wait_for(warned.wait(), PATIENCE)
    assert loaded == []
    tls_files(tmp_path, authority, asking=False)
    await asyncio.wait_for(done.wait(), PATIENCE)
    following.cancel()


def test_the_bounds_are_those_that_are_documented() -> None:
    assert (limits.CONNECTIONS, limits.ASK_SECONDS, limits.ANSWER_SECONDS) == (64, 10.0, 100.0)


def test_an_answer_is_not_held_back_for_the_clients_acknowledgement() -> None:
    listener = limits.bounded(listen("127.0.0.1", 0))
    with listener, connected(int(listener.getsockname()[1])):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\nhost : 127.0.0.1\r\n\r\n", b"\x16\x03\x01\x02\r\n\r\n"])
def test_what_is_no_http_gets_the_headers_of_every_answer_as_well(sent: bytes) -> None:
    with admin() as port, connected(port) as client:
        client.sendall(sent)
        head = said(client).decode().partition("\r\n\r\n")[0].lower()
    assert head.startswith("http/1.1 400 bad request")
    assert [name for name, value in HEADERS.items() if f"\n{name}: {value.lower()}" not in head] == []
