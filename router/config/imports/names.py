"""Names for the policy: made of the characters that it allows, and no two alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from router.config.load import RESERVED_CLUSTERS, RESERVED_DECISIONS
from router.signals.registry import FAMILIES

_SIGNAL_LENGTH: Final = 80
_WORD_LENGTH: Final = 200
"""Room is left below the policy's 256 for a number that tells two names apart."""


class Names:
    """Names given so far in one namespace. `taken` are there from the beginning."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: Counter[str] = Counter()

    def give(self, wanted: str) -> str:
        """The wanted name, or with a number behind it where another has it already."""
        name = wanted
        while name in self._taken:
            self._next[wanted] += 1
            name = f"{wanted}_{self._next[wanted] + 1}"
        self._taken.add(name)
        return name


def signal_word(text: str, otherwise: str) -> str:
    """As a signal's name: letters, digits, _ and -."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_")[:_SIGNAL_LENGTH] or otherwise


def header_word(text: str, otherwise: str) -> str:
    """As the name of a model, a cluster or a decision: visible ASCII, no blank."""
    return re.sub(r"[^\x21-\x7e]+", "-", text).strip("-")[:_WORD_LENGTH] or otherwise


def signal_names(family: str) -> Names:
    """The namespace of a family, whose built-in names are taken."""
    return Names(FAMILIES[family].builtins)


def cluster_names() -> Names:
    """The namespace of clusters."""
    return Names(RESERVED_CLUSTERS)


def decision_names() -> Names:
    """The namespace of decisions."""
    return Names(RESERVED_DECISIONS)
