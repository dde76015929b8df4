"""Where workers listen: one rule, which the supervisor, the workers and Envoy's bootstrap all use."""

from __future__ import annotations

from pathlib import Path

MAX_SOCKET_PATH = 100
"""A little below the 107 bytes that Linux takes in sun_path, unix(7)."""


def worker_socket(runtime_dir: Path, index: int) -> Path:
    """The unix socket of worker `index`; raises ValueError when its path is longer than a socket's may be."""
    path = runtime_dir.absolute() / f"worker-{index}.sock"
    if len(str(path).encode()) > MAX_SOCKET_PATH:
        raise ValueError(f"{path} is too long for a unix socket; choose a shorter --runtime-dir")
    return path
