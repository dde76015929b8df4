"""An insight that tells what a test puts into it, and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from router.admin.app import Shown, build_app
from router.admin.feedback import Feedback
from router.admin.guard import Guard, loopback_access
from router.admin.insight import Document, Filter, NobodyAnswersError, WrongFilterError


@dataclass
class ToldInsight:
    """`policies` and `parities` None: no worker answers. With `hold`, explaining waits for it."""

    found: list[Document] = field(default_factory=list)
    policies: Document | None = None
    parities: Document | None = None
    explained: Document = field(default_factory=dict)
    text: bytes = b""
    hold: asyncio.Event | None = None
    asked: list[Any] = field(default_factory=list)
    entered: asyncio.Queue[None] = field(default_factory=asyncio.Queue)
    """Has an item for each question that waits."""

    async def decisions(self, wanted: Filter) -> list[Document]:
        self.asked.append(wanted)
        if wanted.since == "never":
            raise WrongFilterError("since takes a span")
        return self.found[: wanted.limit]

    async def record(self, identifier: str) -> Document | None:
        return next((one for one in self.found if one["record"] == identifier), None)

    async def policy(self) -> Document:
        if self.policies is None:
            raise NobodyAnswersError
        return self.policies

    async def parity(self) -> Document:
        if self.parities is None:
            raise NobodyAnswersError
        return self.parities

    async def explain(self, path: str, headers: dict[str, str], body: bytes) -> Document:
        self.asked.append((path, headers, body))
        await self._held()
        return self.explained

    async def metrics(self) -> bytes:
        self.asked.append("metrics")
        await self._held()
        return self.text

    async def _held(self) -> None:
        if self.hold is not None:
            self.entered.put_nowait(None)
            await self.hold.wait()

    def silent(self) -> list[Document]:
        return [{"worker": 1, "why": "it did not answer in time"}]


def admin_app(
    state_files: Sequence[Path] = (),
    feedback: Feedback | None = None,
    insight: ToldInsight | None = None,
    body_bytes: int = 1000,
) -> Guard:
    """All of the admin address, as it is at a loopback one."""
    shown = Shown(state_files, insight or ToldInsight(), feedback, body_bytes)
    return Guard(build_app(shown), loopback_access("127.0.0.1"))
