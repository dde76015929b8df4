"""`similarity`: the candidate whose card is most like what the user says last.

    select: similarity      # upstreams: [{model: coder, card: "writing, reviewing and debugging code", ..}, ..]

The score is the cosine of the two texts' embeddings; the highest wins, equal ones by the route's order. Needs a text
encoder and a card on each candidate. Sees the beginning of the user's last turn alone. Where the encoder has too much
to do or no time is left, the route's first candidate is taken.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from router.request.view import RequestView
from router.selection import static
from router.selection.choice import Choice, certain
from router.selection.upstream import Upstream

Embed = Callable[[Sequence[str]], Awaitable[NDArray[np.float32]]]
"""Texts to unit vectors, (n, d) float32. Raises what it will where it cannot."""

READ_AT_MOST: Final = 8_000
"""Characters of the user's last turn; an encoder's first window holds less."""


class Cards:
    """The cards of models, embedded once."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._rows: dict[str, NDArray[np.float32]] = {}

    async def prepare(self, upstreams: Iterable[Upstream]) -> None:
        """Embed the cards of those that have one; raises what the encoder raises."""
        carded = [one for one in upstreams if one.card]
        rows = await self._embed([one.card for one in carded])
        self._rows = {one.model: row for one, row in zip(carded, rows, strict=True)}

    async def similarities(self, view: RequestView, candidates: Sequence[Upstream]) -> Mapping[str, float] | None:
        """Cosines by model; None where the user says nothing."""
        said = "\n".join(text.text for text in view.latest_user_texts)[:READ_AT_MOST].encode(errors="replace").decode()
        if not said.strip():
            return None
        query: NDArray[Any] = (await self._embed([said]))[0]
        return {one.model: float(query @ self._rows[one.model]) for one in candidates}


def choose(candidates: Sequence[Upstream], similarities: Mapping[str, float] | None) -> Choice:
    """The most similar; the first where similarities could not be had."""
    if similarities is None:
        return static.choose(candidates, "no_similarities")
    scores = {one.model: similarities[one.model] for one in candidates}
    best = max(scores, key=lambda model: scores[model])
    return Choice(best, "similarity", certain(best, candidates), scores)
