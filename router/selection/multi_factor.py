"""`multi_factor`: a weighted mean of quality, latency, cost and load, within hard limits.

    select: {multi_factor: {weights: {quality: 2, latency: 1, cost: 1}, limits: {max_cost: 0.02}}}

score_i = sum(w_f u_f,i) / sum(w_f), simple additive weighting (Fishburn 1967) of utilities in 0-1: quality as the
policy states it; lowest median latency / own; lowest cost / own; 1 - load. What is not known of a candidate counts as
the mean of the others', 0.5 where nobody's is known. Limits go first (`limits.py`); equal scores go by the route's
order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from router.selection.cheapest import cost
from router.selection.choice import Choice, certain
from router.selection.limits import within
from router.selection.model import MultiFactor
from router.selection.needs import Needs
from router.selection.snapshot import Snapshot
from router.selection.upstream import Upstream


def choose(select: MultiFactor, candidates: Sequence[Upstream], needs: Needs, snapshot: Snapshot) -> Choice:
    """The highest score of those within the limits, of all where none is."""
    allowed = within(select.limits, candidates, needs, snapshot)
    rivals = allowed or list(candidates)
    speeds = {one.model: snapshot.speed(one.model) for one in rivals}
    costs = {one.model: None if one.price is None else cost(one, needs, select.limits.output_tokens) for one in rivals}
    factors = (
        (select.quality, _filled({one.model: one.quality for one in rivals})),
        (select.latency, _against_lowest({model: speed.percentile("latency", 50) for model, speed in speeds.items()})),
        (select.cost, _against_lowest(costs)),
        (
            select.load,
            _filled({model: None if speed.load is None else 1 - speed.load for model, speed in speeds.items()}),
        ),
    )
    total = sum(weight for weight, _ in factors)
    scores = {one.model: sum(weight * utility[one.model] for weight, utility in factors) / total for one in rivals}
    best = max(scores, key=lambda model: scores[model])
    return Choice(best, "score" if allowed else "beyond_limits", certain(best, candidates), scores)


def _against_lowest(values: Mapping[str, float | None]) -> dict[str, float]:
    lowest = min((value for value in values.values() if value is not None), default=0.0)
    return _filled(
        {model: None if value is None else lowest / value if value > 0 else 1.0 for model, value in values.items()}
    )


def _filled(values: Mapping[str, float | None]) -> dict[str, float]:
    known = [value for value in values.values() if value is not None]
    mean = sum(known) / len(known) if known else 0.5
    return {model: mean if value is None else value for model, value in values.items()}
