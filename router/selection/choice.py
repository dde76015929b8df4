"""What every way to select is given and gives back, and where its chance comes from.

A choice is a function of candidates, facts, snapshot and seed alone: the same four give the same choice, on any
machine. No algorithm asks a clock or a random generator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from router.selection.needs import Needs
from router.selection.upstream import Upstream

_STEPS: Final = 2**53
"""As many numbers as a double has evenly between 0 and 1."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What algorithms may know of a request. `decision` is its name; `similarities` are cosines by model, if asked for.

    None there says that they could not be had.
    """

    decision: str
    needs: Needs
    similarities: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen model and why.

    `scores` are what candidates were compared by, in the algorithm's own unit. `propensities` are the probabilities
    with which each candidate is chosen, over all seeds; they sum to 1.
    """

    model: str
    reason: str
    propensities: Mapping[str, float]
    scores: Mapping[str, float] = field(default_factory=dict)


def seed_of(*words: str) -> int:
    """A number of 64 bits from words, the same everywhere. The words cannot be read back from it."""
    digest = hashlib.blake2b(digest_size=8)
    for word in words:
        data = word.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return int.from_bytes(digest.digest(), "big")


def unit(seed: int, word: str = "") -> float:
    """A number strictly between 0 and 1, evenly distributed over seeds and over words."""
    digest = hashlib.blake2b(word.encode(), digest_size=8, key=seed.to_bytes(8, "big")).digest()
    return ((int.from_bytes(digest, "big") >> 11) + 0.5) / _STEPS


def draw(probabilities: Mapping[str, float], seed: int) -> str:
    """One of the names, each with its probability; they sum to 1."""
    left = unit(seed, "draw")
    name = ""
    for name, share in probabilities.items():  # noqa: B007  # rounding may leave the last one over
        left -= share
        if left < 0:
            break
    return name


def certain(model: str, candidates: Iterable[Upstream]) -> dict[str, float]:
    """Propensities where chance has no say."""
    return {one.model: float(one.model == model) for one in candidates}


def mixed(best: str, candidates: Sequence[Upstream], explore: float) -> dict[str, float]:
    """Propensities where a share `explore` goes to all alike and the rest to the best."""
    even = explore / len(candidates)
    return {one.model: even + (1.0 - explore) * (one.model == best) for one in candidates}
