"""Keeps the content of requests beside their records, where the policy says so: after the answer, and redacted first.

What is kept was asked of the policy's `pii` and `secret` signals until none of them found anything in it any more. What
cannot be made sure of is not kept, and the record says in a word why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from router.config.handling import CaptureSettings
from router.extproc.afterwards import Afterwards, idle_within
from router.inference.executor import InferenceExecutor
from router.records.capture import FORMAT, Content, seal
from router.records.record import DecisionRecord
from router.records.redaction import (
    UnsureError,
    attachments,
    scalars_of,
    strings_of,
    value_at,
    without_attachments,
    without_text,
    without_values,
)
from router.records.sealing import Keys
from router.records.store import ContentRow
from router.request.apis import parse
from router.request.errors import RequestError
from router.request.view import Api, ImagePart, RequestView, TextPart, ToolResultPart, Turn
from router.signals.base import Cost, Evidence, Observation, Signal
from router.signals.places import ALL_ROLES, all_texts

ROUNDS: Final = 16
"""Times that the signals are asked of one request. They cite a few values at a time: lists of hundreds are not kept."""

ROUND_SECONDS: Final = 5.0
SECONDS: Final = 30.0
"""For one request, all rounds together."""

IDLE_SECONDS: Final = 5.0
"""How long the models are waited for, where a signal needs one."""

WAITING: Final = 64

HEADER: Final = "header:"
UNREAD: Final = "unread:"
"""In place of a pointer: what stands in a body and is no text of the request, such as its metadata and its numbers."""


@dataclass(frozen=True, slots=True)
class Redactor:
    """A signal that says what must not be kept, and the score from which on it counts."""

    signal: Signal
    threshold: float
    reads_images: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """A request that was answered."""

    record: str
    api: Api
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    read: tuple[str, ...] = ()
    """Names of headers that signals read."""


class Capturer:
    """Captures under one policy. `headers` are those that signals read; `put` takes what there is to keep."""

    def __init__(
        self,
        settings: CaptureSettings,
        keys: Keys,
        redactors: Sequence[Redactor],
        headers: Collection[str],
        executor: InferenceExecutor,
        put: Callable[[ContentRow], None],
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._redactors = redactors
        self._headers = frozenset(headers)
        self._read = tuple(sorted(headers))
        self._executor = executor
        self._needs_models = any(one.signal.cost is not Cost.HEURISTIC for one in redactors)
        self._put = put
        self._afterwards: Afterwards[Judged] = Afterwards(self._capture, self._gave_up, WAITING, SECONDS)

    def take(self, record: DecisionRecord, view: RequestView, body: bytes) -> None:
        """Capture this request's content, if it is one of those; later, and never waited for."""
        if not self._settings.wants(record.decision):
            return
        if len(body) > self._settings.max_bytes:
            self._put(ContentRow(record.record, "too_large"))
            return
        headers = {name: value for name, value in view.headers.items() if name in self._headers}
        if not self._afterwards.offer(Judged(record.record, view.api, body, headers, self._read), len(body)):
            self._put(ContentRow(record.record, "too_many"))

    async def settled(self) -> None:
        """Return once nothing waits."""
        await self._afterwards.settled()

    def close(self) -> None:
        """Capture nothing more."""
        self._afterwards.close()

    def _gave_up(self, job: Judged, error: Exception | None) -> None:
        late = error is None or isinstance(error, TimeoutError)
        self._put(ContentRow(job.record, "not_in_time" if late else "failed"))

    async def _capture(self, job: Judged) -> None:
        try:
            if self._settings.redact:
                content = await self._redacted(job)
            else:
                content = await asyncio.to_thread(_as_it_is, job, self._settings.images)
            body = await asyncio.to_thread(seal, self._keys, job.record, content)
        except UnsureError as error:
            self._put(ContentRow(job.record, str(error)))
        else:
            self._put(ContentRow(job.record, body=body))

    async def _redacted(self, job: Judged) -> Content:
        if self._needs_models and not await idle_within(self._executor, IDLE_SECONDS):
            raise UnsureError("overloaded")
        sees = any(one.reads_images for one in self._redactors)
        draft = await asyncio.to_thread(Draft, job, self._settings.images and sees)
        for _ in range(ROUNDS):
            view = draft.asked
            observations = [(one, await self._ask(one, view)) for one in self._redactors]
            if not await asyncio.to_thread(draft.revise, view, observations):
                return draft.content()
        raise UnsureError("too_much_to_redact")

    async def _ask(self, redactor: Redactor, view: RequestView) -> Observation:
        try:
            async with asyncio.timeout(ROUND_SECONDS):
                return await redactor.signal.observe(view)
        except TimeoutError:
            return Observation("timed_out", None)
        except Exception:
            return Observation("failed", None)


