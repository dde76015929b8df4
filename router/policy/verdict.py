"""What the engine decided, and everything that explains it: observations, each decision's tree, who won and why.

Plain data; content of the request is nowhere in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from router.policy.bounds import Bounds, bounds
from router.policy.logic import signals_of
from router.policy.model import All, Any, AtLeast, Condition, Decision, Not, Outcome
from router.policy.predicate import Leaf, Truth
from router.signals.base import Observation, SignalName

Reason = Literal["priority", "confidence", "name", "no_match", "requested_model"]
"""Why this one: it outranks whatever else matches (or nothing else does), it is surer than an equal, its name comes
first among equals, nothing matched, or nothing matched and the request's own choice of model is respected."""

NodeState = Literal["true", "false", "unknown", "open"]
"""`open`: not settled, because signals below it could not change the outcome and were not asked."""


@dataclass(frozen=True, slots=True)
class NodeTrace:
    """One node of a decision's tree. `confidence` is at least this, None when open.

    `leaf` is set for leaves, `least` for `at_least`.
    """

    kind: Literal["signal", "all", "any", "at_least", "not"]
    state: NodeState
    confidence: float | None
    leaf: Leaf | None = None
    children: tuple[NodeTrace, ...] = ()
    least: int | None = None


@dataclass(frozen=True, slots=True)
class DecisionTrace:
    """How one decision came out. `matched` is None when it could not change the outcome and stayed open.

    `considered` is False for a route that a respected request for a model kept out.
    """

    name: str
    guard: bool
    priority: int
    considered: bool
    matched: bool | None
    tree: NodeTrace


@dataclass(frozen=True, slots=True)
class Stage:
    """Signals that were asked together, and the seconds that took; `at` is how many had passed from the start."""

    name: Literal["heuristic", "learned"]
    asked: tuple[SignalName, ...]
    seconds: float
    at: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """The engine's answer for one request. `observations` are those of signals and of projections.

    `decision`, `outcome` and `confidence` are None when nothing matched; `confidence` is at least this. `unknown_root`
    says that the winner's tree is not known to be true and matched because unknown counts as matched. `skipped` are
    signals that the decisions read and that were not asked, or whose answer was no longer awaited, because they
    could not change the outcome. `routes_considered` is False when the request's own choice of model is respected.
    `seconds` is the time from request to verdict.
    """

    decision: str | None
    outcome: Outcome | None
    reason: Reason
    confidence: float | None
    unknown_root: bool
    routes_considered: bool
    observations: Mapping[SignalName, Observation]
    skipped: tuple[SignalName, ...]
    stages: tuple[Stage, ...]
    seconds: float
    decisions: tuple[Decision, ...]
    """All decisions that this request could meet, in the policy's order."""
    reads: Mapping[SignalName, tuple[SignalName, ...]]
    """The signals that each projection rests on."""
    profile: str | None = None
    """The profile whose decisions they are."""

    @property
    def overran(self) -> bool:
        """Whether the winner matched as unknown because signals of its tree were timed out or shed."""
        if not self.unknown_root:
            return False
        [won] = [decision for decision in self.decisions if decision.name == self.decision]
        below = (base for name in signals_of(won.when) for base in self.reads.get(name, (name,)))
        missing = (self.observations.get(name) for name in below)
        return any(answer is not None and answer.status in ("timed_out", "shed") for answer in missing)

    @cached_property
    def trace(self) -> tuple[DecisionTrace, ...]:
        """Every decision in the policy's order; built when first asked for, since most requests never are."""
        return tuple(
            DecisionTrace(
                name=decision.name,
                guard=decision.guard,
                priority=decision.priority,
                considered=decision.guard or self.routes_considered,
                matched=settle(decision, bounds(decision.when, self.observations)),
                tree=trace_tree(decision.when, self.observations),
            )
            for decision in self.decisions
        )


def settle(decision: Decision, tree: Bounds) -> Truth:
    """Whether the decision matches, its unknown root settled; None while both are possible."""
    can_match = tree.true is not None or (tree.unknown and decision.unknown_matches)
    can_miss = tree.false is not None or (tree.unknown and not decision.unknown_matches)
    return None if can_match and can_miss else can_match


def trace_tree(condition: Condition, observations: Mapping[SignalName, Observation]) -> NodeTrace:
    """The tree with what is known about each node."""
    state, confidence = _state(bounds(condition, observations))
    match condition:
        case Leaf():
            return NodeTrace("signal", state, confidence, leaf=condition)
        case Not(of=child):
            return NodeTrace("not", state, confidence, children=(trace_tree(child, observations),))
        case All(of=children):
            return NodeTrace("all", state, confidence, children=_below(children, observations))
        case Any(of=children):
            return NodeTrace("any", state, confidence, children=_below(children, observations))
        case AtLeast(least=least, of=children):
            return NodeTrace("at_least", state, confidence, children=_below(children, observations), least=least)


def _below(children: Iterable[Condition], observations: Mapping[SignalName, Observation]) -> tuple[NodeTrace, ...]:
    return tuple(trace_tree(child, observations) for child in children)


def _state(tree: Bounds) -> tuple[NodeState, float | None]:
    if not tree.settled:
        return "open", None
    if tree.true is not None:
        return "true", tree.true.low
    if tree.false is not None:
        return "false", tree.false.low
    return "unknown", 0.0
