"""The sections of the policy file that say how requests are handled rather than what is decided about them.

Bounds, encodings, images behind URLs, parity while serving, what is read of responses, and records.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

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


class ResponseSettings(Section):
    """What Envoy shows of the models' responses. It shows copies, so that nothing is delayed or changed."""

    usage: bool = Field(
        default=False,
        description="Read tokens and times of each response: for the log, and for selections that go by speed.",
    )


class RecordSettings(Section):
    """Where decision records are kept, and how long."""

    store: Literal["sqlite"] = Field(default="sqlite", description="sqlite: one file on a disk of the machine.")
    path: str = Field(min_length=1, description="The file; relative to the policy's folder, which must be there.")
    keep_days: float = Field(default=30, gt=0, le=36_500, description="Older records are removed.")
    keep_bytes: int = Field(
        default=1024**3, ge=1024**2, description="Size of the file from which on the oldest records are removed."
    )
