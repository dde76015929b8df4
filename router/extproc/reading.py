"""Reads a response as it passes by: when it began and ended, how large it was by its own words.

It is given copies, and holds little of them: of a stream the event at hand, of JSON the text up to a limit. What
cannot be read is said to be so; nothing is ever raised, and no text of the answer is kept.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import msgspec

from router.extproc.decoding import BrokenCodingError, Decoding, TooMuchError
from router.extproc.sse import EventSplitter
from router.extproc.usage import NOTHING_SAID, Usage, carries_content, usage_of
from router.request.apis import detect
from router.request.content_coding import UnknownCoding
from router.request.view import Api
from router.telemetry.propagation import TRACE_HEADERS

JSON_BYTES: Final = 4 * 1024 * 1024
"""Held of an answer in JSON at most."""

Unread = Literal["", "encoding", "too_large", "not_json", "kind", "broken_off"]
"""Why a response could not be read to its end, empty when it could: a content-encoding that is not known or does not
hold, an answer larger than is held, text that is no JSON, neither JSON nor events, or it ended early."""


@dataclass(frozen=True, slots=True)
class ResponseFacts:
    """What one response was like. Times are in seconds from the moment when the request went to the upstream.

    `first` is the time to the first piece of a streamed answer, None where there was none; `whole` the time to the
    end, None for one that broke off.
    """

    model: str
    decision: str
    record: str
    status: int
    stream: bool
    usage: Usage
    first: float | None
    whole: float | None
    unread: Unread
    api: Api | None = None
    """The request's, by its path; None where that is one of the policy's own."""
    at: int = field(default=0, compare=False)
    """When this was known, in nanoseconds since the epoch."""
    lasted: float = field(default=0.0, compare=False)
    """From when the request went to the upstream until then."""
    traced: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The request's headers that say where it stands among the traces."""

    @property
    def tokens_per_second(self) -> float | None:
        """Of the time in which tokens came: of a stream that after its first piece."""
        if self.usage.tokens_out is None or self.whole is None:
            return None
        took = self.whole - (self.first or 0.0)
        return self.usage.tokens_out / took if took > 0 else None


class ResponseReader:
    """Reads one response. Times given are in seconds by one clock, `sent` when the request went to the upstream."""

    def __init__(self, request: Mapping[str, str], sent: float) -> None:
        """`request` are the headers that went to the upstream, by lower-case name."""
        self._model = request.get("x-pointsman-model", "")
        self._decision = request.get("x-pointsman-decision", "")
        self._record = request.get("x-pointsman-record", "")
        self._api = detect(request.get(":method", ""), request.get(":path", ""))
        self._traced = {name: request[name] for name in TRACE_HEADERS if name in request}
        self._sent = sent
        self._status = 0
        self._decoding = Decoding("")
        self._events: EventSplitter | None = None
        self._json = bytearray()
        self._usage = NOTHING_SAID
        self._first: float | None = None
        self._ended: float | None = None
        self._unread: Unread = ""

    def headers(self, headers: Mapping[str, str]) -> None:
        """The response's headers, by lower-case name."""
        status = headers.get(":status", "")
        self._status = int(status) if status.isascii() and status.isdigit() and len(status) == 3 else 0
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            self._events = EventSplitter()
        elif kind != "application/json":
            self._unread = "kind"
        try:
            self._decoding = Decoding(headers.get("content-encoding", ""))
        except UnknownCoding:
            self._unread = "encoding"

    def body(self, piece: bytes, now: float) -> None:
        """A piece of the body, as it was sent."""
        if self._unread:
            return
        try:
            for part in self._decoding.feed(piece):
                self._read(part, now)
        except BrokenCodingError:
            self._unread = "encoding"
        except (_TooLargeError, TooMuchError):
            self._unread = "too_large"

    def end(self, now: float) -> None:
        """The response has ended as it should."""
        self._ended = now
        if self._events is None and not self._unread and self._json:
            answer = _decoded(bytes(self._json))
            self._unread = "not_json" if answer is None else ""
            self._usage = usage_of(answer)
        self._json.clear()

    def facts(self) -> ResponseFacts:
        """What is known; of a response that has not ended, that it broke off."""
        return ResponseFacts(
            model=self._model,
            decision=self._decision,
            record=self._record,
            status=self._status,
            stream=self._events is not None,
            usage=self._usage,
            first=None if self._first is None else self._first - self._sent,
            whole=None if self._ended is None else self._ended - self._sent,
            unread="broken_off" if self._ended is None else self._unread,
            api=self._api,
            at=time.time_ns(),
            lasted=max(0.0, (time.perf_counter() if self._ended is None else self._ended) - self._sent),
            traced=self._traced,
        )

    def _read(self, part: bytes, now: float) -> None:
        if self._events is None:
            self._json += part
            if len(self._json) > JSON_BYTES:
                self._json.clear()
                raise _TooLargeError
            return
        for event in self._events.feed(part):
            # After the first piece of the answer, all that matters is what its size is.
            if self._first is None or b'"usage"' in event:
                said = _decoded(event)
                if self._first is None and carries_content(said):
                    self._first = now
                self._usage = self._usage.then(usage_of(said))


class _TooLargeError(Exception):
    """More than is read."""


def _decoded(text: bytes) -> Any:
    """The JSON value, None for text that is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
