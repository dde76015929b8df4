"""How long to wait before asking a server again: longer each time, and never all at the same moment."""

from __future__ import annotations

import random

FIRST_SECONDS = 0.02
"""Before the first retry: a replica that goes away is told of within a few milliseconds."""

MOST_SECONDS = 0.5


def pause(attempt: int, first: float = FIRST_SECONDS, most: float = MOST_SECONDS) -> float:
    """Seconds before attempt number `attempt` is made again, from 0: half of twice as long each time, and up to as much
    again by chance."""
    whole = min(most, first * 2.0 ** min(attempt, 30))
    return whole * random.uniform(0.5, 1.0)  # noqa: S311
