"""Tells of requests once they are answered, in short slices between those that are being served.

On the event loop, since a thread of its own would contend for the interpreter with it: what is told costs no less
there, and each request would wait for the thread's slices besides. What finds the queue full is dropped and counted.
What is told, and to whom, is given: lines of the log, measures, spans, records. One of those that fails costs the
others nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import Counter as Counting
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from opentelemetry.metrics import Counter

from router.extproc.reading import ResponseFacts
from router.extproc.telling.handled import Handled, Tell

logger = logging.getLogger(__name__)

QUEUED: Final = 8192
"""Requests that may wait; one takes a few kB, most of it evidence."""

SLICE_SECONDS: Final = 0.0005
"""How long it works in one go while requests may wait: some ten requests' lines and measures."""

LONG_SLICE_SECONDS: Final = 0.005
"""The same while so many wait to be told that some would soon be dropped."""

TellResponse = Callable[[ResponseFacts], None]


class Teller:
    """Takes what was handled from any thread and hands it to each of `tellings`, in order.

    `dropped` counts what was lost, by `kind`: `request`, `response`.
    """

    def __init__(
        self,
        tellings: Sequence[Tell],
        dropped: Counter,
        responses: Sequence[TellResponse] = (),
        limit: int = QUEUED,
    ) -> None:
        """Only queues before `start`. `responses` are told what was read of responses."""
        self._tellings = tuple(tellings)
        self._responses = tuple(responses)
        self._dropped = dropped
        self._limit = limit
        self._queue: deque[tuple[Sequence[Callable[[Any], None]], Any]] = deque()
        self._refused: Counting[str] = Counting()
        self._failing: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._planned = False

    def start(self) -> None:
        """Begin to tell, on the event loop that runs; once more does nothing."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._plan()

    def tell(self, handled: Handled) -> None:
        """Queue it; never waits."""
        self._put(self._tellings, handled)

    def also(self, keep: Tell) -> Tell:
        """As `tell`, for those requests that `keep` is to be given too."""
        tellings = (*self._tellings, keep)

        def tell(handled: Handled) -> None:
            self._put(tellings, handled)

        return tell

    def tell_response(self, facts: ResponseFacts) -> None:
        """Queue it; never waits."""
        self._put(self._responses, facts)

    def close(self) -> None:
        """Tell what is queued, all of it; what comes later is only queued. On the loop's thread."""
        self._loop = None
        self._work(None)

    def _put(self, tellings: Sequence[Callable[[Any], None]], fact: Handled | ResponseFacts) -> None:
        if len(self._queue) < self._limit:
            self._queue.append((tellings, fact))
        else:
            self._refused[_kind(fact)] += 1
        if not self._planned:
            self._plan()

    def _plan(self) -> None:
        loop = self._loop
        if loop is None:
            return
        if threading.get_ident() == self._thread:
            self._planned = True
            loop.call_soon(self._after_answers)
        else:
            # A loop that has ended takes no more, and nobody tells any more.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._after_answers)

    def _after_answers(self) -> None:
        # The answer of whoever was just handled is written in this turn of the loop.
        self._planned = True
        self._next_slice()

    def _next_slice(self) -> None:
        if self._loop is not None:
            self._loop.call_soon(self._slice)

    def _slice(self) -> None:
        self._work(SLICE_SECONDS if len(self._queue) < self._limit / 2 else LONG_SLICE_SECONDS)
        if self._queue:
            self._next_slice()
            return
        self._planned = False
        # Another thread may have put something after the look at the queue, and seen that a slice was planned.
        if self._queue:
            self._plan()

    def _work(self, seconds: float | None) -> None:
        """Tell for so long, and of at least one; None is for as long as it takes."""
        end = None if seconds is None else time.perf_counter() + seconds
        while self._queue:
            tellings, fact = self._queue.popleft()
            for telling in tellings:
                try:
                    telling(fact)
                except Exception as error:
                    self._failed(fact, error)
            if end is not None and time.perf_counter() > end:
                break
        if self._refused:
            refused, self._refused = self._refused, Counting()
            for kind, count in refused.items():
                self._dropped.add(count, {"kind": kind})

    def _failed(self, fact: Handled | ResponseFacts, error: Exception) -> None:
        """One line a kind, since every request may fail alike. The message may quote a request; the type can't."""
        self._dropped.add(1, {"kind": _kind(fact)})
        kind = type(error).__name__
        if kind not in self._failing:
            self._failing.add(kind)
            logger.error("not told", extra={"fields": {"error_type": kind}})


def _kind(fact: Handled | ResponseFacts) -> Literal["request", "response"]:
    return "request" if isinstance(fact, Handled) else "response"
