"""A model that requests can go to, and what is known about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, in the policy's own currency."""

    input_per_million: float
    output_per_million: float


@dataclass(frozen=True, slots=True)
class Upstream:
    """A model and Envoy's cluster that serves it.

    `modalities` are the kinds of content it reads, `outputs` the kinds of answer it gives. `capabilities` None:
    everything. `context_tokens` None: without bound. `quality` is in 0-1, None where nobody said.
    `image_tokens` is the rule by which it counts images, empty for none. `card` is what it is good at, in words.
    """

    model: str
    cluster: str
    endpoint: str | None
    rewrite_model: str
    modalities: tuple[str, ...]
    context_tokens: int | None = None
    capabilities: frozenset[str] | None = None
    price: Price | None = None
    quality: float | None = None
    image_tokens: str = ""
    card: str = ""
    outputs: tuple[str, ...] = ("text",)
