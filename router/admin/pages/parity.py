"""The parity view: every tower's likeness to its reference on a scale where 0.999 and 0.9999 stand apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from router.admin.pages.rendering import moment

Document = Mapping[str, Any]

FAR, NEAR = 0.1, 1e-7
"""Ends of the scale, as distances from the reference."""
TICKS: Final = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on the scale: `at` 0-1 from far to near."""

    kind: str
    at: float
    told: str


@dataclass(frozen=True, slots=True)
class Tower:
    """A tower with its marks."""

    kind: str
    precision: str
    measure: str
    drift_allowed: bool
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class PackRow:
    """A pack of one worker. `age` is in words; `verdict` is `true`, `false` or `unknown`."""

    reference: str
    name: str
    digest: str
    verdict: str
    word: str
    age: str
    checked: str
    towers: tuple[Tower, ...]
    misses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker and its packs."""

    worker: int
    interval: str
    packs: tuple[PackRow, ...]


def parity_view(parity: Document, now: datetime) -> dict[str, Any]:
    """What `parity.html.j2` needs."""
    workers = [_worker(row, now) for row in parity.get("workers", ())]
    packs = [pack for worker in workers for pack in worker.packs]
    return {
        "workers": workers,
        "packs": len(packs),
        "missed": sum(pack.verdict == "false" for pack in packs),
        "ticks": [(_place(1 - distance), f"{1 - distance:.7f}".rstrip("0")) for distance in TICKS[:-1]],
    }


def _worker(row: Document, now: datetime) -> WorkerRow:
    seconds = row.get("interval") or 0
    interval = f"checked every {_span(seconds)}" if seconds else "checked at the start only"
    return WorkerRow(row["worker"], interval, tuple(_pack(one, now) for one in row.get("packs", ())))


def _pack(row: Document, now: datetime) -> PackRow:
    misses = tuple(row.get("misses") or ())
    when = moment(row.get("last_check"))
    verdict, word = ("false", "misses its bound") if misses else ("true", "holds")
    return PackRow(
        reference=row.get("reference") or "",
        name=row.get("name") or "",
        digest=row.get("digest") or "",
        verdict=verdict,
        word=word,
        age="not checked since the start" if when is None else f"{_span((now - when).total_seconds())} ago",
        checked=row.get("last_check") or "",
        towers=tuple(_tower(one, row) for one in row.get("towers", ())),
        misses=misses,
    )


def _tower(row: Document, checked: Document) -> Tower:
    measure = row.get("measure") or "cosine"
    # Differences of probabilities are distances already; likenesses become distances.
    likeness = measure == "cosine"
    found = [("gate", row.get("gate")), ("mean", row.get("mean")), ("worst", row.get("worst"))]
    found.append(("last", checked.get("cosine" if likeness else "difference")))
    marks = [
        Mark(kind, _place(value if likeness else 1 - value), _told(value, likeness))
        for kind, value in found
        if value is not None
    ]
    return Tower(
        row.get("kind") or "", row.get("precision") or "", measure, bool(row.get("drift_allowed")), tuple(marks)
    )


def _told(value: float, likeness: bool) -> str:
    if not likeness:
        return f"{value:.2g}"
    if value >= 1:
        return "1"
    digits = min(9, max(4, 2 - math.floor(math.log10(1 - value))))
    return f"{value:.{digits}f}".rstrip("0")


def _place(likeness: float) -> float:
    """0 at FAR or beyond, 1 at NEAR or nearer; between, each power of ten is as wide."""
    distance = min(max(1 - likeness, NEAR), FAR)
    return math.log(FAR / distance) / math.log(FAR / NEAR)


def _span(seconds: float) -> str:
    seconds = max(0, round(seconds))
    if seconds < 90:
        return f"{seconds} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h" if seconds < 172_800 else f"{round(seconds / 86_400)} days"
