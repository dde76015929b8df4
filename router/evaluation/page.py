"""The report as one HTML file that needs nothing else: plots and thumbnails inside, no scripts, nothing fetched.

Unlike every other output it shows what failed cases say and show. It is for who wrote the cases.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from router.evaluation.cases import Case, CasesError
from router.evaluation.plots import calibration, histogram, roc
from router.evaluation.report import Failure, Report, SignalFigures
from router.evaluation.requests import request_of
from router.evaluation.tuning import Proposal
from router.request.api_rules import ApiRules
from router.request.apis import parse
from router.request.errors import ImageError, RequestError
from router.request.images import ImageLimits, decode

THUMBNAIL: Final = 160
MAX_TEXT: Final = 1200
MAX_PARTS: Final = 50
"""Texts, and pictures, of one failed case; a request may have thousands."""

MAX_SHOWN: Final = 200
"""Failures with texts and pictures; a page of thousands opens nowhere."""


@dataclass(frozen=True, slots=True)
class Said:
    """A text of a failed case, cut where it is long."""

    role: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Shown:
    """A failed case with what it says and shows. `pictures` are data URIs; empty: an image that cannot be read.

    `left_out` texts and pictures are not there.
    """

    failure: Failure
    texts: tuple[Said, ...] = field(repr=False)
    pictures: tuple[str, ...] = field(repr=False)
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class _Plots:
    figures: SignalFigures
    roc: str
    calibration: str | None
    histogram: str


def render(report: Report, cases: Sequence[Case], proposals: Sequence[Proposal] = (), rules: ApiRules = ()) -> str:
    """The page's text; `rules` are the policy's own paths."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    by_name = {case.name: case for case in cases}
    return environment.get_template("page.html.j2").render(
        report=report,
        plots=[_plots(each, report) for each in report.signals if each.curve],
        shown=[_shown(each, by_name[each.name], rules) for each in report.failures[:MAX_SHOWN]],
        left_out=max(0, len(report.failures) - MAX_SHOWN),
        proposals=proposals,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _plots(figures: SignalFigures, report: Report) -> _Plots:
    known = calibration(figures.bins) if figures.bins else None
    return _Plots(figures, roc(figures.curve), known, histogram(report.answers[figures.name]))


def _shown(failure: Failure, case: Case, rules: ApiRules) -> Shown:
    try:
        request = request_of(case, rules)
        view = parse(request.api, request.body)
    except (CasesError, RequestError):
        return Shown(failure, (), ())
    texts = tuple(Said(each.role, _cut(each.text)) for each in view.texts[:MAX_PARTS])
    pictures = tuple(_thumbnail(each.data) for each in view.images[:MAX_PARTS])
    left_out = len(view.texts) + len(view.images) - len(texts) - len(pictures)
    return Shown(failure, texts, pictures, left_out)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} … ({len(text) - MAX_TEXT} more characters)"


def _thumbnail(data: bytes) -> str:
    try:
        image = decode(data, ImageLimits(frames=100), (THUMBNAIL, THUMBNAIL))
    except ImageError:
        return ""
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=80)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
