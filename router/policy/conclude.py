"""What follows once no answer is needed any more: the verdict, from whatever observations it was reached.

The engine concludes from what signals say, replay from what a record holds; both mean the same by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from router.policy.agenda import Agendas
from router.policy.model import Policy, Profile
from router.policy.plan import Standing, needed, reason_for, winner
from router.policy.verdict import Stage, Verdict
from router.signals.base import Observation, SignalName

Observations = Mapping[SignalName, Observation]


def unanswered(agendas: Agendas, live: Sequence[Standing], observations: Observations) -> set[SignalName]:
    """The signals, those below projections among them, whose answers can still change who wins."""
    return {
        name
        for asked in needed(live, observations)
        for name in agendas.bases.get(asked, (asked,))
        if name not in observations
    }


def conclude(
    policy: Policy,
    agendas: Agendas,
    profile: Profile | None,
    own_choice: bool,
    live: Sequence[Standing],
    observations: Observations,
    stages: Sequence[Stage] = (),
    seconds: float = 0.0,
) -> Verdict:
    """The verdict when nothing is `unanswered`; `own_choice`: the request keeps the model that it names."""
    won = winner(live)
    considered = agendas.of(profile, guards_only=own_choice).decisions
    if won is not None:
        reason = reason_for(won, considered, observations)
    else:
        reason = "requested_model" if own_choice else "no_match"
    return Verdict(
        decision=won.decision.name if won else None,
        outcome=won.decision.outcome if won else None,
        reason=reason,
        confidence=won.confidence.low if won else None,
        unknown_root=won is not None and won.tree.unknown,
        routes_considered=not own_choice,
        observations=observations,
        skipped=tuple(name for name in agendas.of(profile, guards_only=False).asked if name not in observations),
        stages=tuple(stages),
        seconds=seconds,
        decisions=profile.decisions if profile else policy.decisions,
        reads=agendas.bases,
        profile=profile.name if profile else None,
    )
