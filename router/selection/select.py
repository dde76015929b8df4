"""One entrance to all ways to select: which model of the candidates takes the request.

Pure: the same arguments give the same choice, which is what replay rests on. Candidates can all take the request;
whether they can is `needs.py`'s matter.
"""

from __future__ import annotations

from collections.abc import Sequence

from router.request.view import RequestView
from router.selection import bandit, cheapest, elo, fastest, hybrid, multi_factor, similarity, static, weighted
from router.selection.choice import Choice, Facts, seed_of
from router.selection.model import (
    Bandit,
    Cheapest,
    Elo,
    Fastest,
    Hybrid,
    MultiFactor,
    Select,
    Similarity,
    Static,
    Weighted,
)
from router.selection.snapshot import Snapshot
from router.selection.upstream import Upstream


def choose(select: Select, candidates: Sequence[Upstream], facts: Facts, snapshot: Snapshot, seed: int) -> Choice:
    """One of the candidates, of which there is at least one. `seed` has 64 bits, see `seed_for`."""
    match select:
        case Static():
            return static.choose(candidates)
        case Weighted():
            return weighted.choose(select, candidates, seed)
        case Cheapest():
            return cheapest.choose(select, candidates, facts.needs)
        case Fastest():
            return fastest.choose(select, candidates, snapshot, seed)
        case MultiFactor():
            return multi_factor.choose(select, candidates, facts.needs, snapshot)
        case Similarity():
            return similarity.choose(candidates, facts.similarities)
        case Elo():
            return elo.choose(select, candidates, facts.decision, snapshot, seed)
        case Bandit():
            return bandit.choose(select, candidates, facts.decision, snapshot, seed)
        case Hybrid():
            return hybrid.choose(
                select,
                candidates,
                facts,
                snapshot,
                lambda pick, left: choose(pick, left, facts, snapshot, seed),
            )


def seed_for(select: Select, view: RequestView, record: str) -> int:
    """Where a request's chance comes from: its record's identifier, or the key that a weighted choice sticks to."""
    if isinstance(select, Weighted):
        return weighted.sticky_seed(select, view, record)
    return seed_of("record", record)
