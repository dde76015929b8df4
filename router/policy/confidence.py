"""How sure a condition tree is of its own value, in 0-1; what settles a tie of priority.

- A leaf that matched has its observation's score, or 1 where the family has none; a leaf that did not match has 1 minus
  its score, or 1.
- `not` has its child's confidence: to be sure that something is false is to be sure that its negation is true.
- `all` that is true is as sure as its least sure child; `any` that is true as its surest true child. A false `all` is
  as sure as its surest false child, a false `any` as its least sure one, so that De Morgan's laws hold for confidence
  too. Empty ones are certain.
- Unknown has 0.

Confidence never decides whether a tree matches, only who goes first among equals. What these rules make of a tree, also
of one whose signals have not all answered, is computed in `bounds.py`.
"""

from __future__ import annotations

from router.signals.base import Observation


def leaf_confidence(observation: Observation) -> float:
    """Confidence of a leaf in its own value."""
    if observation.matched is None:
        return 0.0
    if observation.score is None:
        return 1.0
    score = min(max(observation.score, 0.0), 1.0)
    return score if observation.matched else 1.0 - score
