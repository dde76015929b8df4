"""What an observation would have been under another threshold, where it has all that this takes.

A threshold is what policies are tuned by, and for some families it is the last thing that an answer depends on: then
the answer of then can be read again. For all others a signal with another threshold is another signal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from router.signals.base import Observation
from router.signals.settings import SignalSettings

Range = tuple[float | None, float | None]
"""The closed range of an observation's number in which it matches; None: no bound there."""

KEYS: Final = {
    "context": frozenset(("min_tokens", "max_tokens")),
    "embedding": frozenset(("threshold",)),
    "image": frozenset(("threshold",)),
}
"""Families whose answers can be read again, and the keys of their settings that are the range alone."""


def range_of(family: str, settings: SignalSettings) -> Range | None:
    """The range that can be moved; None for a signal whose answer depends on its threshold in more than that."""
    if family not in KEYS or getattr(settings, "mode", "hard") != "hard":
        return None
    return settings.matching


def without_range(family: str, settings: SignalSettings) -> dict[str, Any]:
    """The settings as plain data, without the keys of a range that can be moved."""
    moved = KEYS.get(family) if range_of(family, settings) is not None else None
    return settings.model_dump(mode="json", exclude=set(moved or ()))


def recast(family: str, then: Observation, old: Range, new: Range) -> Observation | None:
    """The observation under the new range; None where the old one cannot tell. `evidence` must be complete."""
    if old == new or then.status == "timed_out":
        return then
    if family == "context":
        return _counted(then, new)
    return _scored(then, old[0] or 0.0, new[0] or 0.0)


def _counted(then: Observation, new: Range) -> Observation | None:
    if then.value is None:
        return None
    low, high = new
    return replace(then, matched=(low is None or then.value >= low) and (high is None or then.value <= high))


def _scored(then: Observation, old: float, new: float) -> Observation | None:
    """Of the best of several parts (`router.signals.pictures.settle`): any that reaches the threshold is enough."""
    if then.matched is None:
        # Some part could not be judged, and no other was enough; a higher threshold changes neither.
        return then if new >= old else None
    if not then.evidence or then.score is None:
        return then
    if then.score >= new:
        return replace(then, matched=True)
    if then.matched and any(piece.score is None for piece in then.evidence):
        return None
    return replace(then, matched=False)
