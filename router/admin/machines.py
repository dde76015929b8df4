"""What there is to be seen of the workers, in JSON; the page shows the same to people (`pages/`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from router.admin.answers import answer
from router.admin.health import served_policies
from router.admin.insight import Filter, Insight, NobodyAnswersError, WrongFilterError
from router.admin.playing import Playing

MOST: Final = 1000
WORDS: Final = ("decision", "outcome", "model", "signal", "since")
TRUTHS: Final = {"": False, "false": False, "0": False, "true": True, "1": True}
NOBODY: Final = "no worker answers; /readyz says how they are"


def routes(insight: Insight, state_files: Sequence[Path], body_bytes: int) -> list[BaseRoute]:
    """Every route for machines."""
    look = _Looking(insight, state_files)
    return [
        Route("/decisions", look.decisions),
        Route("/api/decisions", look.decisions),
        Route("/decisions/{identifier}", look.record),
        Route("/api/decisions/{identifier}", look.record),
        Route("/policy", look.policy),
        Route("/api/policy", look.policy),
        Route("/parity", look.parity),
        Route("/api/parity", look.parity),
        Route("/explain", Playing(insight, body_bytes).explain, methods=["POST"]),
    ]


class _Looking:
    def __init__(self, insight: Insight, state_files: Sequence[Path]) -> None:
        self._insight = insight
        self._state_files = state_files

    async def decisions(self, request: Request) -> JSONResponse:
        wanted = _filter(request.query_params)
        try:
            found = await self._insight.decisions(wanted)
        except WrongFilterError as error:
            raise HTTPException(400, str(error)) from None
        return answer(200, {"decisions": found, "silent": self._insight.silent()})

    async def record(self, request: Request) -> JSONResponse:
        found = await self._insight.record(request.path_params["identifier"])
        if found is None:
            raise HTTPException(404, "no worker remembers this record, and none is kept")
        return answer(200, found)

    async def policy(self, _request: Request) -> JSONResponse:
        told = served_policies(self._state_files)
        try:
            return answer(200, {**told, **await self._insight.policy()})
        except NobodyAnswersError:
            return answer(503, {**told, "error": NOBODY})

    async def parity(self, _request: Request) -> JSONResponse:
        try:
            return answer(200, {**await self._insight.parity(), "silent": self._insight.silent()})
        except NobodyAnswersError:
            raise HTTPException(503, NOBODY) from None


def _filter(query: Mapping[str, str]) -> Filter:
    """Raises HTTPException for what is no filter."""
    unknown = sorted(set(query) - {*WORDS, "failed", "limit"})
    if unknown:
        raise HTTPException(400, f"decisions are filtered by {', '.join(WORDS)}, failed and limit alone")
    failed, limit = query.get("failed", "").lower(), query.get("limit", "100")
    if failed not in TRUTHS:
        raise HTTPException(400, "failed is true or false")
    if not (limit.isascii() and limit.isdigit() and len(limit) < 6 and 0 < int(limit) <= MOST):
        raise HTTPException(400, f"limit is a number from 1 to {MOST}")
    return Filter(**{word: query.get(word, "") for word in WORDS}, failed=TRUTHS[failed], limit=int(limit))
