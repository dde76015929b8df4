"""The sections of the policy file that say how requests are handled rather than what is decided about them.

Bounds, encodings, images behind URLs, parity while serving, what is read of responses, and records.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from router.config.section import Section
from router.request.limits import RequestLimits
from router.request.remote_url import RemoteImages, is_host_entry


class LimitSettings(Section):
    """Bounds on what one request may cost."""

    decision_ms: int = Field(
        default=2000,
        gt=0,
        le=60_000,
        description="Time in which a decision is made; a signal that misses it is timed_out.",
    )
    body_bytes: int = Field(
        default=32 * 1024 * 1024, gt=0, le=1024**3, description="Largest request body; Envoy answers 413 past it."
    )
    image_bytes: int = Field(default=20 * 1024 * 1024, gt=0, description="Largest single image, encoded.")
    image_pixels: int = Field(default=25_000_000, gt=0, description="Largest single image, in pixels as declared.")
    decoded_bytes: int | None = Field(
        default=None,
        gt=0,
        le=1024**3,
        description="Largest request body without its content codings; omitted: body_bytes.",
    )
    decoded_ratio: int = Field(
        default=200, gt=0, description="How many times its size a compressed body may become, once it is over 1 MiB."
    )
    images: int = Field(default=500, gt=0, description="Images of a request; more are refused with 400.")
    parts: int = Field(
        default=20_000, gt=0, description="Messages, what they consist of, and tools; more are refused with 400."
    )
    queue: int = Field(default=64, gt=0, description="Model calls that may wait in a worker; more are shed.")
    held_bytes: int = Field(
        default=512 * 1024 * 1024,
        gt=0,
        description="Bytes of bodies that a worker has in hand at a time; requests past it are not judged. One body is "
        "always let in.",
    )
    cache_bytes: int = Field(default=64 * 1024 * 1024, ge=0, description="Memory for cached embeddings in a worker.")

    @property
    def wire_bytes(self) -> int:
        """The largest body between Envoy and a worker: as sent, or as rewritten after its codings were undone."""
        return max(self.body_bytes, self.decoded_bytes or 0)

    @property
    def of_requests(self) -> RequestLimits:
        """The bounds that a request is held against before anything is decided."""
        return RequestLimits(
            body_bytes=self.body_bytes,
            decoded_bytes=self.decoded_bytes or self.body_bytes,
            decoded_ratio=self.decoded_ratio,
            images=self.images,
            parts=self.parts,
        )


class EncodingSettings(Section):
    """Requests with a content-encoding: gzip, deflate, br and zstd are decoded for reading, stacked ones too."""

    unknown: Literal["refuse", "pass"] = Field(
        default="refuse",
        description="Another coding. refuse: 415; pass: it goes to default_model without having been judged, counted.",
    )
    rewrite: Literal["decoded", "reencode"] = Field(
        default="decoded",
        description="A body that is changed. decoded: it goes on without its coding; reencode: with the one it had.",
    )


def _remote_host(value: str) -> str:
    if not is_host_entry(value):
        raise ValueError("must be a host name in lower case such as images.example.com or *.cdn.example.com")
    return value


class RemoteImageSettings(Section):
    """Images behind URLs, which are fetched from these hosts and from no other."""

    hosts: tuple[Annotated[str, AfterValidator(_remote_host)], ...] = Field(
        min_length=1,
        description="Names in lower case; *.cdn.example.com is every name below it; a port where it is another than "
        "the scheme's. What they resolve to must be public addresses.",
    )
    schemes: tuple[Literal["https", "http"], ...] = Field(
        default=("https",), min_length=1, description="http too: whoever is on the way can change what is judged."
    )
    timeout_ms: int = Field(
        default=1000, gt=0, le=60_000, description="Time for one image, its redirects and its wait for others."
    )
    bytes: int = Field(default=10 * 1024 * 1024, gt=0, le=1024**3, description="Largest image fetched.")
    concurrency: int = Field(default=8, gt=0, le=256, description="Images that a worker fetches at a time.")
    redirects: int = Field(default=2, ge=0, le=10, description="Redirects in a row; each must lead to a listed host.")

    def made(self, waiting: int) -> RemoteImages:
        """The rules; `waiting` fetches may wait for others."""
        return RemoteImages(
            hosts=self.hosts,
            schemes=self.schemes,
            timeout=self.timeout_ms / 1000,
            bytes=self.bytes,
            concurrency=self.concurrency,
            redirects=self.redirects,
            waiting=waiting,
        )


class ParitySettings(Section):
    """How a serving worker keeps proving that its packs mean what their references mean."""

    interval: float = Field(
        default=600,
        ge=0,
        le=86_400,
        description="Seconds between checks of one golden vector of each pack while serving; 0: at the start only.",
    )


class CheckRefusalSettings(Section):
    """What a client gets in place of an answer, or behind the part of a stream that has gone on already."""

    status: int = Field(
        default=403,
        ge=400,
        le=599,
        description="HTTP status; of a stream that has begun it cannot be changed any more.",
    )
    code: str = Field(default="policy_violation", pattern=r"^[A-Za-z0-9_.-]+$", description="Machine-readable code.")
    message: str = Field(
        default="The answer was refused by policy.", min_length=1, description="What the client is told."
    )


class CheckSettings(Section):
    """A condition under which an answer is refused."""

    name: Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]+$", max_length=256)] = Field(
        description="Appears in a header of the refused response, and in the log."
    )
    when: Any = Field(
        description="A condition as in decisions, without `not`, over signals that can read what an assistant says."
    )
    respond: CheckRefusalSettings = Field(
        default=CheckRefusalSettings(), description="What the client gets in place of the answer."
    )
    on_unknown: Literal["refuse", "pass"] | None = Field(
        default=None,
        description="An answer of which this cannot be told; omitted: refuse, or pass with `on_failure: open`.",
    )


class HoldBackSettings(Section):
    """How far a streamed answer stays behind what has been judged."""

    chars: int = Field(
        default=2000,
        ge=0,
        le=100_000,
        description="Characters of each text that are held until those behind them have been judged: what is found "
        "never gets out in part if it is no longer than this.",
    )
    ms: int | None = Field(
        default=None,
        gt=0,
        le=600_000,
        description="Longest time that text is held; then it goes on once it has been judged with what is there. "
        "Omitted: as long as it takes.",
    )


class ResponseSettings(Section):
    """What is read of the models' responses, and what they are checked for."""

    usage: bool = Field(
        default=False,
        description="Read tokens and times of each response: for the log, and for selections that go by speed.",
    )
    checks: tuple[CheckSettings, ...] = Field(
        default=(), description="Conditions under which an answer is refused; the first that holds counts."
    )
    hold_back: HoldBackSettings = Field(
        default=HoldBackSettings(), description="How far streamed answers stay behind while they are checked."
    )
    bytes: int = Field(
        default=4 * 1024 * 1024,
        gt=0,
        le=1024**3,
        description="Held of one answer at most while it is checked: of one in JSON all, of a stream what waits.",
    )
    unreadable: Literal["refuse", "pass"] | None = Field(
        default=None,
        description="An answer that cannot be checked: too large, of an unknown encoding or kind, or not in time. "
        "Omitted: refuse, or pass with `on_failure: open`.",
    )


