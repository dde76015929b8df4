"""The page's routes. Each asks the insight, prepares a view, renders it; nothing is kept between requests.

For browsers: where a client asks for JSON rather than HTML, `/policy` and `/decisions` are left to whoever answers
machines. Headers that hold for every answer of the admin address are set where these routes are mounted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Set
from datetime import UTC, datetime
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from router.admin.insight import Insight, NobodyAnswersError, WrongFilterError
from router.admin.pages.asking import AT_ONCE, asked
from router.admin.pages.evidence import Bound, bounds_of
from router.admin.pages.listing import OUTCOMES, SPANS, choices, filter_of, is_narrowed, rows_of
from router.admin.pages.parity import parity_view
from router.admin.pages.policy import policy_view
from router.admin.pages.record import record_view
from router.admin.pages.rendering import STATIC, render
from router.admin.pages.samples import SAMPLES

Document = Mapping[str, Any]
NOBODY: Final = "No worker answers: they are starting, ending, or hang. /readyz tells which."


class BrowserRoute(Route):
    """A route for clients that take HTML; others fall through to a later route of the same path."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """No match for who does not name HTML among what it accepts."""
        if scope["type"] == "http" and not _wants_html(scope):
            return Match.NONE, {}
        return super().matches(scope)


def routes(insight: Insight) -> list[BaseRoute]:
    """Every route of the page. Mount them before routes that answer the same paths in JSON."""
    view = _Views(insight)
    return [
        Route("/", view.decisions, name="home"),
        BrowserRoute("/decisions", view.decisions),
        BrowserRoute("/decisions/{identifier}", view.decision),
        BrowserRoute("/policy", view.policy),
        BrowserRoute("/graph", view.policy),
        Route("/playground", view.playground),
        Route("/playground/explain", view.explain, methods=["POST"]),
        BrowserRoute("/parity", view.parity),
        Route("/page/rows", view.rows),
        Route("/page/record/{identifier}", view.record),
        Mount("/page/assets", StaticFiles(directory=STATIC)),
    ]


class _Views:
    def __init__(self, insight: Insight) -> None:
        self._insight = insight
        self._explaining = 0
        self._known: tuple[str, Mapping[str, Bound]] = ("", {})

    async def decisions(self, request: Request) -> Response:
        wanted = filter_of(request.query_params)
        policy = await self._policy()
        values = {**await self._listed(request), "choices": choices(policy, wanted), "wanted": wanted}
        return await self._page("decisions.html.j2", {**values, "outcomes": OUTCOMES, "spans": SPANS})

    async def rows(self, request: Request) -> Response:
        return await self._fragment("rows.html.j2", await self._listed(request))

    async def decision(self, request: Request) -> Response:
        values = await self._record(request)
        if values is None:
            return await self._page("missing.html.j2", {}, 404)
        return await self._page("decision.html.j2", values)

    async def record(self, request: Request) -> Response:
        values = await self._record(request)
        if values is None:
            return await self._fragment("gone.html.j2", {}, 404)
        return await self._fragment("record.html.j2", values)

    async def policy(self, _request: Request) -> Response:
        policy = await self._policy()
        if policy is None:
            return await self._page("nobody.html.j2", {"why": NOBODY}, 503)
        return await self._page("policy.html.j2", await asyncio.to_thread(policy_view, policy))

    async def playground(self, _request: Request) -> Response:
        return await self._page("playground.html.j2", {"samples": SAMPLES})

    async def explain(self, request: Request) -> Response:
        if self._explaining >= AT_ONCE:
            raise HTTPException(503, "too much is being explained; try again", {"retry-after": "1"})
        self._explaining += 1
        try:
            wanted = await asked(request)
            told = await self._insight.explain(wanted.path, wanted.headers, wanted.body)
        finally:
            self._explaining -= 1
        if "error" in told:
            return await self._fragment("mistake.html.j2", {"error": told["error"]})
        values = await asyncio.to_thread(record_view, told, await self._policy(), _now())
        return await self._fragment("record.html.j2", {**values, "explained": True})

    async def parity(self, _request: Request) -> Response:
        try:
            told = await self._insight.parity()
        except NobodyAnswersError:
            told = {"workers": []}
        return await self._page("parity.html.j2", parity_view(told, _now()))

    async def _listed(self, request: Request) -> dict[str, Any]:
        wanted = filter_of(request.query_params)
        problem = ""
        try:
            found = await self._insight.decisions(wanted)
        except WrongFilterError as error:
            found, problem = [], str(error)
        except NobodyAnswersError:
            found, problem = [], NOBODY
        digest, bounds = await self._bounds({record.get("policy") for record in found})
        rows = await asyncio.to_thread(rows_of, found, _now(), digest, bounds)
        return {"rows": rows, "narrowed": is_narrowed(wanted), "limit": wanted.limit, "problem": problem}

    async def _bounds(self, digests: Set[str | None]) -> tuple[str, Mapping[str, Bound]]:
        """The thresholds of the policy that serves; asked for again when requests were decided by another one."""
        if digests - {self._known[0]}:
            policy = await self._policy()
            if policy is not None:
                self._known = (policy["digest"], bounds_of(policy))
        return self._known

    async def _record(self, request: Request) -> dict[str, Any] | None:
        try:
            found = await self._insight.record(request.path_params["identifier"])
        except NobodyAnswersError:
            found = None
        if found is None:
            return None
        values = await asyncio.to_thread(record_view, found, await self._policy(), _now())
        return {**values, "explained": False}

    async def _policy(self) -> dict[str, Any] | None:
        try:
            return await self._insight.policy()
        except NobodyAnswersError:
            return None

    async def _page(self, template: str, values: Document, status: int = 200) -> Response:
        silent = self._insight.silent()
        return await self._fragment(template, {**values, "silent": silent, "view": template.partition(".")[0]}, status)

    async def _fragment(self, template: str, values: Document, status: int = 200) -> Response:
        # A policy of hundreds of decisions takes a while to write; the loop also answers probes.
        text = await asyncio.to_thread(render, template, values)
        return HTMLResponse(text, status, {"vary": "accept"})


def _wants_html(scope: Scope) -> bool:
    accepts = b",".join(value for name, value in scope["headers"] if name == b"accept")
    return b"text/html" in accepts.lower()


def _now() -> datetime:
    return datetime.now(UTC)
