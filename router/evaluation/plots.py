"""Small plots as SVG, to stand inside a page: no scripts, no fonts, nothing fetched. Takes numbers only.

What comes out is markup and goes into a page as it is: nothing that a case or a policy says is ever in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from router.evaluation.report import Labelled
from router.evaluation.statistics import BINS, Bin, Point

SIDE: Final = 180
PAD: Final = 26


def roc(points: Sequence[Point]) -> str:
    """Recall over false positives; the dashed line is chance."""
    path = " ".join(f"{_x(each.false_positives):.1f},{_y(each.recall):.1f}" for each in points)
    return _plot("false positives", "recall", [_diagonal(), f'<polyline class="line" points="{path}"/>'])


def calibration(bins: Sequence[Bin]) -> str:
    """The share of positives over the mean score; the dashed line is a calibrated score. Dots grow with their bin."""
    most = max((each.n for each in bins), default=1)
    dots = [
        f'<circle class="dot" cx="{_x(each.mean):.1f}" cy="{_y(each.share):.1f}" '
        f'r="{2 + 5 * (each.n / most) ** 0.5:.1f}">'
        f"<title>{each.n} with mean score {each.mean:.3f}: {each.share:.0%} positive</title></circle>"
        for each in bins
    ]
    return _plot("mean score", "share of positives", [_diagonal(), *dots])


def histogram(answers: Sequence[Labelled]) -> str:
    """How scores, in 0-1, of positives (up) and negatives (down) are spread; heights are shares of the largest bin."""
    counts = {True: [0] * BINS, False: [0] * BINS}
    for each in answers:
        if each.score is not None:
            counts[each.expected][max(0, min(int(each.score * BINS), BINS - 1))] += 1
    most = max(1, *counts[True], *counts[False])
    width, middle = SIDE / BINS, PAD / 2 + SIDE / 2
    bars = []
    for expected, row in counts.items():
        for index, n in enumerate(row):
            height = n / most * SIDE / 2
            top = middle - height if expected else middle
            name = "up" if expected else "down"
            bars.append(
                f'<rect class="{name}" x="{PAD + index * width + 1:.1f}" y="{top:.1f}" width="{width - 2:.1f}" '
                f'height="{height:.1f}"><title>{n}</title></rect>'
            )
    return _plot("score", "positives up, negatives down", bars)


def _plot(across: str, up: str, inside: Iterable[str]) -> str:
    size, bottom = SIDE + PAD * 1.5, PAD / 2 + SIDE
    words = (
        f'<text x="{PAD + SIDE / 2}" y="{bottom + 18}" text-anchor="middle">{across}</text>'
        f'<text transform="translate(14 {PAD / 2 + SIDE / 2}) rotate(-90)" text-anchor="middle">{up}</text>'
    )
    frame = f'<rect class="frame" x="{PAD}" y="{PAD / 2}" width="{SIDE}" height="{SIDE}"/>'
    return f'<svg class="plot" viewBox="0 0 {size} {size}" role="img">{frame}{"".join(inside)}{words}</svg>'


def _diagonal() -> str:
    return f'<line class="chance" x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}"/>'


def _x(value: float) -> float:
    return PAD + value * SIDE


def _y(value: float) -> float:
    return PAD / 2 + (1 - value) * SIDE
