"""`weighted`: each candidate gets its share of keys, and a key keeps its candidate.

    select: {weighted: {weights: {a: 3, b: 1}, sticky: conversation}}

Weighted rendezvous hashing (Thaler and Ravishankar 1998; weights after Schindelhauer and Schomaker 2005): candidate i
scores -w_i / ln(h_i), where h_i in (0, 1) is a hash of key and model, and the highest wins. That is i with probability
w_i / sum(w). A candidate that comes or goes moves only the keys that it wins or held. The key is of the conversation
(texts and images up to the first user turn, which every later request repeats), of a trusted header, or of the
request alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from router.request.view import ImagePart, RequestView, TextPart
from router.selection.choice import Choice, seed_of, unit
from router.selection.model import Weighted
from router.selection.upstream import Upstream


def choose(select: Weighted, candidates: Sequence[Upstream], seed: int) -> Choice:
    """The candidate that the key `seed` belongs to; where all that are left weigh nothing, the first."""
    weights = {one.model: select.weights[one.model] for one in candidates}
    total = sum(weights.values())
    if total <= 0:
        weights = {model: float(model == candidates[0].model) for model in weights}
        total = 1.0
    scores = {model: -weight / math.log(unit(seed, model)) for model, weight in weights.items()}
    best = max(scores, key=lambda model: scores[model])
    return Choice(best, "hash", {model: weight / total for model, weight in weights.items()}, scores)


def sticky_seed(select: Weighted, view: RequestView, record: str) -> int:
    """The key as a number. A header that is not there, or is empty, gives way to the conversation."""
    if select.sticky == "request":
        return seed_of("request", record)
    if select.sticky == "header" and (value := view.headers.get(select.header)):
        return seed_of("header", value)
    return seed_of("conversation", *_beginning(view))


def _beginning(view: RequestView) -> Iterator[str]:
    """What every later request of the conversation repeats: what operators set up, and the user's first turn."""
    for turn in view.turns:
        if turn.role in ("system", "developer", "user"):
            for part in turn.parts:
                if isinstance(part, TextPart):
                    yield part.text
                elif isinstance(part, ImagePart):
                    yield part.digest
        if turn.role == "user":
            return
