"""What a signal is and what it answers.

A signal is one question about the request, asked by name. It never raises for what a client sent: a part that could
not be judged makes the observation `failed`, which the policy reads as unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, NamedTuple, Protocol

from router.request.view import RequestView

Status = Literal["observed", "failed", "timed_out", "shed"]


class SignalName(NamedTuple):
    """`family/name`, as conditions and records write it. A tuple, because it is hashed many times a request."""

    family: str
    name: str

    def __str__(self) -> str:
        return f"{self.family}/{self.name}"


class Cost(IntEnum):
    """What asking costs; cheaper signals are asked first."""

    HEURISTIC = 0
    """Microseconds to a few milliseconds of plain Python."""
    TEXT_MODEL = 1
    """A text encoder's forward pass for each window that is not cached."""
    VISION_MODEL = 2
    """An image decode and a vision encoder's forward pass for each image that is not cached."""
    READING = 3
    """Text recognition in each image that is not cached: hundreds of milliseconds."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an observation rests on; never raw content.

    `pointer` is the part's JSON pointer, or `header:name` of a request header, or `signal:family/name` of what a
    projection rests on; `span` a half-open character range in its text; `label` the policy's own word
    (a concept, a keyword, an anchor); `score` is in 0-1; `image` is the image's index among all images of the request.
    """

    pointer: str
    label: str = ""
    score: float | None = None
    span: tuple[int, int] | None = None
    image: int | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """The answer to a signal's question.

    `matched` is None (unknown) exactly when `status` is not `observed`. `score` is in 0-1 and None where it is unknown
    or where the family has none. `value` is what the family counted or measured, in its own unit, None where it counts
    nothing. `reason` says why an answer is missing. `pack` is the digest of the pack that was asked. `duration` is in
    seconds; for `waited` of them work of the signal waited for a thread and none was done. It was asked `at` seconds
    after the request was read.
    """

    status: Status
    matched: bool | None
    score: float | None = None
    label: str = ""
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""
    pack: str = ""
    duration: float = 0.0
    value: float | None = None
    waited: float = 0.0
    at: float = 0.0

    def __post_init__(self) -> None:
        if (self.matched is None) != (self.status != "observed"):
            raise ValueError(f"status {self.status} does not go with matched={self.matched}")

    def took(self, seconds: float, waited: float = 0.0, at: float = 0.0) -> Observation:
        """The same answer with its times."""
        # Of each request there are some, and `replace` takes three times as long.
        return Observation(
            self.status,
            self.matched,
            self.score,
            self.label,
            self.evidence,
            self.reason,
            self.pack,
            seconds,
            self.value,
            waited,
            at,
        )


def observed(matched: bool, score: float | None = None, **rest: object) -> Observation:
    """An answer."""
    return Observation("observed", matched, score, **rest)  # type: ignore[arg-type]


def failed(reason: str, evidence: tuple[Evidence, ...] = (), pack: str = "") -> Observation:
    """No answer, because something could not be read or computed."""
    return Observation("failed", None, reason=reason, evidence=evidence, pack=pack)


def shed(pack: str = "", evidence: tuple[Evidence, ...] = ()) -> Observation:
    """No answer, because the models have too much to do already."""
    return Observation("shed", None, reason="overloaded", evidence=evidence, pack=pack)


class Signal(Protocol):
    """One question. `observe` may run for many requests at once and is cancelled when its answer is not needed."""

    @property
    def name(self) -> SignalName:
        """The name that conditions use."""
        ...

    @property
    def cost(self) -> Cost:
        """What asking costs."""
        ...

    async def prepare(self) -> None:
        """Compute what no request changes (anchor embeddings); called once, before the worker is ready."""
        ...

    async def observe(self, view: RequestView) -> Observation:
        """Answer for this request; `duration` is filled in by the caller."""
        ...
