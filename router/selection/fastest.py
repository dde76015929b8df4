"""`fastest`: the lowest percentile of a time that a feed measures.

    select: {fastest: {measure: ttft, percentile: 95, explore: 0.05}}

Times are the latest of each model, as told to the admin address (`snapshot.py`). Among candidates that were measured
the lowest percentile wins, equal ones by the route's order; while none was, the route's first. A share `explore` of
requests goes to all candidates alike, by the seed: without it a model that was never measured, or once was slow, would
never be measured again.
"""

from __future__ import annotations

from collections.abc import Sequence

from router.selection.choice import Choice, draw, mixed
from router.selection.model import Fastest
from router.selection.snapshot import Snapshot
from router.selection.upstream import Upstream


def choose(select: Fastest, candidates: Sequence[Upstream], snapshot: Snapshot, seed: int) -> Choice:
    """The fastest, or another one to learn about it. Scores are milliseconds; a model not measured has none."""
    times = {one.model: snapshot.speed(one.model).percentile(select.measure, select.percentile) for one in candidates}
    known = {model: time for model, time in times.items() if time is not None}
    best = min(known, key=lambda model: known[model]) if known else candidates[0].model
    shares = mixed(best, candidates, select.explore)
    model = draw(shares, seed)
    reason = "explored" if model != best else "fastest" if known else "unmeasured"
    return Choice(model, reason, shares, known)
