"""What the admin and the probe address answer: health, what there is to be seen of the workers, the page, and feedback.

Put together here; each part is a module of its own. To whom it is answered is `guard.py`'s, serving it `server.py`'s.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from router.admin import health, machines
from router.admin.answers import answer, broken, refused
from router.admin.feedback import Feedback
from router.admin.insight import Insight
from router.admin.pages.routes import routes as page_routes


@dataclass(frozen=True, slots=True)
class Shown:
    """What the admin address has: workers with these state files, by index, what they say, and who takes feedback.

    `feedback` None takes none. `body_bytes` is the largest request that is explained.
    """

    state_files: Sequence[Path]
    insight: Insight
    feedback: Feedback | None
    body_bytes: int


def build_app(shown: Shown) -> Starlette:
    """All there is. The page comes first: what it has for browsers at the same path is JSON for everyone else."""
    return _app(
        [
            *health.routes(shown.state_files, shown.insight),
            *page_routes(shown.insight),
            *machines.routes(shown.insight, shown.state_files, shown.body_bytes),
            *(() if shown.feedback is None else _feedback(shown.feedback)),
        ]
    )


def build_probe(shown: Shown) -> Starlette:
    """Health and metrics alone, for whoever reaches the address."""
    return _app(health.routes(shown.state_files, shown.insight))


def build_intake(feedback: Feedback) -> Starlette:
    """What workers tell the process that keeps the state, at a socket of their user's."""
    return _app(_feedback(feedback))


def _app(routes: Sequence[BaseRoute]) -> Starlette:
    app = Starlette(routes=routes, exception_handlers={HTTPException: refused, Exception: broken})
    # /livez/ is not /livez; a probe that does not follow would take the redirection for life.
    app.router.redirect_slashes = False
    return app


def _feedback(feedback: Feedback) -> list[BaseRoute]:
    return [
        Route("/rewards", _taking(feedback.rewards), methods=["POST"]),
        Route("/measurements", _taking(feedback.measurements), methods=["POST"]),
    ]


def _taking(take: Callable[[Request], Awaitable[dict[str, int]]]) -> Callable[[Request], Awaitable[JSONResponse]]:
    async def endpoint(request: Request) -> JSONResponse:
        return answer(200, await take(request))

    return endpoint
