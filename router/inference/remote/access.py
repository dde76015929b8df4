"""What lets us in at a server and tells that it is the right one: PEM files and a token, read and held together.

They are secrets: nothing here quotes them, and no repr shows them.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from router.inference.remote.errors import RemoteSetupError
from router.inference.remote.server import RemoteServer

LONGEST_TOKEN = 16_384
"""Characters; servers take 8 KiB of headers, few of them twice as much."""


@dataclass(frozen=True, slots=True)
class Access:
    """As the files and the environment had it when they were read."""

    token: str = field(default="", repr=False)
    ca: bytes | None = field(default=None, repr=False)
    cert: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)


def read_access(server: RemoteServer, environ: Mapping[str, str] = os.environ) -> Access:
    """What stands in the files and the environment now. Blocks; raises RemoteSetupError."""
    _check_pem(server)
    return Access(
        token=_token(server, environ),
        ca=_bytes(server.ca_file),
        cert=_bytes(server.cert_file),
        key=_bytes(server.key_file),
    )


def may_change(server: RemoteServer) -> bool:
    """Whether there are files, which may be replaced while we serve."""
    return any((server.ca_file, server.cert_file, server.token_file))


def _token(server: RemoteServer, environ: Mapping[str, str]) -> str:
    if server.token_env is not None:
        token, place = environ.get(server.token_env, "").strip(), f"the environment variable {server.token_env}"
    elif server.token_file is not None:
        token, place = (_bytes(server.token_file) or b"").decode("latin-1").strip(), str(server.token_file)
    else:
        return ""
    if not token:
        raise RemoteSetupError(f"{place} has no token in it")
    if len(token) > LONGEST_TOKEN or not all("\x21" <= each <= "\x7e" for each in token):
        raise RemoteSetupError(f"{place} holds no token: one is a word of visible ASCII")
    return token


def _bytes(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise RemoteSetupError(f"{path}: {error.strerror}") from error


def _check_pem(server: RemoteServer) -> None:
    """gRPC takes any bytes for PEM and says much later that nothing can be reached."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if server.ca_file is not None:
        try:
            context.load_verify_locations(server.ca_file)
        except (OSError, ValueError) as error:
            raise RemoteSetupError(f"{server.ca_file}: {_why(error)}") from error
    if server.cert_file is not None and server.key_file is not None:
        try:
            context.load_cert_chain(server.cert_file, server.key_file, password=_no_password)
        except (OSError, ValueError) as error:
            raise RemoteSetupError(f"{server.cert_file} and {server.key_file}: {_why(error)}") from error


def _no_password() -> str:
    # OpenSSL would ask on the terminal otherwise.
    raise ValueError("the key has a password")


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "no PEM of that kind").replace("_", " ").lower()
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
