"""How the admin address answers machines: JSON that nobody keeps, also for what it refuses."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

logger = logging.getLogger(__name__)


def answer(status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A document; what holds for every answer is set by the guard."""
    return JSONResponse(body, status, dict(headers or {}))


async def refused(_request: Request, error: Exception) -> JSONResponse:
    """For an HTTPException."""
    assert isinstance(error, HTTPException)
    return answer(error.status_code, {"error": error.detail}, error.headers)


async def broken(_request: Request, error: Exception) -> JSONResponse:
    """For any other; its text may quote what was sent, the type can't."""
    logger.error("admin answer failed", extra={"fields": {"error_type": type(error).__qualname__}})
    return answer(500, {"error": "Internal Server Error"})
