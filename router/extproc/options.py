"""How one worker runs, as the supervisor tells it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from router.extproc.certificates import TlsFiles


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How one worker runs. `threads` is how many model calls run at a time, `socket_mode` the socket's permissions.

    `state` is the file of what selections learn from, `feedback` the unix socket that takes what was measured. With
    `listen`, a host and port, it serves there and not at `socket`, which then only says where its state is written.
    """

    config: Path
    socket: Path
    index: int
    threads: int
    socket_mode: int = 0o600
    state: Path | None = None
    feedback: Path | None = None
    listen: tuple[str, int] | None = None
    tls: TlsFiles | None = None

    @property
    def address(self) -> str:
        """Where it serves, in gRPC's words."""
        if self.listen is None:
            return f"unix:{self.socket}"
        host, port = self.listen
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
