"""Sockets that a worker is served on: a unix socket, or a TCP address. What stands there already is left in peace."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

from router.extproc.sockets import SocketUnavailableError, claim_socket


def bound(address: str) -> tuple[socket.socket, Path | None]:
    """A socket bound to `unix:/path` or `host:port`, which does not listen yet, and the path if it has one.

    Raises SocketUnavailableError where somebody else listens, or where there is no such address.
    """
    if address.startswith("unix:"):
        path = Path(address.removeprefix("unix:"))
        claim_socket(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        return _bind(listener, str(path), address), path
    host, _, port = address.rpartition(":")
    try:
        [(family, _, _, _, where), *_] = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except OSError as error:
        raise SocketUnavailableError(f"{address}: {error.strerror}") from error
    listener = socket.socket(family, socket.SOCK_STREAM)
    # A worker that is started again takes its port over from connections that are still closing, and from no listener.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        # `[::]` serves both families, as it does for gRPC.
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    return _bind(listener, where, address), None


def _bind(listener: socket.socket, where: object, address: str) -> socket.socket:
    try:
        listener.bind(where)  # type: ignore[arg-type]
        if listener.family != socket.AF_UNIX:
            # Linux lets two sockets be bound to a port, and only one of them listen.
            listener.listen()
    except OSError as error:
        listener.close()
        if error.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL):
            raise SocketUnavailableError(f"{address} cannot be bound: in use, or no address of this machine") from error
        raise SocketUnavailableError(f"{address}: {os.strerror(error.errno or 0)}") from error
    return listener