class CaptureSettings(Section):
    """Of which requests the content is kept beside the record, and how it is protected."""

    decisions: Literal["all"] | tuple[str, ...] = Field(
        description="all, or names of decisions; `default` is that of requests that none matched."
    )
    max_bytes: int = Field(
        default=1024 * 1024, gt=0, le=64 * 1024**2, description="Largest request body; of larger ones nothing is kept."
    )
    images: bool = Field(
        default=False, description="Whether images are kept; otherwise their digest and size stand in their places."
    )
    redact: bool = Field(
        default=True, description="Replace what the policy's pii and secret signals find, or keep nothing."
    )
    encrypt: bool = Field(default=True, description="false: content is kept as plain text, and no key is needed.")
    key_env: str | None = Field(
        default=None, min_length=1, description="Environment variable with the keys, the one that encrypts first."
    )
    key_file: str | None = Field(
        default=None, min_length=1, description="File with the keys, one a line; relative to the policy's folder."
    )
    keep_hours: float | None = Field(
        default=None, gt=0, le=876_000, description="Older content is removed; omitted: with its record."
    )

    @model_validator(mode="after")
    def _key_has_one_source(self) -> CaptureSettings:
        given = [key for key in (self.key_env, self.key_file) if key is not None]
        if self.encrypt and len(given) != 1:
            raise ValueError("needs key_env or key_file, one of the two; or `encrypt: false` to keep plain text")
        if not self.encrypt and given:
            raise ValueError("has a key and `encrypt: false`; take one of them away")
        return self

    def wants(self, decision: str) -> bool:
        """Whether requests of this decision are captured."""
        return self.decisions == "all" or decision in self.decisions


class RecordSettings(Section):
    """Where decision records are kept, how long, and whether with their requests' content."""

    store: Literal["sqlite", "postgres"] = Field(
        default="sqlite", description="sqlite: one file on a disk of the machine; postgres: a database for many pods."
    )
    path: str | None = Field(
        default=None,
        min_length=1,
        description="sqlite: the file; relative to the policy's folder, which must be there.",
    )
    dsn_env: str | None = Field(
        default=None, min_length=1, description="postgres: environment variable with the connection string."
    )
    dsn_file: str | None = Field(
        default=None,
        min_length=1,
        description="postgres: file with the connection string; relative to the policy's folder.",
    )
    keep_days: float = Field(default=30, gt=0, le=36_500, description="Older records are removed.")
    keep_bytes: int = Field(
        default=1024**3, ge=1024**2, description="Size of the store from which on the oldest records are removed."
    )
    capture: CaptureSettings | None = Field(
        default=None, description="Keep content of requests; omitted: none is kept."
    )

    @model_validator(mode="after")
    def _store_has_one_place(self) -> RecordSettings:
        dsn = [key for key in (self.dsn_env, self.dsn_file) if key is not None]
        if self.store == "sqlite" and (self.path is None or dsn):
            raise ValueError("needs path, the file, and no connection string; or `store: postgres`")
        if self.store == "postgres" and (self.path is not None or len(dsn) != 1):
            raise ValueError("with `store: postgres` needs dsn_env or dsn_file, one of the two, and no path")
        return self

    def placed(self, base: Path) -> RecordSettings:
        """The same with whole paths; relative ones start at `base`."""
        whole = {
            key: str((base / value).absolute())
            for key in ("path", "dsn_file")
            if (value := getattr(self, key)) is not None
        }
        if self.capture is not None and self.capture.key_file is not None:
            file = str((base / self.capture.key_file).absolute())
            return self.model_copy(update={**whole, "capture": self.capture.model_copy(update={"key_file": file})})
        return self.model_copy(update=whole)


class ShadowSettings(Section):
    """Another policy that is tried on live requests after they were answered; nothing is done by it."""

    policy: str = Field(min_length=1, description="The other policy's file; relative to this policy's folder.")
    share: float = Field(default=1.0, gt=0, le=1, description="Share of requests that it is tried on.")
    queue: int = Field(
        default=64, gt=0, le=10_000, description="Requests of a worker that may wait for it; more are left out."
    )
