"""`cheapest`: the lowest expected price of this request.

    select: {cheapest: {output_tokens: 500}}

cost_i = (input tokens x input price_i + answer's tokens x output price_i) / 10^6. Input tokens are estimated as for the
context (`needs.py`), images by each model's own rule. The answer is taken to be `output_tokens` long, or as long as the
request allows where that is less. Equal costs go to the candidate listed first.
"""

from __future__ import annotations

from collections.abc import Sequence

from router.selection.choice import Choice, certain
from router.selection.model import Cheapest
from router.selection.needs import Needs
from router.selection.upstream import Upstream


def choose(select: Cheapest, candidates: Sequence[Upstream], needs: Needs) -> Choice:
    """The cheapest of the candidates, all of which have a price."""
    costs = {one.model: cost(one, needs, select.output_tokens) for one in candidates}
    best = min(costs, key=lambda model: costs[model])
    return Choice(best, "cheapest", certain(best, candidates), costs)


def cost(upstream: Upstream, needs: Needs, output_tokens: int) -> float:
    """What the request is expected to cost, in the policy's currency; 0 for an upstream without a price."""
    if upstream.price is None:
        return 0.0
    answer = output_tokens if needs.output_tokens is None else min(output_tokens, needs.output_tokens)
    asked = needs.input_tokens(upstream)
    return (asked * upstream.price.input_per_million + answer * upstream.price.output_per_million) / 1e6
