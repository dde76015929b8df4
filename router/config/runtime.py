"""Where workers listen: one rule, which the supervisor, the workers and Envoy's bootstrap all use."""

from __future__ import annotations

from pathlib import Path

MAX_SOCKET_PATH = 100
"""Linux takes 107 bytes in sun_path; what is left over is for the suffix that safe binding needs."""


def worker_socket(runtime_dir: Path, index: int) -> Path:
    """The unix socket of worker `index`; raises ValueError when its path is longer than a socket's may be."""
    path = runtime_dir.absolute() / f"worker-{index}.sock"
    if len(str(path).encode()) > MAX_SOCKET_PATH:
        raise ValueError(f"{path} is too long for a unix socket; choose a shorter --runtime-dir")
    return path
