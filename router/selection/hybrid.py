"""`hybrid`: rules bound, learning picks within.

    select: {hybrid: {limits: {max_latency_ms: 4000}, first: 2, pick: {bandit: {}}}}

Candidates beyond a limit are out (`limits.py`); of the rest the first `first`, in the route's order, stay; `pick`
chooses among those, by its own formula. What is out has propensity 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from router.selection.choice import Choice, Facts
from router.selection.limits import within
from router.selection.model import Hybrid, Select
from router.selection.snapshot import Snapshot
from router.selection.upstream import Upstream


def choose(
    select: Hybrid,
    candidates: Sequence[Upstream],
    facts: Facts,
    snapshot: Snapshot,
    pick: Callable[[Select, Sequence[Upstream]], Choice],
) -> Choice:
    """What `pick` picks of those that the rules leave; of all candidates where the limits leave none."""
    allowed = within(select.limits, candidates, facts.needs, snapshot)
    choice = pick(select.pick, (allowed or candidates)[: select.first])
    propensities = {one.model: choice.propensities.get(one.model, 0.0) for one in candidates}
    return replace(
        choice, reason=choice.reason if allowed else f"{choice.reason}_beyond_limits", propensities=propensities
    )
