"""A socket's path is claimed only from the dead."""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from router.extproc.sockets import MAX_PATH_BYTES, SocketUnavailableError, claim_socket


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    """A socket that listens at `live.sock`."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "live.sock"))
        server.listen(1)
        yield server


def test_a_free_path_gets_its_folder_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "run" / "w0.sock"
    claim_socket(path)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.exists()


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    claim_socket(tmp_path / "w0.sock")
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o750


def test_a_live_socket_is_not_stolen(tmp_path: Path, listener: socket.socket) -> None:
    with pytest.raises(SocketUnavailableError, match="served by another process"):
        claim_socket(tmp_path / "live.sock")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(tmp_path / "live.sock"))


def test_a_live_socket_with_a_full_queue_is_not_stolen(tmp_path: Path, listener: socket.socket) -> None:
    waiting = []
    try:
        while True:
            client = socket.socket(socket.AF_UNIX)
            waiting.append(client)
            client.setblocking(False)
            client.connect(str(tmp_path / "live.sock"))
    except BlockingIOError:
        pass
    with pytest.raises(SocketUnavailableError, match="served by another process"):
        claim_socket(tmp_path / "live.sock")
    for client in waiting:
        client.close()


def test_a_stale_socket_is_removed(tmp_path: Path, listener: socket.socket) -> None:
    listener.close()
    assert (tmp_path / "live.sock").exists()
    claim_socket(tmp_path / "live.sock")
    assert not (tmp_path / "live.sock").exists()


def test_what_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "w0.sock"
    file.write_text("mine")
    with pytest.raises(SocketUnavailableError, match="not a socket"):
        claim_socket(file)
    assert file.read_text() == "mine"


def test_a_link_is_left_alone(tmp_path: Path, listener: socket.socket) -> None:
    link = tmp_path / "link.sock"
    link.symlink_to(tmp_path / "live.sock")
    listener.close()
    with pytest.raises(SocketUnavailableError, match="not a socket"):
        claim_socket(link)


def test_a_path_too_long_for_a_socket_is_named_before_it_is_bound(tmp_path: Path) -> None:
    longest = tmp_path / ("x" * (MAX_PATH_BYTES - len(bytes(tmp_path)) - 1))
    claim_socket(longest)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(longest))
    with pytest.raises(SocketUnavailableError, match="longer than"):
        claim_socket(longest.with_name(longest.name + "x"))
