"""Ways to select one of a route's candidates, as data; each one's formula stands in the module of its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

SpeedMeasure = Literal["ttft", "latency"]
"""Time to the first token, or to the end of the answer."""


@dataclass(frozen=True, slots=True)
class Static:
    """The first candidate, always."""


@dataclass(frozen=True, slots=True)
class Weighted:
    """Shares by weight, at least one of them above 0; the same key has the same candidate.

    `sticky` says whose key it is: the conversation's, the request's own, or that of a trusted header (in `header`).
    """

    weights: Mapping[str, float]
    sticky: Literal["conversation", "request", "header"] = "conversation"
    header: str = ""


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The lowest expected price; `output_tokens` is how long an answer is expected to be, unless it must be shorter."""

    output_tokens: int = 500


@dataclass(frozen=True, slots=True)
class Fastest:
    """The lowest percentile (0-100) of a measured time; a share `explore` (0-1) goes to all candidates alike."""

    measure: SpeedMeasure = "ttft"
    percentile: float = 50.0
    explore: float = 0.05


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on a candidate; None: none. Cost is a request's, in the policy's currency; latency the median in ms."""

    min_quality: float | None = None
    max_cost: float | None = None
    max_latency_ms: float | None = None
    max_load: float | None = None
    output_tokens: int = 500


@dataclass(frozen=True, slots=True)
class MultiFactor:
    """A weighted mean of quality, latency, cost and load, within limits; weights are at least 0, one above."""

    quality: float = 1.0
    latency: float = 1.0
    cost: float = 1.0
    load: float = 0.0
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True)
class Similarity:
    """The candidate whose card is most like what the user says."""


@dataclass(frozen=True, slots=True)
class Elo:
    """The highest rating; a share `explore` (0-1) goes to all candidates alike."""

    explore: float = 0.05


@dataclass(frozen=True, slots=True)
class Bandit:
    """Thompson sampling; `prior` are the two numbers of the Beta distribution that every candidate starts from."""

    prior: tuple[float, float] = (1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Rules bound, learning picks: of the candidates within the limits the first `first` (None: all), then `pick`."""

    pick: Bandit | Elo | Similarity | Fastest
    limits: Limits = Limits()
    first: int | None = None


Select = Static | Weighted | Cheapest | Fastest | MultiFactor | Similarity | Elo | Bandit | Hybrid

WORDS: Mapping[type, str] = {
    Static: "static",
    Weighted: "weighted",
    Cheapest: "cheapest",
    Fastest: "fastest",
    MultiFactor: "multi_factor",
    Similarity: "similarity",
    Elo: "elo",
    Bandit: "bandit",
    Hybrid: "hybrid",
}
"""What a policy calls each."""


def picks_by(select: Select) -> Select:
    """What has the last word: a hybrid's pick, or the selection itself."""
    return select.pick if isinstance(select, Hybrid) else select


def reads_state(select: Select) -> bool:
    """Whether the choice depends on what was measured or rewarded."""
    if isinstance(select, Hybrid | MultiFactor):
        return True
    return isinstance(select, Fastest | Elo | Bandit)
