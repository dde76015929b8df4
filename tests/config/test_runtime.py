"""How many workers `auto` means, and where they listen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from router.config.bootstrap import Address
from router.config.runtime import usable_cores, worker_address, worker_socket

CORES = 8


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(CORES)))


@pytest.mark.parametrize(
    ("limit", "cores"),
    [
        ("max 100000", CORES),
        ("100000 100000", 1),
        ("50000 100000", 1),
        ("250000 100000", 2),
        ("6400000 100000", CORES),
        ("", CORES),
        ("what is this", CORES),
        ("100000 0", CORES),
    ],
)
@pytest.mark.usefixtures("eight_cores")
def test_a_containers_quota_counts_as_cores(tmp_path: Path, limit: str, cores: int) -> None:
    (tmp_path / "cpu.max").write_text(f"{limit}\n")
    assert usable_cores(tmp_path) == cores


@pytest.mark.parametrize(("quota", "cores"), [("-1", CORES), ("300000", 3), ("20000", 1)])
@pytest.mark.usefixtures("eight_cores")
def test_a_quota_of_the_older_kind_counts_too(tmp_path: Path, quota: str, cores: int) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text(f"{quota}\n")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n")
    assert usable_cores(tmp_path) == cores


def test_without_a_quota_the_processs_own_cores_count(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == len(os.sched_getaffinity(0))


def test_every_worker_has_a_socket_and_a_port_of_its_own() -> None:
    sockets = [worker_socket(Path("/run/x"), index) for index in range(3)]
    assert [socket.name for socket in sockets] == ["worker-0.sock", "worker-1.sock", "worker-2.sock"]
    first = Address("::1", 65533)
    assert [worker_address(first, index).port for index in range(3)] == [65533, 65534, 65535]
    with pytest.raises(ValueError, match="the last one is 65535"):
        worker_address(first, 3)
