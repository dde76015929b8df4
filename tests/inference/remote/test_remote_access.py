"""TLS, certificates of our own, and tokens: who may ask, and whom we believe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import trustme
from stand_in import StandIn, standing_in, well

from router.inference.remote import channel
from router.inference.remote.access import LONGEST_TOKEN, may_change, read_access
from router.inference.remote.errors import RemoteSetupError, RemoteUnavailableError
from router.inference.remote.server import RemoteServer
from router.inference.vision_model import VisionModel
from router.packs.store import Pack

Opened = Callable[..., Any]
PIXELS = np.zeros((1, 24, 32, 3), dtype=np.uint8)
HERE = RemoteServer("h:1", True, "m")


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def files(tmp_path: Path, ca: trustme.CA) -> Path:
    """ca.pem, and cert.pem and key.pem of a client."""
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    put_client(tmp_path, ca)
    return tmp_path


def put_client(folder: Path, ca: trustme.CA) -> None:
    leaf = ca.issue_cert("pointsman@example.com")
    leaf.private_key_pem.write_to_path(folder / "key.pem")
    (folder / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))


@asynccontextmanager
async def secured(pack: Pack, ca: trustme.CA, host: str, clients: trustme.CA | None = None) -> AsyncIterator[StandIn]:
    leaf = ca.issue_cert(host)
    pair = (leaf.private_key_pem.bytes(), b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
    authorities = clients.cert_pem.bytes() if clients else None
    credentials = grpc.ssl_server_credentials([pair], authorities, require_client_auth=clients is not None)
    async with standing_in(StandIn(pack.folder / "vision.onnx", well), credentials=credentials) as here:
        yield here


async def ask(session: Any, model: VisionModel) -> None:
    await session.rows(session.request(model.feed(PIXELS)), 1)


async def test_a_server_of_our_authority_is_believed(
    vision_pack: Pack, vision_model: VisionModel, opened: Opened, ca: trustme.CA, files: Path
) -> None:
    async with secured(vision_pack, ca, "127.0.0.1") as here:
        await ask(await opened(here, secure=True, ca_file=files / "ca.pem"), vision_model)


async def test_the_name_may_be_another_than_the_host(
    vision_pack: Pack, vision_model: VisionModel, opened: Opened, ca: trustme.CA, files: Path
) -> None:
    async with secured(vision_pack, ca, "encoders.example.com") as here:
        facts = {"secure": True, "ca_file": files / "ca.pem", "retries": 0}
        await ask(await opened(here, server_name="encoders.example.com", **facts), vision_model)
        with pytest.raises(RemoteUnavailableError):
            await opened(here, timeout=5.0, **facts)
        assert here.inferred == 1


@pytest.mark.parametrize("which", ["of another authority", "public ones", "without TLS"])
async def test_a_server_that_we_do_not_know_gets_nothing(
    vision_pack: Pack, opened: Opened, ca: trustme.CA, files: Path, which: str
) -> None:
    trustme.CA().cert_pem.write_to_path(files / "other.pem")
    facts: dict[str, Any] = {
        "of another authority": {"secure": True, "ca_file": files / "other.pem"},
        "public ones": {"secure": True},
        "without TLS": {"secure": False},
    }[which]
    async with secured(vision_pack, ca, "127.0.0.1") as here:
        with pytest.raises(RemoteUnavailableError):
            await opened(here, timeout=5.0, retries=0, **facts)
        assert here.calls == []


async def test_a_server_that_asks_who_we_are_is_shown_our_certificate(
    vision_pack: Pack, vision_model: VisionModel, opened: Opened, ca: trustme.CA, files: Path
) -> None:
    own = {"cert_file": files / "cert.pem", "key_file": files / "key.pem"}
    async with secured(vision_pack, ca, "127.0.0.1", clients=ca) as here:
        facts = {"secure": True, "ca_file": files / "ca.pem", "timeout": 5.0, "retries": 0}
        await ask(await opened(here, **facts, **own), vision_model)
        with pytest.raises(RemoteUnavailableError):
            await opened(here, **facts)
        put_client(files, trustme.CA())
        with pytest.raises(RemoteUnavailableError):
            await opened(here, **facts, **own)


async def test_a_token_goes_with_every_call(
    server: StandIn, opened: Opened, vision_model: VisionModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("s3cr3t\n")
    await ask(await opened(server, token_file=tmp_path / "token"), vision_model)
    assert server.tokens == ["Bearer s3cr3t"] * len(server.calls)
    server.tokens.clear()
    monkeypatch.setenv("ENCODER_TOKEN", "an0ther")
    await ask(await opened(server, token_env="ENCODER_TOKEN"), vision_model)
    assert set(server.tokens) == {"Bearer an0ther"}


async def test_a_token_that_is_replaced_is_read_again(
    server: StandIn, opened: Opened, vision_model: VisionModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "ACCESS_SECONDS", 0.0)
    (tmp_path / "token").write_text("first")
    session = await opened(server, token_file=tmp_path / "token")
    (tmp_path / "token").write_text("second")
    async with asyncio.timeout(60):
        while server.tokens[-1] != "Bearer second":
            await ask(session, vision_model)
    assert server.tokens[0] == "Bearer first"


async def test_certificates_that_are_replaced_make_a_new_connection(
    vision_pack: Pack,
    vision_model: VisionModel,
    opened: Opened,
    ca: trustme.CA,
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channel, "ACCESS_SECONDS", 0.0)
    own = {"cert_file": files / "cert.pem", "key_file": files / "key.pem"}
    async with secured(vision_pack, ca, "127.0.0.1", clients=ca) as here:
        session = await opened(here, secure=True, ca_file=files / "ca.pem", **own)
        await ask(session, vision_model)
        before = session.client._channel._channel
        put_client(files, ca)
        async with asyncio.timeout(60):
            while session.client._channel._channel is before:
                await ask(session, vision_model)
        await ask(session, vision_model)


async def test_files_that_vanish_for_a_moment_change_nothing(
    server: StandIn, opened: Opened, vision_model: VisionModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "ACCESS_SECONDS", 0.0)
    (tmp_path / "token").write_text("first")
    session = await opened(server, token_file=tmp_path / "token")
    (tmp_path / "token").unlink()
    for _ in range(3):
        await ask(session, vision_model)
        await asyncio.gather(*session.client._channel._tasks)
    assert set(server.tokens) == {"Bearer first"}


def test_secrets_are_in_no_repr(files: Path) -> None:
    (files / "token").write_text("s3cr3t")
    own = {"ca_file": files / "ca.pem", "cert_file": files / "cert.pem", "key_file": files / "key.pem"}
    access = read_access(RemoteServer("h:1", True, "m", token_file=files / "token", **own))
    assert access.token == "s3cr3t"
    assert repr(access) == "Access()"


BROKEN: list[tuple[dict[str, str], str, str]] = [
    ({"ca_file": "missing.pem"}, "missing.pem", "No such file"),
    ({"ca_file": "text.pem"}, "text.pem", ""),
    ({"cert_file": "cert.pem", "key_file": "other.pem"}, "other.pem", "key values mismatch"),
    ({"cert_file": "text.pem", "key_file": "key.pem"}, "text.pem", ""),
    ({"token_file": "missing"}, "missing", "No such file"),
    ({"token_file": "empty"}, "empty", "has no token"),
    ({"token_file": "two words"}, "two words", "visible ASCII"),
    ({"token_file": "long"}, "long", "visible ASCII"),
    ({"token_env": "NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE", "has no token"),
]


@pytest.mark.parametrize(("given", "which", "what"), BROKEN)
def test_files_that_cannot_be_used_are_named_and_not_quoted(
    files: Path, given: dict[str, str], which: str, what: str
) -> None:
    trustme.CA().issue_cert("x@example.com").private_key_pem.write_to_path(files / "other.pem")
    (files / "text.pem").write_text("s3cr3t, and no PEM")
    (files / "empty").write_text(" \n")
    (files / "two words").write_text("s3cr3t words")
    (files / "long").write_text("s3cr3t" * LONGEST_TOKEN)
    facts: dict[str, Any] = {key: value if key == "token_env" else files / value for key, value in given.items()}
    with pytest.raises(RemoteSetupError) as caught:
        read_access(RemoteServer("h:1", True, "m", **facts))
    assert which in str(caught.value)
    assert what in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


def test_only_files_are_looked_at_again(tmp_path: Path) -> None:
    assert not may_change(HERE)
    assert not may_change(RemoteServer("h:1", True, "m", token_env="X"))
    assert may_change(RemoteServer("h:1", True, "m", token_file=tmp_path))
