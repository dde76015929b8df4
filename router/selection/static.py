"""The plainest selection: the first candidate, always."""

from __future__ import annotations

from collections.abc import Sequence


def select(models: Sequence[str]) -> str:
    """The first of the candidates, of which there must be one."""
    return models[0]
