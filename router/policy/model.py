"""A loaded policy: plain frozen data that the engine evaluates.

`router.config` makes it from YAML and has checked every reference before; nothing here validates again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from router.policy.predicate import Leaf
from router.policy.projection import Projection
from router.request.api_rules import ApiRules
from router.selection.model import Select
from router.selection.upstream import Upstream


@dataclass(frozen=True, slots=True)
class All:
    """Kleene conjunction; true when empty."""

    of: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """Kleene disjunction; false when empty."""

    of: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AtLeast:
    """True when `least` of the children are true; `all` and `any` are its ends."""

    least: int
    of: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Kleene negation: not of unknown is unknown."""

    of: Condition


Condition = Leaf | All | Any | AtLeast | Not


@dataclass(frozen=True, slots=True)
class Route:
    """Send the request to one of these models, as `select` says; `fallback` takes what none of them can take."""

    models: tuple[str, ...]
    select: Select
    fallback: tuple[str, ...] = ()


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

    `unknown_matches` is settled at load: `on_unknown` if written, else true for a guard and false for a route. `tier`
    is compared before confidence: the priority, or the same for all routes where confidence goes first.
    """

    name: str
    priority: int
    guard: bool
    unknown_matches: bool
    when: Condition
    outcome: Outcome
    tier: int


@dataclass(frozen=True, slots=True)
class Profile:
    """A set of decisions of its own, for requests that name one of `models` or bear one of `values` in `header`.

    `values` are case-folded: headers are compared without regard to case, as `header` signals do. `decisions` are all
    that are considered: the policy's guards, then the profile's own.
    """

    name: str
    models: frozenset[str]
    header: str
    values: frozenset[str]
    decisions: tuple[Decision, ...]
    default_model: str


@dataclass(frozen=True)
class Policy:
    """Everything that decides. `digest` is the SHA-256 in hex of the policy file's bytes.

    `decisions` are those of requests without a profile. `projections` stand in an order in which each comes after what
    it reads. `fallback` takes requests that no candidate of a route can take, if it can; guards have only their own.
    With `gateway_api_inference` the model is named by the Gateway API Inference Extension's header, too.
    With `observe_only` what is decided is recorded and not done. `trusted_headers` are all names that may be read as
    such; `trusted_metadata` and `trusted_attributes` say which of them come from Envoy instead, and from where there.
    """

    digest: str
    on_failure: Literal["closed", "open"]
    respect_requested_model: bool
    upstreams: tuple[Upstream, ...]
    default_model: str
    decisions: tuple[Decision, ...]
    projections: tuple[Projection, ...] = ()
    profiles: tuple[Profile, ...] = ()
    fallback: tuple[str, ...] = ()
    apis: ApiRules = ()
    trusted_headers: tuple[str, ...] = ()
    strip_from_clients: tuple[str, ...] = ()
    evaluation: Literal["lazy", "full"] = "lazy"
    observe_only: bool = False
    gateway_api_inference: bool = False
    trusted_metadata: Mapping[str, str] = field(default_factory=dict)
    trusted_attributes: Mapping[str, str] = field(default_factory=dict)

    def upstream(self, model: str) -> Upstream:
        """The upstream that serves the model; KeyError when the policy names none."""
        return self._by_model[model]

    @cached_property
    def _by_model(self) -> Mapping[str, Upstream]:
        return {upstream.model: upstream for upstream in self.upstreams}

    @property
    def all_decisions(self) -> tuple[Decision, ...]:
        """The decisions of every profile, once, and those without one."""
        own = (decision for profile in self.profiles for decision in profile.decisions)
        return tuple({decision.name: decision for decision in (*self.decisions, *own)}.values())
