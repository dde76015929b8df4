"""`pointsman serve`: checks the policy once, then hands over to the supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import ipaddress
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from router.admin.app import build_app
from router.admin.server import listen, serving
from router.cli.output import (
    DOES_NOT_HOLD,
    WRONG_USE,
    Stop,
    address_or_stop,
    complain,
    policy_or_stop,
    worker_count,
)
from router.config.bootstrap import Address
from router.config.runtime import worker_socket
from router.extproc.supervisor import WorkerSpec, supervise
from router.telemetry.log import LogFormat, configure_logging
from router.telemetry.worker_state import state_file

LOCK_FILE = "serve.lock"


def run_serve(
    config: Path, workers: str, runtime_dir: Path, socket_mode: str, admin: str, log_format: LogFormat, log_level: str
) -> int:
    """Run until told to end. A policy that does not hold ends it here, before any worker starts."""
    cores = os.cpu_count() or 1
    try:
        policy_or_stop(config)
        count = worker_count(workers, cores)
        if not _is_mode(socket_mode):
            complain(f"--socket-mode takes octal permissions, as in 660; not {socket_mode!r}")
            return WRONG_USE
        admin_address = _admin_or_stop(admin) if admin else None
        sockets = [worker_socket(runtime_dir, index) for index in range(count)]
    except Stop as stop:
        return stop.code
    except ValueError as error:
        complain(str(error))
        return WRONG_USE
    try:
        runtime_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _lock(runtime_dir)
    except BlockingIOError:
        complain(f"{runtime_dir} is in use by another `pointsman serve`; name another folder with --runtime-dir")
        return DOES_NOT_HOLD
    except OSError as error:
        complain(f"{runtime_dir}: {error.strerror}; name a folder that can be written with --runtime-dir")
        return DOES_NOT_HOLD
    threads = max(1, cores // count)

    def argv(index: int) -> Sequence[str]:
        return [
            sys.executable,
            "-m",
            "router.extproc.worker",
            *("--config", str(config)),
            *("--socket", str(sockets[index])),
            *("--index", str(index)),
            *("--threads", str(threads)),
            *("--socket-mode", socket_mode),
            *("--log-format", log_format),
            *("--log-level", log_level),
        ]

    with lock:
        try:
            answering = _admin(admin_address, sockets)
        except OSError as error:
            # The system's own words: the socket module adds the address to the error's, as a tuple.
            complain(f"--admin {admin}: {os.strerror(error.errno) if error.errno else error}")
            return DOES_NOT_HOLD
        configure_logging(log_format, log_level)
        with answering:
            return asyncio.run(supervise(WorkerSpec(argv), count))


def _admin_or_stop(text: str) -> Address:
    address = address_or_stop(text, "--admin")
    if not ipaddress.ip_address(address.host).is_loopback:
        complain(
            f"--admin takes a loopback address only, as in 127.0.0.1:9902 or [::1]:9902, because whoever connects is "
            f"answered; not {text!r}"
        )
        raise Stop(WRONG_USE)
    return address


def _admin(address: Address | None, sockets: Sequence[Path]) -> AbstractContextManager[None]:
    """Answers at the address, from now on, while it is entered; raises OSError when the address cannot be had."""
    if address is None:
        return contextlib.nullcontext()
    return serving(build_app([state_file(socket) for socket in sockets]), listen(address.host, address.port))


def _lock(runtime_dir: Path) -> BinaryIO:
    """Hold the folder until the file is closed or the process ends; raises BlockingIOError when another holds it.

    Two supervisors in one folder would take each other's sockets whenever a worker dies.
    """
    file = (runtime_dir / LOCK_FILE).open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        file.close()
        raise
    return file


def _is_mode(text: str) -> bool:
    try:
        return 0 <= int(text, 8) <= 0o777
    except ValueError:
        return False
