"""What a policy's decisions ask for, worked out once: their order, the signals below them, and the cheap ones of those.

There is an agenda for each profile and one for requests without, and of each a second one for requests that keep the
model they name, which meet guards only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from router.policy.logic import signals_of
from router.policy.model import Decision, Policy, Profile
from router.policy.plan import by_rank
from router.policy.projection import Projection
from router.signals.base import Cost, SignalName


@dataclass(frozen=True, slots=True)
class Agenda:
    """`decisions` are sorted by rank. `asked` are all signals below them, `cheap` the heuristics among those.

    `projections` are those that the decisions read, themselves or through others, in the policy's order.
    """

    decisions: tuple[Decision, ...]
    asked: Mapping[SignalName, None]
    cheap: tuple[SignalName, ...]
    projections: tuple[Projection, ...]


class Agendas:
    """The agendas of a policy. `bases` maps each projection to the signals that it rests on."""

    def __init__(self, policy: Policy, costs: Mapping[SignalName, Cost]) -> None:
        """`costs` must know every signal that a decision reads (KeyError otherwise)."""
        self._costs = costs
        self._policy = policy
        self.bases = bases_of(policy.projections)
        sets = {None: policy.decisions} | {profile.name: profile.decisions for profile in policy.profiles}
        self._every = {name: self._agenda(decisions) for name, decisions in sets.items()}
        self._guards = {
            name: self._agenda(decision for decision in decisions if decision.guard) for name, decisions in sets.items()
        }

    def of(self, profile: Profile | None, guards_only: bool) -> Agenda:
        """The agenda of requests under the profile."""
        return (self._guards if guards_only else self._every)[profile.name if profile else None]

    def _agenda(self, decisions: Iterable[Decision]) -> Agenda:
        ranked = by_rank(tuple(decisions))
        named = dict.fromkeys(name for decision in ranked for name in signals_of(decision.when))
        asked = dict.fromkeys(base for name in named for base in self.bases.get(name, (name,)))
        read = set(named)
        for projection in reversed(self._policy.projections):
            if projection.name in read:
                read.update(projection.reads)
        return Agenda(
            decisions=ranked,
            asked=asked,
            cheap=tuple(name for name in asked if self._costs[name] is Cost.HEURISTIC),
            projections=tuple(projection for projection in self._policy.projections if projection.name in read),
        )


def bases_of(projections: Iterable[Projection]) -> dict[SignalName, tuple[SignalName, ...]]:
    """For each projection the signals that it rests on, through others too; each must come after what it reads."""
    bases: dict[SignalName, tuple[SignalName, ...]] = {}
    for projection in projections:
        below = (base for name in projection.reads for base in bases.get(name, (name,)))
        bases[projection.name] = tuple(dict.fromkeys(below))
    return bases


def signals_below(policy: Policy) -> frozenset[SignalName]:
    """Every signal that some decision reads, itself or through a projection."""
    bases = bases_of(policy.projections)
    named = (name for decision in policy.all_decisions for name in signals_of(decision.when))
    return frozenset(base for name in named for base in bases.get(name, (name,)))
