"""The admin and probe addresses of `serve`: what the flags ask for, and the servers in the supervisor's process.

It refuses what would answer anybody on the network by oversight.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from router.admin.app import Shown, build_app, build_intake, build_probe
from router.admin.asking import Asking
from router.admin.feedback import Feedback
from router.admin.findings import Findings
from router.admin.guard import Access, Guard, loopback_access
from router.admin.known import KnownNames
from router.admin.server import Front, listen, serving
from router.admin.tls import AdminTls, TlsError
from router.cli.output import DOES_NOT_HOLD, WRONG_USE, Stop, address_or_stop, complain, note
from router.config.bootstrap import Address
from router.config.load import LoadedPolicy
from router.config.runtime import inspect_socket
from router.selection.keeper import Keeper
from router.telemetry.worker_state import state_file

logger = logging.getLogger(__name__)

TOKEN_LENGTH: Final = 16
"""The shortest admin token."""

TOKEN_BYTES: Final = 4096
"""The largest file with one."""

EXPLAIN_SLACK: Final = 3.0
"""Seconds that an answer of a worker's explaining may take beyond the policy's decision time."""


@dataclass(frozen=True, slots=True)
class AdminFlags:
    """The flags as given."""

    admin: str = ""
    probe: str = ""
    token_file: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class Administration:
    """Where is answered, and who; `admin` and `probe` are None where there is no such address."""

    admin: Address | None
    probe: Address | None
    access: Access = field(repr=False)
    tls: AdminTls | None


def administration_or_stop(flags: AdminFlags) -> Administration:
    """What the flags say. Raises Stop for what cannot be meant, and for files that cannot be used."""
    admin = address_or_stop(flags.admin, "--admin") if flags.admin else None
    probe = address_or_stop(flags.probe, "--probe") if flags.probe else None
    given = [file for file in (flags.token_file, flags.cert, flags.key, flags.client_ca) if file is not None]
    if admin is None and given:
        raise _wrong("--admin-token-file, --admin-cert, --admin-key and --admin-client-ca go with --admin")
    if (flags.cert is None) != (flags.key is None) or (flags.client_ca is not None and flags.cert is None):
        raise _wrong("--admin-cert and --admin-key go together, and --admin-client-ca with both")
    tls = None
    if flags.cert is not None and flags.key is not None:
        tls = AdminTls(flags.cert, flags.key, flags.client_ca)
        try:
            tls.context()
        except TlsError as error:
            complain(str(error))
            raise Stop(DOES_NOT_HOLD) from None
    token = _token_or_stop(flags.token_file) if flags.token_file is not None else None
    if admin is None:
        return Administration(None, probe, Access(frozenset()), None)
    if token is None and flags.client_ca is None and not ipaddress.ip_address(admin.host).is_loopback:
        raise _wrong(
            f"--admin {flags.admin} can be reached from other machines, and shows what was decided about requests; "
            "give it --admin-token-file, or --admin-cert, --admin-key and --admin-client-ca, or a loopback address as "
            "in 127.0.0.1:9902. For probes and metrics alone there is --probe"
        )
    # By a certificate or a token nobody gets in whom a name in the DNS has led here.
    open_to_the_machine = token is None and flags.client_ca is None
    access = loopback_access(admin.host) if open_to_the_machine else Access(None, token)
    return Administration(admin, probe, access, tls)


def bind_or_stop(until: contextlib.ExitStack, address: Address | None, flag: str) -> socket.socket | None:
    """A listener, which is closed when the stack ends; raises Stop."""
    if address is None:
        return None
    try:
        return until.enter_context(contextlib.closing(listen(address.host, address.port)))
    except OSError as error:
        # The system's own words: the socket module adds the address to the error's, as a tuple.
        host = f"[{address.host}]" if ":" in address.host else address.host
        complain(f"{flag} {host}:{address.port}: {os.strerror(error.errno) if error.errno else error}")
        raise Stop(DOES_NOT_HOLD) from None


def keeper_socket(path: Path) -> socket.socket:
    """A listener of this user's alone; a socket that a former process left there is replaced. Raises OSError."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def administer(
    until: contextlib.ExitStack,
    administration: Administration,
    listeners: tuple[socket.socket | None, socket.socket | None],
    keeper: tuple[Keeper, socket.socket] | None,
    loaded: LoadedPolicy,
    sockets: Sequence[Path],
) -> None:
    """Answer at the listeners, of the admin and the probe address, until the stack ends; `sockets` are the workers'."""
    admin, probe = listeners
    limits = loaded.limits
    asking = Asking(
        [inspect_socket(path) for path in sockets], findings := Findings(), limits.decision_ms / 1000 + EXPLAIN_SLACK
    )

    async def close() -> None:
        await findings.close()
        await asking.close()

    feedback = None if keeper is None else Feedback(keeper[0], KnownNames(loaded.path))
    shown = Shown([state_file(path) for path in sockets], asking, feedback, limits.wire_bytes)
    fronts = []
    if admin is not None:
        fronts.append(Front("admin", Guard(build_app(shown), administration.access), admin, administration.tls))
    if probe is not None:
        fronts.append(Front("probe", Guard(build_probe(shown), Access(None)), probe))
    if keeper is not None and feedback is not None:
        fronts.append(Front("keeper", Guard(build_intake(feedback), Access(None)), keeper[1]))
    if fronts:
        until.enter_context(serving(fronts, close))


def _token_or_stop(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            token = opened.read(TOKEN_BYTES + 1).strip()
            mode = os.fstat(opened.fileno()).st_mode
    except OSError as error:
        complain(f"--admin-token-file {file}: {error.strerror}")
        raise Stop(DOES_NOT_HOLD) from None
    if len(token) > TOKEN_BYTES or not token.isascii() or not token.decode("ascii", "replace").isprintable():
        raise _wrong(f"--admin-token-file {file}: a token is one line of printable ASCII")
    if len(token) < TOKEN_LENGTH or b" " in token:
        raise _wrong(f"--admin-token-file {file}: a token has at least {TOKEN_LENGTH} characters, and no spaces")
    if mode & 0o077:
        note(f"warning: {file} can be read by others on this machine; chmod 600 it")
    return token


def _wrong(message: str) -> Stop:
    complain(message)
    return Stop(WRONG_USE)
