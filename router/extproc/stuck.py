"""Finds out that a model's call does not come back.

A thread cannot be ended, and its place among the model threads stays taken: only a new process helps, and this says
when it is time for one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from router.inference.executor import InferenceExecutor

logger = logging.getLogger(__name__)

STUCK_SECONDS = 60.0
"""The longest that a policy may give a decision. A call is one window of text or one image, or a few short ones: most
take milliseconds, and nobody waits for one any more that takes longer than this."""

LOOK_SECONDS = 5.0


async def until_stuck(executor: Callable[[], InferenceExecutor]) -> None:
    """Return once a call has run for `STUCK_SECONDS`; `executor` gives the one that serves at the time."""
    # A call that does not come back is no event.
    while (seconds := executor().longest) < STUCK_SECONDS:  # noqa: ASYNC110
        await asyncio.sleep(LOOK_SECONDS)
    logger.error("model hangs", extra={"fields": {"for_s": round(seconds)}})
