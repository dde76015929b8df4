"""Claiming the path of a Unix socket before a server binds it.

gRPC unlinks whatever socket lies at the path, also one that another process is serving; traffic would move over without
a word. Not for TCP, where the kernel refuses a second bind.
"""

from __future__ import annotations

import errno
import socket
import stat
from pathlib import Path

MAX_PATH_BYTES = 107
"""`sun_path` of Linux without its closing zero, unix(7)."""

CONNECT_SECONDS = 1.0


class SocketUnavailableError(Exception):
    """The path cannot be bound; the text says why and is for the operator."""


def claim_socket(path: Path) -> None:
    """Make the path free to bind: its folder exists (a new one with mode 0700), a stale socket is gone.

    Blocks for at most a second, so it belongs before the event loop's work. Raises SocketUnavailableError when a
    process listens there, when something else than a socket is there, or when the path is too long.
    """
    if len(bytes(path)) > MAX_PATH_BYTES:
        raise SocketUnavailableError(f"{path} is longer than {MAX_PATH_BYTES} bytes, the limit for a Unix socket")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise SocketUnavailableError(f"{path} exists and is not a socket")
    if _is_served(path):
        raise SocketUnavailableError(f"{path} is served by another process")
    path.unlink(missing_ok=True)


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_SECONDS)
        # EAGAIN is a listener whose queue is full: alive, if not well.
        return probe.connect_ex(str(path)) not in (errno.ECONNREFUSED, errno.ENOENT)
