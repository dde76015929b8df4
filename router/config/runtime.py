"""How many workers there are and where they listen: one rule, which `serve`, workers and Envoy's bootstrap all use."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from router.config.bootstrap import Address

MAX_SOCKET_PATH = 98
"""Below the 107 bytes that Linux takes in sun_path, unix(7), so that the sockets beside a worker's fit too."""

CGROUP = Path("/sys/fs/cgroup")
"""Where a container sees its own limits, by version 2 or 1 of control groups."""


def usable_cores(cgroup: Path = CGROUP) -> int:
    """Cores that this process may use at a time, at least 1: those of its affinity, but no more than its quota.

    Of a quota that is no whole number the rest is left: workers past it would be stopped for the rest of each period.
    """
    cores = len(os.sched_getaffinity(0))
    quota = _quota(cgroup)
    return cores if quota is None else max(1, min(cores, int(quota)))


def _quota(cgroup: Path) -> float | None:
    """CPU time for each unit of time; None without a limit, or where none can be read."""
    try:
        if (cgroup / "cpu.max").exists():
            share, period = (cgroup / "cpu.max").read_text().split()
        else:
            share = (cgroup / "cpu/cpu.cfs_quota_us").read_text()
            period = (cgroup / "cpu/cpu.cfs_period_us").read_text()
        return int(share) / int(period) if int(share) > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None


def worker_socket(runtime_dir: Path, index: int) -> Path:
    """The unix socket of worker `index`; raises ValueError when its path is longer than a socket's may be."""
    path = runtime_dir.absolute() / f"worker-{index}.sock"
    if len(str(path).encode()) > MAX_SOCKET_PATH:
        raise ValueError(f"{path} is too long for a unix socket; choose a shorter --runtime-dir")
    return path


def inspect_socket(socket: Path) -> Path:
    """Where a worker with this socket tells the supervisor's process of itself: `worker-0.inspect.sock` beside it."""
    return socket.with_suffix(".inspect.sock")


def feedback_socket(runtime_dir: Path) -> Path:
    """Where the supervisor's process takes what workers have measured."""
    return runtime_dir.absolute() / "feedback.sock"


def worker_address(first: Address, index: int) -> Address:
    """The TCP address of worker `index`, where `first` is that of worker 0; raises ValueError past the last port."""
    if first.port + index > 65535:
        raise ValueError(f"worker {index} would have port {first.port + index}, and the last one is 65535")
    return replace(first, port=first.port + index)
