"""Chooses the upstream of a decided request: measures what it needs, fetches what a selection asks for, and resolves.

All that waits or takes long stands here; what follows from it is a pure function (`router.policy.resolve`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor

from router.policy.model import Policy
from router.policy.resolve import Offer, Resolution, offers, resolve, shortlist
from router.policy.verdict import Verdict
from router.request.view import RequestView
from router.selection.model import Similarity, picks_by
from router.selection.needs import Needs, estimate_tokens, measure, wants_sizes
from router.selection.similarity import Cards
from router.selection.snapshot import Snapshot, no_state

logger = logging.getLogger(__name__)

INLINE_MEASURE_BYTES = 128 * 1024
"""Needs of a body up to this size are measured on the event loop, as it is parsed there."""


class Chooser:
    """Chooses under one policy. `snapshot` gives the newest state, `cards` are there where a selection reads them."""

    def __init__(
        self,
        policy: Policy,
        measuring: Executor,
        snapshot: Callable[[], Snapshot] = no_state,
        cards: Cards | None = None,
        count: Callable[[RequestView], int] = estimate_tokens,
    ) -> None:
        """`measuring` takes what is too long for the event loop; `count` gives the tokens of a request's texts."""
        self._policy = policy
        self._measuring = measuring
        self._snapshot = snapshot
        self._cards = cards
        self._count = count
        self._sized = wants_sizes(policy.upstreams)

    async def choose(self, verdict: Verdict, view: RequestView, record: str, budget: float) -> Resolution:
        """Who takes the request, about `budget` seconds from now at most. ValueError where the verdict answers itself.

        Similarities that take longer, or that the encoder refuses, are done without.
        """
        able = shortlist(offers(self._policy, verdict, view), await self._needs(view))
        similarities = await self._similarities(able.offer, view, budget) if able.offer is not None else None
        return resolve(able, verdict, view, record, self._snapshot(), similarities)

    async def _needs(self, view: RequestView) -> Needs:
        if view.body_bytes <= INLINE_MEASURE_BYTES:
            return measure(view, self._sized, self._count)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._measuring, measure, view, self._sized, self._count)

    async def _similarities(self, offer: Offer, view: RequestView, budget: float) -> Mapping[str, float] | None:
        if self._cards is None or not isinstance(picks_by(offer.select), Similarity) or len(offer.upstreams) == 1:
            return None
        try:
            async with asyncio.timeout(max(0.0, budget)):
                return await self._cards.similarities(view, offer.upstreams)
        except Exception as error:
            # The message may quote the request; the type can't.
            logger.warning("no similarities", extra={"fields": {"error_type": type(error).__name__}})
            return None
