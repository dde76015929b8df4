"""Where a model lies that another server runs, and how it is asked: facts alone, made from the policy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """A model at a server of the Open Inference Protocol. `target` is `host:port`; without `secure` there is no TLS.

    `inputs` are pairs of a graph's name for a tensor and the server's, where these differ; so is `output`. `timeout` is
    in seconds, retries included. `concurrency` calls are under way at a time and `queue` more wait; `batch` rows go in
    one call at most. `ca_file` stands in for the public authorities, `server_name` for the host where the certificate
    has another. The token comes from the environment or a file, and goes with every call.
    """

    target: str
    secure: bool
    model: str
    version: str = ""
    inputs: tuple[tuple[str, str], ...] = ()
    output: str = ""
    timeout: float = 1.0
    retries: int = 2
    concurrency: int = 8
    queue: int = 64
    batch: int = 8
    message_bytes: int = 16 * MIB
    server_name: str = ""
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    token_env: str | None = None
    token_file: Path | None = None

    @property
    def named(self) -> str:
        """What messages call it."""
        return f"model {self.model!r} at {self.target}"
