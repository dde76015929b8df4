"""Asks a policy's signals again about requests whose content was captured, for records that cannot tell enough."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import TracebackType
from typing import Final

from router.cli.output import note
from router.config.load import LoadedPolicy
from router.extproc.house import House, move_in
from router.records.capture import Content, content_of
from router.records.replay import Rerun
from router.records.sealing import Keys, SealError
from router.records.store import Reader
from router.records.stored import CONTENT_KEPT, StoredRecord, to_stored
from router.request.errors import RequestError

PATIENT_MS: Final = 60_000
"""Time for a decision: nobody waits for it, and what took too long would only be not known."""

THREADS: Final = 2


class Rerunner:
    """Runs requests through the whole of a policy's pipeline, which is built when the first one needs it.

    Use it in a `with`. Raises SetupError where the policy cannot be served.
    """

    def __init__(self, loaded: LoadedPolicy, reader: Reader, keys: Keys) -> None:
        patient = loaded.limits.model_copy(update={"decision_ms": PATIENT_MS})
        self._loaded = replace(loaded, limits=patient)
        self._reader = reader
        self._keys = keys
        self._runner = asyncio.Runner()
        self._house: House | None = None
        self._told: set[str] = set()
        self._headers = {name for spec in loaded.signals for name in spec.settings.trusted_headers}

    def __enter__(self) -> Rerunner:
        self._runner.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._house is not None:
            self._house.close()
        self._runner.__exit__(kind, error, trace)

    def again(self, stored: StoredRecord) -> Rerun | None:
        """What the policy decides of the record's request; None where its content is not there, or not enough of it."""
        if stored.content != CONTENT_KEPT:
            return None
        try:
            content = content_of(self._reader, stored.record, self._keys)
        except SealError as error:
            self._note(f"content {error}")
            return None
        if content is None or not self._headers <= set(content.read):
            # A header that nobody kept would pass for one that was not sent.
            return None
        return self._runner.run(self._run(content))

    async def _run(self, content: Content) -> Rerun | None:
        if self._house is None:
            self._house = await move_in(self._loaded, THREADS)
        try:
            judged = await self._house.pipeline.judge_body(content.api, content.body, content.headers)
        except RequestError:
            return None
        seen = judged.record.verdict.observations.values()
        if content.removed and any(one.status != "observed" for one in seen):
            # What it could not judge may be what was taken out.
            return None
        return Rerun(judged.record.verdict, to_stored(judged.record).selection, whole=content.whole)

    def _note(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            note(text)
