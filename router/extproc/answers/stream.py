"""A streamed answer on its way through the checks: what is held back, what is judged, what may go on.

The law: no event goes on before all its text, and as much text behind it as is held back, has been judged; and none
with a piece of a tool's call before the whole call has been. Events go on as the bytes that came, in their order.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from router.extproc.answers.checks import AnswerChecks, Refusal
from router.extproc.answers.documents import DONE, NoJson, decoded, parts_of, pieces_beside, pieces_of_no_json, view_of
from router.extproc.answers.endings import NO_MARK, Mark, Progress, mark_of
from router.extproc.answers.events import read_event
from router.extproc.answers.gathered import GatheredCall, GatheredText, digest_of
from router.extproc.answers.pieces import Called, Ended, Key, Piece, Said, WholeCall, WholeText
from router.extproc.sse import EventTooLargeError, RawEvent, RawEventSplitter
from router.request.view import Api, Part, TextPart

CHEAP_SHARE, DEAR_SHARE = 16, 2
"""Checks are asked once this share of what is held back is new: those that ask no model, and those that do."""

MOST_TEXTS: Final = 4096
"""Texts and calls of one stream that are open at the same time, and digests of those that have been judged."""


@dataclass(frozen=True, slots=True)
class Step:
    """Bytes that may go to the client now, and why nothing more may, where that is so."""

    out: bytes = field(default=b"", repr=False)
    stop: Refusal | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """An event that waits; each of `texts` goes up to a place in its text."""

    raw: bytes = field(repr=False)
    mark: Mark
    texts: tuple[tuple[GatheredText, int], ...]
    calls: tuple[GatheredCall, ...]
    since: float


class CheckedStream:
    """The state of one streamed answer. After a step with a `stop` nothing more may be fed."""

    def __init__(self, checks: AnswerChecks, api: Api, clock: Callable[[], float] = time.monotonic) -> None:
        handling = checks.handling
        self._checks = checks
        self._api: Api = api
        self._clock = clock
        self._back = handling.chars
        self._seconds = handling.seconds
        self._bytes = handling.bytes
        self._step = max(self._back // (CHEAP_SHARE if checks.cheap else DEAR_SHARE), 1)
        self._splitter = RawEventSplitter(handling.bytes)
        self._queue: deque[_Held] = deque()
        self._texts: dict[Key, GatheredText] = {}
        self._calls: dict[Key, GatheredCall] = {}
        self._over: dict[Key, None] = {}
        self._seen: dict[bytes, None] = {}
        self._queued = 0
        self.progress = Progress()

    @property
    def held(self) -> int:
        """Bytes that wait here: events, and the beginning of the next one."""
        return self._queued + self._splitter.held

    @property
    def waits(self) -> float | None:
        """Seconds until an event has waited as long as the policy lets it; None where nothing is waiting for that."""
        if self._seconds is None or not self._queue or self._queue[0].calls:
            return None
        return max(self._queue[0].since + self._seconds - self._clock(), 0.0)

    async def feed(self, piece: bytes) -> Step:
        """Bytes of the stream as they came, without content codings."""
        out = bytearray()
        try:
            for event in self._splitter.feed(piece):
                stop = await self._take(event)
                if stop is not None:
                    return Step(bytes(out), stop)
                out += self._released()
        except EventTooLargeError:
            return Step(bytes(out), self._checks.unreadable("too_large"))
        stop = await self._overdue(out)
        # Only now: what was overdue is among it.
        return Step(bytes(out), stop)

    async def tick(self) -> Step:
        """Time has passed: what has waited long enough goes on once it has been judged."""
        out = bytearray()
        stop = await self._overdue(out)
        return Step(bytes(out), stop)

    async def end(self) -> Step:
        """The stream has ended: all of it is judged, and goes on or not."""
        last = self._splitter.end()
        stop = await self._take(last) if last is not None else None
        if stop is None:
            self._finish(())
            stop = await self._judge(())
        return Step(self._released()) if stop is None else Step(stop=stop)

    def let_go(self) -> bytes:
        """All that is held, judged or not."""
        last = self._splitter.end()
        out = b"".join(held.raw for held in self._queue) + (last.raw if last is not None else b"")
        self._queue.clear()
        self._queued = 0
        return out

    async def _take(self, event: RawEvent) -> Refusal | None:
        mark, pieces, problem = _read(event.data)
        pieces += pieces_beside(event.raw)
        texts: list[tuple[GatheredText, int]] = []
        calls: list[GatheredCall] = []
        wholes: list[WholeText | WholeCall] = []
        ripe = False
        for piece in pieces:
            match piece:
                case Said(key) | Called(key) if self._is_over(key):
                    # More of what has ended: what went before has been judged without it, and is gone.
                    problem = problem or ("order" if isinstance(piece, Said) or piece.arguments else "")
                case Said(key, pointer, more):
                    text = self._texts.setdefault(key, GatheredText(pointer))
                    text.add(more)
                    texts.append((text, text.end))
                    ripe = ripe or text.readable(self._step) - text.judged >= self._step
                case Called(key):
                    call = self._calls.setdefault(key, GatheredCall(piece.pointer))
                    call.add(piece)
                    calls.append(call)
                case Ended(key):
                    ripe = self._finish(key) or ripe
                case WholeText() | WholeCall() if digest_of(piece) not in self._seen:
                    wholes.append(piece)
                case _:
                    pass
        self._queue.append(_Held(event.raw, mark, tuple(texts), tuple(calls), self._clock()))
        self._queued += len(event.raw)
        if self._queued > self._bytes or len(self._texts) + len(self._calls) + len(self._over) > MOST_TEXTS:
            problem = problem or "too_large"
        if problem:
            return self._checks.unreadable(problem)
        return await self._judge(wholes) if ripe or wholes else None

    def _is_over(self, key: Key) -> bool:
        return any(key[:length] in self._over for length in range(1, len(key) + 1)) if self._over else False

    def _finish(self, prefix: Key) -> bool:
        """Nothing more comes under this key; whether anything was open there."""
        if prefix:
            self._over[prefix] = None
        found = False
        for states in (self._texts, self._calls):
            for key, state in states.items():
                if key[: len(prefix)] == prefix:
                    state.ended = found = True
        return found

    async def _judge(self, wholes: Iterable[WholeText | WholeCall], everything: bool = False) -> Refusal | None:
        """Judge what can be of what is new; the rest is judged later, unless it has to be now."""
        parts: list[Part] = []
        marks: list[tuple[GatheredText, int]] = []
        for text in self._texts.values():
            end = text.end if everything else text.readable(self._step)
            if end > text.judged:
                parts.append(TextPart(text.pointer, text.window(end, self._back)))
            marks.append((text, end))
        ended = [call for call in self._calls.values() if call.ended]
        new: dict[bytes, WholeText | WholeCall] = {}
        for piece in (*(call.whole() for call in ended), *wholes):
            new.setdefault(digest_of(piece), piece)
        # Texts that have ended are said once more, whole, by events of some APIs.
        said = {text.digest.digest() for text, _ in marks if text.ended}
        for digest, piece in new.items():
            if digest not in self._seen and digest not in said:
                parts += parts_of(piece)
        if parts:
            refusal = await self._asked(parts)
            if refusal is not None:
                return refusal
        for text, end in marks:
            text.judged_to(end, self._back)
        for call in ended:
            call.judged = True
        for digest in (*said, *new):
            self._seen[digest] = None
            if len(self._seen) > MOST_TEXTS:
                del self._seen[next(iter(self._seen))]
        self._texts = {key: text for key, text in self._texts.items() if not text.ended}
        self._calls = {key: call for key, call in self._calls.items() if not call.ended}
        return None

    async def _asked(self, parts: Iterable[Part]) -> Refusal | None:
        parts = tuple(parts)
        try:
            async with asyncio.timeout(self._checks.deadline):
                return await self._checks.judge(view_of(self._api, parts, stream=True, size=self.held))
        except TimeoutError:
            return self._checks.unreadable("deadline")

    async def _overdue(self, out: bytearray) -> Refusal | None:
        """Release what has waited long enough, into `out`."""
        if self.waits == 0.0:
            if not all(text.judged >= end for text, end in self._queue[0].texts):
                stop = await self._judge((), everything=True)
                if stop is not None:
                    return stop
            out += self._released()
        return None

    def _released(self) -> bytes:
        out: list[bytes] = []
        now = self._clock()
        while self._queue and self._is_free(self._queue[0], now):
            held = self._queue.popleft()
            self.progress.note(held.mark)
            self._queued -= len(held.raw)
            out.append(held.raw)
        return b"".join(out)

    def _is_free(self, held: _Held, now: float) -> bool:
        due = self._seconds is not None and held.since + self._seconds <= now
        return all(call.judged for call in held.calls) and all(
            text.judged >= (text.end if text.ended else end if due else end + self._back) for text, end in held.texts
        )


def _read(data: bytes) -> tuple[Mark, list[Piece], str]:
    """An event's mark and pieces, and why it cannot be read, if so."""
    if not data or data == DONE:
        return NO_MARK, [], ""
    try:
        try:
            document = decoded(data)
        except NoJson:
            return NO_MARK, list(pieces_of_no_json(data, read_event)), ""
        return mark_of(document), list(read_event(document)), ""
    except RecursionError:
        return NO_MARK, [], "not_json"
