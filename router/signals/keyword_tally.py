"""What a keyword search has found so far in one request, whatever its method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol

from router.request.view import TextSpan
from router.signals.base import Evidence

MAX_EVIDENCE: Final = 8
"""Occurrences that are cited; how many more there are does not matter."""


@dataclass(slots=True)
class Tally:
    """`found` are the phrases found, by their index; `best` are scores in 0-1, of phrases that were not found too.

    `work` is a method's own account of what it has done in this request; `cut_short` says that it had to stop before it
    had read everything. `seen` are runs of words by how many they are, for a method that looks at each but once.
    """

    found: set[int] = field(default_factory=set)
    best: dict[int, float] = field(default_factory=dict)
    evidence: list[Evidence] = field(default_factory=list)
    work: int = 0
    cut_short: bool = False
    seen: dict[int, set[str]] = field(default_factory=dict)

    def add(self, index: int, score: float, evidence: Evidence) -> None:
        """A phrase has been found in a place."""
        self.found.add(index)
        self.best[index] = max(score, self.best.get(index, 0.0))
        if len(self.evidence) < MAX_EVIDENCE:
            self.evidence.append(evidence)

    def put(self, index: int, score: float, evidence: Evidence) -> None:
        """A phrase has been found in a better place, in whose stead others of it are no longer cited."""
        self.evidence = [each for each in self.evidence if each.label != evidence.label]
        self.add(index, score, evidence)

    def score(self, rank: int) -> float:
        """The score of the `rank`-th best phrase, 0 where there are fewer."""
        scores = sorted(self.best.values(), reverse=True)
        return scores[rank - 1] if len(scores) >= rank else 0.0


class Search(Protocol):
    """One way to look for phrases."""

    async def read(self, text: TextSpan, tally: Tally) -> None:
        """Read one text and add what is found in it; others get their turn while it is long."""
        ...

    def done(self, tally: Tally) -> bool:
        """Whether no further text can change anything."""
        ...
