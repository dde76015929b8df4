"""What a policy says of one encoder: its pack, and where its forward pass is done if not here."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from router.config.section import Section
from router.inference.remote.server import MIB, RemoteServer

TensorName = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Word = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]+$", max_length=256)]

SCHEMES: Final = ("grpc", "grpcs")
_MUST_BE: Final = "must be grpc://host:port, or grpcs://host:port with TLS"


def _remote(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise ValueError(_MUST_BE)
    if parts.username or parts.password:
        raise ValueError("must not carry credentials; a token comes by token_env or token_file")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("must end after the port; the model's name is the key `model`")
    if parts.port is None:  # raises ValueError when out of range
        raise ValueError(f"{_MUST_BE}: there is no usual port")
    return value


class EncoderPackSettings(Section):
    """A pack, and the server that runs its model where that is not done here."""

    pack: str = Field(min_length=1, description="The pack's name, or a folder; its preprocessing and gate are kept.")
    remote: Annotated[str, AfterValidator(_remote)] | None = Field(
        default=None,
        description="grpc://host:port, or grpcs:// with TLS, of a server of the Open Inference Protocol that runs the "
        "model; omitted: it is run here.",
    )
    model: Word | None = Field(default=None, description="What the server calls the model; needed with remote.")
    version: Word | None = Field(default=None, description="The model's version; omitted: the server chooses.")
    inputs: dict[TensorName, TensorName] = Field(
        default_factory=dict, description="Graph's name of a tensor -> the server's, where they differ."
    )
    output: TensorName | None = Field(
        default=None, description="What the server calls the embeddings; omitted: as the pack does."
    )
    timeout_ms: int = Field(
        default=1000, gt=0, le=60_000, description="Time for one call to the server, its retries included."
    )
    retries: int = Field(
        default=2, ge=0, le=10, description="Times that a call is made again that met no server, within its time."
    )
    concurrency: int = Field(
        default=8, gt=0, le=1024, description="Calls of a worker under way at a time; limits.queue more may wait."
    )
    batch: int = Field(default=8, gt=0, le=1024, description="Rows in one call at most.")
    message_bytes: int = Field(
        default=16 * MIB, ge=64 * 1024, le=1024**3, description="Largest message, sent or received."
    )
    ca_file: str | None = Field(
        default=None,
        min_length=1,
        description="PEM of the authorities that the server's certificate is held against, relative to the policy's "
        "folder; omitted: the public ones.",
    )
    cert_file: str | None = Field(
        default=None, min_length=1, description="PEM of our own certificate, for a server that asks for one."
    )
    key_file: str | None = Field(default=None, min_length=1, description="PEM of its key, without a password.")
    server_name: Word | None = Field(
        default=None, description="The name in the server's certificate, where it is not the host of remote."
    )
    token_env: str | None = Field(
        default=None, min_length=1, description="Environment variable with a token; it is sent as a bearer."
    )
    token_file: str | None = Field(
        default=None, min_length=1, description="File with it in place of a variable; read again when it changes."
    )

    @model_validator(mode="after")
    def _holds_together(self) -> EncoderPackSettings:
        if self.remote is None:
            if alone := sorted(self.model_fields_set - {"pack", "remote"}):
                raise ValueError(
                    f"{alone[0]} says how a server is asked, and there is no remote; add it, or take it away"
                )
            return self
        if self.model is None:
            raise ValueError("with remote needs the key `model`: what the server calls it")
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("needs cert_file and key_file together, or neither")
        if self.token_env is not None and self.token_file is not None:
            raise ValueError("has token_env and token_file; take one of them away")
        parts = urlsplit(self.remote)
        if parts.scheme == "grpcs":
            return self
        for key in ("ca_file", "cert_file", "server_name"):
            if getattr(self, key) is not None:
                raise ValueError(f"{key} belongs to TLS, and remote is grpc://; write grpcs://")
        token = self.token_env is not None or self.token_file is not None
        if token and not _is_loopback(parts.hostname or ""):
            raise ValueError("would send its token in the clear; write grpcs://, or leave the token to a sidecar proxy")
        return self

    def made(self, base: Path, waiting: int) -> RemoteServer | None:
        """Where the model lies if not here; `waiting` calls may wait for others. Paths start from `base`."""
        if self.remote is None:
            return None
        parts = urlsplit(self.remote)
        host = parts.hostname or ""
        return RemoteServer(
            target=f"[{host}]:{parts.port}" if ":" in host else f"{host}:{parts.port}",
            secure=parts.scheme == "grpcs",
            model=self.model or "",
            version=self.version or "",
            inputs=tuple(sorted(self.inputs.items())),
            output=self.output or "",
            timeout=self.timeout_ms / 1000,
            retries=self.retries,
            concurrency=self.concurrency,
            queue=waiting,
            batch=self.batch,
            message_bytes=self.message_bytes,
            server_name=self.server_name or "",
            ca_file=_below(base, self.ca_file),
            cert_file=_below(base, self.cert_file),
            key_file=_below(base, self.key_file),
            token_env=self.token_env,
            token_file=_below(base, self.token_file),
        )


def _below(base: Path, path: str | None) -> Path | None:
    return None if path is None else base / path


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _spelled_out(value: Any) -> Any:
    if isinstance(value, str):
        if not value:
            raise ValueError("must not be empty")
        return {"pack": value}
    if not isinstance(value, dict | EncoderPackSettings):
        raise ValueError("must be a pack's name or folder, or a mapping with `pack` and `remote`")
    return value


EncoderPack = Annotated[
    EncoderPackSettings, BeforeValidator(_spelled_out, json_schema_input_type=str | EncoderPackSettings)
]
"""The type of an encoder: a pack by itself, or a mapping."""
