"""Tells of requests in a thread of its own, behind a bounded queue: nothing of it costs on the request path.

What finds the queue full is dropped and counted. What is told, and to whom, is given: lines of the log, measures,
spans, records. One of those that fails costs the others nothing.
"""

from __future__ import annotations

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

PAUSE_SECONDS: Final = 0.02
"""Between two looks at the queue: short, so that little piles up that requests would have to wait for. With the pause
of the records' writer less than the second that a kill may cost."""

SLICE_SECONDS: Final = 0.001
"""How long it works in one go, while others may want the interpreter."""

CLOSE_SECONDS: Final = 5.0
"""How long the end of the process waits for what is still queued."""

TellResponse = Callable[[ResponseFacts], None]


class Teller:
    """Takes what was handled from any thread and hands it to each of `tellings`, in order.

    `dropped` counts what was lost, by `kind`: `request`, `response`.

    The thread is not woken for a request: it would contend for the interpreter with the next one.
    """

    def __init__(
        self,
        tellings: Sequence[Tell],
        dropped: Counter,
        responses: Sequence[TellResponse] = (),
        limit: int = QUEUED,
        pause: float = PAUSE_SECONDS,
    ) -> None:
        """Nothing runs before `start`. `responses` are told what was read of responses, in the same thread."""
        self._tellings = tuple(tellings)
        self._responses = tuple(responses)
        self._dropped = dropped
        self._limit = limit
        self._pause = pause
        self._queue: deque[tuple[Sequence[Callable[[Any], None]], Any]] = deque()
        self._refused: Counting[str] = Counting()
        self._failing: set[str] = set()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telling", daemon=True)

    def start(self) -> None:
        """Begin to tell; once more does nothing."""
        if not self._thread.is_alive() and not self._closing.is_set():
            self._thread.start()

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
        """Tell what is queued, for at most CLOSE_SECONDS."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS)

    def _put(self, tellings: Sequence[Callable[[Any], None]], fact: Handled | ResponseFacts) -> None:
        if len(self._queue) < self._limit:
            self._queue.append((tellings, fact))
        else:
            self._refused[_kind(fact)] += 1

    def _run(self) -> None:
        while not self._closing.wait(self._pause):
            self._work()
        self._work()

    def _work(self) -> None:
        began = time.perf_counter()
        while self._queue:
            tellings, fact = self._queue.popleft()
            for telling in tellings:
                try:
                    telling(fact)
                except Exception as error:
                    self._failed(fact, error)
            # Let go of the interpreter: whoever serves requests should not wait for all that is queued. Who has let go
            # of it gets it back after as much as 5 ms, so not for each, and no more when requests would be dropped.
            if time.perf_counter() - began > SLICE_SECONDS and len(self._queue) < self._limit / 2:
                time.sleep(0)
                began = time.perf_counter()
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
