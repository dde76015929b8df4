"""`pointsman serve`: checks the policy once, then hands over to the supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import socket
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from router.cli.administering import AdminFlags, administer, administration_or_stop, bind_or_stop, keeper_socket
from router.cli.listening import Listening, listening_or_stop
from router.cli.output import DOES_NOT_HOLD, WRONG_USE, Stop, complain, policy_or_stop, worker_count
from router.config.bootstrap import Address
from router.config.runtime import feedback_socket, usable_cores, worker_socket
from router.extproc.supervisor import WorkerSpec, supervise
from router.selection.keeper import Keeper
from router.selection.state_file import FILE_NAME
from router.telemetry.log import LogFormat, configure_logging
from router.telemetry.worker_state import StateFileError, read_state, state_file

LOCK_FILE = "serve.lock"


def run_serve(
    config: Path,
    workers: str,
    runtime_dir: Path,
    socket_mode: str,
    admin: AdminFlags,
    state: Path | None,
    log_format: LogFormat,
    log_level: str,
    listen_on: str = "",
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    tls_client_ca: Path | None = None,
    insecure: bool = False,
) -> int:
    """Run until told to end. A policy that does not hold ends it here, before any worker starts."""
    cores = usable_cores()
    try:
        loaded = policy_or_stop(config)
        count = worker_count(workers, cores)
        if not _is_mode(socket_mode):
            complain(f"--socket-mode takes octal permissions, as in 660; not {socket_mode!r}")
            return WRONG_USE
        administration = administration_or_stop(admin)
        tcp = listening_or_stop(listen_on, count, tls_cert, tls_key, tls_client_ca, insecure)
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
    learnt = (state or runtime_dir).absolute() / FILE_NAME
    taking = feedback_socket(runtime_dir)

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
            *("--state", str(learnt)),
            *(("--feedback", str(taking)) if administration.admin else ()),
            *(_tcp_words(tcp, index) if tcp else ()),
            *("--log-format", log_format),
            *("--log-level", log_level),
        ]

    with lock, contextlib.ExitStack() as until_the_end:
        try:
            admin_at = bind_or_stop(until_the_end, administration.admin, "--admin")
            probe_at = bind_or_stop(until_the_end, administration.probe, "--probe")
            if administration.admin and learnt.parent != runtime_dir.absolute():
                _hold_or_stop(until_the_end, learnt.parent)
            configure_logging(log_format, log_level)
            keeper = _keeper_or_stop(until_the_end, learnt, taking) if administration.admin else None
        except Stop as stop:
            return stop.code
        administer(until_the_end, administration, (admin_at, probe_at), keeper, loaded, sockets)
        spec = WorkerSpec(argv, trial=[*argv(0), "--check"], ready=partial(_is_ready, sockets))
        return asyncio.run(supervise(spec, count))


def _hold_or_stop(until: contextlib.ExitStack, folder: Path) -> None:
    """Hold the folder of what selections learn; raises Stop."""
    try:
        until.enter_context(_state_folder(folder))
    except BlockingIOError:
        complain(f"{folder} is in use by another `pointsman serve`; name another folder with --state")
        raise Stop(DOES_NOT_HOLD) from None
    except OSError as error:
        complain(f"{folder}: {error.strerror}; name a folder that can be written with --state")
        raise Stop(DOES_NOT_HOLD) from None


def _keeper_or_stop(until: contextlib.ExitStack, learnt: Path, taking: Path) -> tuple[Keeper, socket.socket]:
    """Who keeps what selections learn, and the socket at which workers tell of what they measured; raises Stop."""
    try:
        keeper = until.enter_context(Keeper(learnt).running())
    except OSError as error:
        complain(f"{learnt.parent}: {error.strerror}; name a folder that can be written with --state")
        raise Stop(DOES_NOT_HOLD) from None
    try:
        return keeper, until.enter_context(contextlib.closing(keeper_socket(taking)))
    except OSError as error:
        complain(f"{taking}: {error.strerror}; name a folder that can be written with --runtime-dir")
        raise Stop(DOES_NOT_HOLD) from None


def _is_ready(sockets: Sequence[Path], index: int, pid: int) -> bool:
    """Whether this very process says that it serves as worker `index`."""
    try:
        said = read_state(state_file(sockets[index]))
    except StateFileError:
        return False
    return said is not None and (said.pid, said.state) == (pid, "ready")


def _state_folder(folder: Path) -> BinaryIO:
    """Make the folder and hold it, as `_lock` does; raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _lock(folder)


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


def _tcp_words(tcp: Listening, index: int) -> Sequence[str]:
    words = ["--listen", _host_and_port(tcp.addresses[index])]
    if tcp.tls is not None:
        words += ["--tls-cert", str(tcp.tls.cert), "--tls-key", str(tcp.tls.key)]
        words += ["--tls-client-ca", str(tcp.tls.client_ca)] if tcp.tls.client_ca else []
    return words


def _host_and_port(address: Address) -> str:
    return f"[{address.host}]:{address.port}" if ":" in address.host else f"{address.host}:{address.port}"


def _is_mode(text: str) -> bool:
    try:
        return 0 <= int(text, 8) <= 0o777
    except ValueError:
        return False
