"""Hard limits on candidates, as `multi_factor` and `hybrid` have them.

What is not known of a candidate breaks no limit: a model that nothing was measured of yet would otherwise never be
measured. Where no candidate keeps the limits they are dropped, and the choice says so: a slow answer is better than
none, and whether a model can take a request at all is `needs.py`'s matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from router.selection.cheapest import cost
from router.selection.model import Limits
from router.selection.needs import Needs
from router.selection.snapshot import Snapshot
from router.selection.upstream import Upstream


def within(limits: Limits, candidates: Sequence[Upstream], needs: Needs, snapshot: Snapshot) -> list[Upstream]:
    """The candidates that keep every limit, in their order; may be empty."""
    return [one for one in candidates if not any(_broken(limits, one, needs, snapshot))]


def _broken(limits: Limits, one: Upstream, needs: Needs, snapshot: Snapshot) -> Iterator[bool]:
    speed = snapshot.speed(one.model)
    latency = speed.percentile("latency", 50)
    if limits.min_quality is not None and one.quality is not None:
        yield one.quality < limits.min_quality
    if limits.max_cost is not None and one.price is not None:
        yield cost(one, needs, limits.output_tokens) > limits.max_cost
    if limits.max_latency_ms is not None and latency is not None:
        yield latency > limits.max_latency_ms
    if limits.max_load is not None and speed.load is not None:
        yield speed.load > limits.max_load
