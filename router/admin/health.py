"""Liveness, readiness and metrics: all that probes and scrapers get, also at an address that anybody may reach."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from router.admin.answers import answer
from router.admin.insight import Insight
from router.admin.workers import report_on
from router.telemetry.prometheus import CONTENT_TYPE


def routes(state_files: Sequence[Path], insight: Insight | None) -> list[BaseRoute]:
    """`/livez` is always 200; `/readyz` is 200 when at least one worker is ready, else 503, and says why not.

    `/metrics` is there with an insight.
    """

    async def livez(_request: Request) -> JSONResponse:
        return answer(200, {"live": True})

    async def readyz(_request: Request) -> JSONResponse:
        reports = [report_on(index, file) for index, file in enumerate(state_files)]
        ready = any(report.state == "ready" for report in reports)
        return answer(200 if ready else 503, {"ready": ready, "workers": [asdict(report) for report in reports]})

    found: list[BaseRoute] = [Route("/livez", livez), Route("/readyz", readyz)]
    if insight is not None:
        found.append(Route("/metrics", _Scraped(insight).metrics))
    return found


class _Scraped:
    """The metrics of all workers; whoever asks while they are being collected gets the same."""

    def __init__(self, insight: Insight) -> None:
        self._insight = insight
        self._collecting: asyncio.Task[bytes] | None = None

    async def metrics(self, _request: Request) -> Response:
        if self._collecting is None or self._collecting.done():
            self._collecting = asyncio.create_task(self._insight.metrics())
        text = await asyncio.shield(self._collecting)
        return Response(text, 200, {"content-type": CONTENT_TYPE})


def served_policies(state_files: Sequence[Path]) -> Mapping[str, Any]:
    """The digests of the policies that are served, one but for moments, and why a changed policy file is not."""
    reports = [report_on(index, file) for index, file in enumerate(state_files)]
    served = sorted({report.policy for report in reports if report.state == "ready" and report.policy})
    refused = sorted({reason for report in reports for reason in report.refused_policy})
    return {"served": served, "refused": refused}
