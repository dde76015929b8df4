"""A loaded policy: plain frozen data that the engine evaluates.

`router.config` makes it from YAML and has checked every reference before; nothing here validates again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from router.signals.base import SignalName


@dataclass(frozen=True, slots=True)
class Leaf:
    """True when the signal matched."""

    signal: SignalName


@dataclass(frozen=True, slots=True)
class All:
    """Kleene conjunction; true when empty."""

    of: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """Kleene disjunction; false when empty."""

    of: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Kleene negation: not of unknown is unknown."""

    of: Condition


Condition = Leaf | All | Any | Not


@dataclass(frozen=True, slots=True)
class Upstream:
    """A model that requests can go to, and Envoy's cluster that serves it."""

    model: str
    cluster: str
    endpoint: str | None
    rewrite_model: str
    modalities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Route:
    """Send the request to one of these models."""

    models: tuple[str, ...]
    select: Literal["static"]


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with an error in the client's dialect."""

    status: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Clarify:
    """Answer as the assistant would, with this text; no upstream is called."""

    message: str


Outcome = Route | Refuse | Clarify


@dataclass(frozen=True, slots=True)
class Decision:
    """A condition tree and what follows from it.

    `unknown_matches` is settled at load: `on_unknown` if written, else true for a guard and false for a route.
    """

    name: str
    priority: int
    guard: bool
    unknown_matches: bool
    when: Condition
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything that decides. `digest` is the SHA-256 in hex of the policy file's bytes."""

    digest: str
    on_failure: Literal["closed", "open"]
    respect_requested_model: bool
    upstreams: tuple[Upstream, ...]
    default_model: str
    decisions: tuple[Decision, ...]

    def upstream(self, model: str) -> Upstream:
        """The upstream that serves the model; KeyError when the policy names none."""
        for upstream in self.upstreams:
            if upstream.model == model:
                return upstream
        raise KeyError(model)
