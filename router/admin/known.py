"""The names that feedback may speak of: decisions and models of the policy file as it is now.

A file that does not hold, or cannot be read, leaves the names of the last one that did.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path

from router.config.load import load_policy
from router.config.problems import PolicyError
from router.policy.model import Policy, Route


class KnownNames:
    """Call it for the names; the file is read when it is another one than last time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._names: Mapping[str, Set[str]] = {"": frozenset()}

    def __call__(self) -> Mapping[str, Set[str]]:
        """Decisions that route, each with its candidates; under `""` every model."""
        try:
            stat = self._path.stat()
            mark = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
            if mark != self._seen:
                self._seen = mark
                self._names = names_of(load_policy(self._path).policy)
        except (OSError, PolicyError):
            pass
        return self._names


def names_of(policy: Policy) -> dict[str, Set[str]]:
    """Decisions that route, each with its candidates; under `""` every model."""
    names: dict[str, Set[str]] = {"": frozenset(upstream.model for upstream in policy.upstreams)}
    for decision in policy.all_decisions:
        if isinstance(decision.outcome, Route):
            names[decision.name] = frozenset(decision.outcome.models)
    return names
