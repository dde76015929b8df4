"""`static`: the first candidate, always, in the order in which the route lists them.

route: {models: [med-vlm, large], select: static}
"""

from __future__ import annotations

from collections.abc import Sequence

from router.selection.choice import Choice, certain
from router.selection.upstream import Upstream


def choose(candidates: Sequence[Upstream], reason: str = "first") -> Choice:
    """The first of the candidates, of which there must be one."""
    model = candidates[0].model
    return Choice(model, reason, certain(model, candidates))
