"""What the admin address answers: whether the supervisor lives, whether workers take requests and if not, why.

It also takes feedback for selections that learn (`feedback.py`). Nothing of any request is ever in an answer. Serving
it, and to whom, is `server.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from router.admin.feedback import Feedback
from router.admin.workers import report_on

HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
"""Of every answer: each is true for the moment only, and is what it says it is."""


def build_app(state_files: Sequence[Path], feedback: Feedback | None = None) -> Starlette:
    """The application for workers with these state files, by index.

    `/livez` is always 200; `/readyz` is 200 when at least one worker is ready, else 503. `/policy` has the digests of
    the policies that are served, one but for moments, and why a changed policy file is not. With `feedback`,
    `/rewards` and `/measurements` take it by POST.
    """

    async def livez(_request: Request) -> JSONResponse:
        return _answer(200, {"live": True})

    async def readyz(_request: Request) -> JSONResponse:
        reports = [report_on(index, file) for index, file in enumerate(state_files)]
        ready = any(report.state == "ready" for report in reports)
        return _answer(200 if ready else 503, {"ready": ready, "workers": [asdict(report) for report in reports]})

    async def policy(_request: Request) -> JSONResponse:
        reports = [report_on(index, file) for index, file in enumerate(state_files)]
        served = sorted({report.policy for report in reports if report.state == "ready" and report.policy})
        refused = sorted({reason for report in reports for reason in report.refused_policy})
        workers = [{"worker": report.worker, "policy": report.policy or None} for report in reports]
        return _answer(200, {"served": served, "refused": refused, "workers": workers})

    routes = [Route("/livez", livez), Route("/readyz", readyz), Route("/policy", policy)]
    if feedback is not None:
        routes += [
            Route("/rewards", _taking(feedback.rewards), methods=["POST"]),
            Route("/measurements", _taking(feedback.measurements), methods=["POST"]),
        ]
    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: _refused, Exception: _broken},
    )
    # /livez/ is not /livez; a probe that does not follow would take the redirection for life.
    app.router.redirect_slashes = False
    return app


def _taking(take: Callable[[Request], Awaitable[dict[str, int]]]) -> Callable[[Request], Awaitable[JSONResponse]]:
    async def endpoint(request: Request) -> JSONResponse:
        return _answer(200, await take(request))

    return endpoint


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return _answer(error.status_code, {"error": error.detail}, error.headers)


async def _broken(_request: Request, _error: Exception) -> JSONResponse:
    return _answer(500, {"error": "Internal Server Error"})


def _answer(status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse(body, status, {**(headers or {}), **HEADERS})
