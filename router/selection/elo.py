"""`elo`: the highest rating from comparisons of two models' answers.

    select: {elo: {explore: 0.05}}

After a comparison with result s (1 won, 0.5 drawn, 0 lost) the rating R_a becomes R_a + K (s - 1 / (1 + 10^((R_b - R_a)
/ 400))), and R_b the mirror of it (Elo 1978); K and the bounds of ratings stand in `learning.py`. The highest
rating is chosen, equal ones by the route's order. A share `explore` goes to all candidates alike, by the seed.
"""

from __future__ import annotations

from collections.abc import Sequence

from router.selection.choice import Choice, draw, mixed
from router.selection.model import Elo
from router.selection.snapshot import Snapshot
from router.selection.upstream import Upstream


def choose(select: Elo, candidates: Sequence[Upstream], decision: str, snapshot: Snapshot, seed: int) -> Choice:
    """The best rated, or another one to learn about it. Scores are ratings."""
    ratings = {one.model: snapshot.arm(decision, one.model).rating for one in candidates}
    best = max(ratings, key=lambda model: ratings[model])
    shares = mixed(best, candidates, select.explore)
    model = draw(shares, seed)
    return Choice(model, "rating" if model == best else "explored", shares, ratings)