class Draft:
    """A request on its way to what is kept of it: `asked` is what signals are asked of, `revise` takes out more."""

    def __init__(self, job: Judged, keep_images: bool) -> None:
        """Raises UnsureError. Images that are kept are inline; files and audio, which nobody can look into, are not."""
        self._job = job
        self._headers = dict(job.headers)
        self._document: Any = msgspec.json.decode(job.body)
        parts = attachments(_parsed(job.api, job.body))
        kept = {id(part) for part in parts if keep_images and isinstance(part, ImagePart) and part.status == "inline"}
        self._removed = without_attachments(self._document, [part for part in parts if id(part) not in kept])
        self._redacted = False
        self._gone = {part.pointer for part in parts if id(part) not in kept}
        self.asked = self._seen()

    def revise(self, view: RequestView, observations: Iterable[tuple[Redactor, Observation]]) -> bool:
        """Take out what was found in `view`; whether there was anything. UnsureError where an answer is missing."""
        values: dict[str, str] = {}
        pictures: set[int] = set()
        unplaced: list[Evidence] = []
        for redactor, observation in observations:
            found = [one for one in observation.evidence if one.score is None or one.score >= redactor.threshold]
            pictures |= {one.image for one in found if one.image is not None}
            if observation.status != "observed" and not any(one.image is not None for one in found):
                raise UnsureError(f"{redactor.signal.name}: {observation.status}")
            for one in found:
                if one.image is None and not _locate(view, one, values):
                    unplaced.append(one)
        if not values and not pictures and not unplaced:
            return False
        before = (self._document, dict(self._headers))
        self._document = without_values(self._document, values)
        self._headers = {name: str(without_values(text, values)) for name, text in self._headers.items()}
        self._redacted |= bool(values or unplaced)
        if values and (self._document, self._headers) == before:
            # Written in another way than it was read: with escapes inside, or put together from several.
            unplaced += [one for each, o in observations for one in o.evidence if one.image is None]
        for one in unplaced:
            self._blank(one)
        self._removed += without_attachments(self._document, [view.images[index] for index in sorted(pictures)])
        self._gone |= {view.images[index].pointer for index in pictures}
        self.asked = self._seen()
        return True

    def content(self) -> Content:
        """What is to be kept."""
        whole = not self._redacted and not self._removed
        body = self._job.body if whole else msgspec.json.encode(self._document)
        return Content(FORMAT, self._job.api, body, self._headers, self._redacted, self._removed, self._job.read)

    def _blank(self, one: Evidence) -> None:
        if one.pointer.startswith(HEADER):
            self._headers[one.pointer.removeprefix(HEADER)] = ""
        else:
            without_text(self._document, one.pointer, one.label or "removed")

    def _seen(self) -> RequestView:
        """The request as it is now, without what stands for attachments, and with headers as texts of their own."""
        view = _parsed(self._job.api, msgspec.json.encode(self._document))
        told = tuple(TextPart(f"{HEADER}{name}", text) for name, text in self._headers.items() if text)
        turns = tuple(_without(turn, self._gone) for turn in view.turns)
        view = replace(view, turns=turns, extras=tuple(_without(turn, self._gone) for turn in view.extras))
        if unread := _unread(self._document, view):
            told = (*told, TextPart(UNREAD, unread))
        return replace(view, extras=(*view.extras, Turn(HEADER, "user", told))) if told else view


def _as_it_is(job: Judged, keep_images: bool) -> Content:
    content = Content(FORMAT, job.api, job.body, dict(job.headers), read=job.read)
    images = [part for part in attachments(_parsed(job.api, job.body)) if isinstance(part, ImagePart)]
    if keep_images or not images:
        return content
    document = msgspec.json.decode(job.body)
    removed = without_attachments(document, images)
    return msgspec.structs.replace(content, body=msgspec.json.encode(document), removed=removed)


def _locate(view: RequestView, one: Evidence, values: dict[str, str]) -> bool:
    """Find the words that the evidence means; whether it can be told which those are.

    What a tool is called with may be there twice, as it was written and as it reads: a place in it means either.
    """
    texts = [text.text for text in all_texts(view, ALL_ROLES) if text.pointer == one.pointer]
    if one.span is None or len(texts) != 1:
        return False
    start, end = one.span
    found = texts[0][start:end]
    if found:
        values[found] = one.label
    return bool(found)


def _unread(document: Any, view: RequestView) -> str:
    """A line for each string, name and number of the body that is no text of the view; images are left out.

    It is kept as well, so it is asked about as well. What is found in a number cannot be replaced: nothing is kept.
    """
    known = {text.text for text in all_texts(view, ALL_ROLES)}
    for part in attachments(view):
        known.update(strings_of(value_at(document, part.pointer)))
    words = map(_written, scalars_of(document))
    return "\n".join(word for word in dict.fromkeys(words) if word and word not in known)


def _written(one: str | int | float) -> str:
    """As text. What is whole is written so: `.0` would hide the number of a card."""
    if isinstance(one, float) and one.is_integer() and abs(one) < 2**63:
        return str(int(one))
    return str(one)


def _without(turn: Turn, gone: Collection[str]) -> Turn:
    """The turn without the parts at these places."""
    parts = tuple(
        replace(part, parts=tuple(one for one in part.parts if one.pointer not in gone))
        if isinstance(part, ToolResultPart)
        else part
        for part in turn.parts
        if part.pointer not in gone
    )
    return replace(turn, parts=parts)


def _parsed(api: Api, body: bytes) -> RequestView:
    try:
        return parse(api, body)
    except RequestError:
        # What was taken out was needed for it to be a request.
        raise UnsureError("redaction") from None
