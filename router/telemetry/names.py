"""Keeps labels to the names that policies have given: whatever else is asked for is `other`.

Series of names that a policy had once stay until the worker ends, so there is a bound on how many names there ever are:
policies that bring more are counted under `other`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

Label = Literal["decision", "model", "signal", "shadow"]
"""What names are of; `shadow` are the decisions of a shadow policy, which take no place of those that count."""

OTHER: Final = "other"

MOST_NAMES: Final = 1000
"""Of each label, over a worker's life. No policy is known that has a tenth of it."""


class Names:
    """The names that may become labels. May be asked by any thread; one at a time admits."""

    def __init__(self, most: int = MOST_NAMES) -> None:
        """`most` names of each label, those that are there from the start not counted."""
        self._most = most
        self._known: dict[Label, frozenset[str]] = {
            "decision": frozenset(),
            "model": frozenset(),
            "signal": frozenset(),
            "shadow": frozenset(),
        }

    def admit(self, label: Label, names: Iterable[str]) -> None:
        """Let these be labels from now on, as long as there is room; first come, first served."""
        known = self._known[label]
        fresh = [name for name in dict.fromkeys(names) if name not in known]
        self._known[label] = known | frozenset(fresh[: max(0, self._most - len(known))])

    def of(self, label: Label, name: str) -> str:
        """The name if it was admitted, else `other`."""
        return name if name in self._known[label] else OTHER
