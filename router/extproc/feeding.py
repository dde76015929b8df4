"""What becomes of what was read of responses: a line in the log, and measurements for selections that go by speed.

Measurements go to the process that keeps the state, by a socket of its user's, in bundles from time to time. When that
does not answer they are dropped: they are worth nothing later, and nobody waits for them.
"""

from __future__ import annotations

import asyncio
import http.client
import logging
import socket
from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final

import msgspec

from router.extproc.reading import ResponseFacts
from router.records.record import milliseconds

logger = logging.getLogger(__name__)

FEED_SECONDS: Final = 1.0
"""Between two bundles."""

BUNDLE: Final = 500
"""Measurements at once: as many as are taken. Of more in one second the latest are sent."""

TIMEOUT: Final = 2.0
"""Seconds that the keeper has to answer."""


class Feed:
    """Bundles of measurements to the keeper at this unix socket."""

    def __init__(self, keeper: Path, seconds: float = FEED_SECONDS) -> None:
        self._keeper = keeper
        self._seconds = seconds
        self._waiting: deque[dict[str, Any]] = deque(maxlen=BUNDLE)
        self._answered = True

    def take(self, measurement: dict[str, Any]) -> None:
        """Send it with the next bundle."""
        self._waiting.append(measurement)

    async def run(self) -> None:
        """Send bundles until cancelled."""
        while True:
            await asyncio.sleep(self._seconds)
            await self.send()

    async def send(self) -> None:
        """Send what is waiting now."""
        if not self._waiting:
            return
        body = msgspec.json.encode(list(self._waiting))
        self._waiting.clear()
        problem = await asyncio.to_thread(self._post, body)
        if problem and self._answered:
            logger.warning("measurements not taken", extra={"fields": {"why": problem}})
        self._answered = not problem

    def _post(self, body: bytes) -> str:
        """What went wrong, empty for nothing."""
        connection = _ToSocket(self._keeper)
        try:
            connection.request("POST", "/measurements", body, {"content-type": "application/json"})
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__
        finally:
            connection.close()
        return "" if status == 200 else f"status {status}"


class _ToSocket(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=TIMEOUT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(TIMEOUT)
        self.sock.connect(str(self._path))


class ResponseLog:
    """Takes what was read of responses; those of models that are not among `models()` are none of ours."""

    def __init__(self, models: Callable[[], Collection[str]], feed: Feed | None) -> None:
        self._models = models
        self._feed = feed

    def tell(self, facts: ResponseFacts) -> None:
        """See `TellResponse`."""
        if facts.model not in self._models():
            return
        logger.info("response", extra={"fields": fields_of(facts)})
        measurement = measurement_of(facts)
        if self._feed is not None and measurement is not None:
            self._feed.take(measurement)


def fields_of(facts: ResponseFacts) -> dict[str, Any]:
    """A line of the log, without the keys that say nothing."""
    speed = facts.tokens_per_second
    pairs = {
        "record": facts.record,
        "decision": facts.decision,
        "model": facts.model,
        "status": facts.status,
        "stream": facts.stream,
        "tokens_in": facts.usage.tokens_in,
        "tokens_out": facts.usage.tokens_out,
        "cached_tokens": facts.usage.cached,
        "ttft_ms": None if facts.first is None else milliseconds(facts.first),
        "latency_ms": None if facts.whole is None else milliseconds(facts.whole),
        "tokens_per_second": None if speed is None else round(speed, 3),
        "unread": facts.unread or None,
    }
    return {key: value for key, value in pairs.items() if value is not None}


def measurement_of(facts: ResponseFacts) -> dict[str, Any] | None:
    """As `/measurements` takes it; None where nothing was measured: errors are fast and say nothing of a model."""
    if not 200 <= facts.status < 300:
        return None
    times = {"ttft_ms": facts.first, "latency_ms": facts.whole}
    measured = {name: milliseconds(time) for name, time in times.items() if time is not None}
    return {"model": facts.model, **measured} if measured else None
