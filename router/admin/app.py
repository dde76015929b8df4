"""What the admin address answers: whether the supervisor lives, whether workers take requests and if not, why.

Nothing of any request is ever in an answer. Serving it, and to whom, is `server.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from router.admin.workers import report_on

HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
"""Of every answer: each is true for the moment only, and is what it says it is."""


def build_app(state_files: Sequence[Path]) -> Starlette:
    """The application for workers with these state files, by index.

    `/livez` is always 200; `/readyz` is 200 when at least one worker is ready, else 503.
    """

    async def livez(_request: Request) -> JSONResponse:
        return _answer(200, {"live": True})

    async def readyz(_request: Request) -> JSONResponse:
        reports = [report_on(index, file) for index, file in enumerate(state_files)]
        ready = any(report.state == "ready" for report in reports)
        return _answer(200 if ready else 503, {"ready": ready, "workers": [asdict(report) for report in reports]})

    app = Starlette(
        routes=[Route("/livez", livez), Route("/readyz", readyz)],
        exception_handlers={HTTPException: _refused, Exception: _broken},
    )
    # /livez/ is not /livez; a probe that does not follow would take the redirection for life.
    app.router.redirect_slashes = False
    return app


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return _answer(error.status_code, {"error": error.detail}, error.headers)


async def _broken(_request: Request, _error: Exception) -> JSONResponse:
    return _answer(500, {"error": "Internal Server Error"})


def _answer(status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse(body, status, {**(headers or {}), **HEADERS})
