"""A request's images, each with what the signals say of it; with its thumbnail only where a policy had it captured."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from router.admin.pages.evidence import Bound, Seen

Document = Mapping[str, Any]
_SHOWABLE: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"})
"""What a browser draws and cannot run; SVG is not among it."""
_BASE64: Final = re.compile(r"[A-Za-z0-9+/=]+\Z")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one signal says of one image."""

    signal: str
    label: str
    score: float | None
    bound: Bound | None
    over: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Picture:
    """An image by its number, from 1. `source` is a data URI, empty where nothing was captured."""

    number: int
    pointer: str
    source: str
    verdicts: tuple[Verdict, ...]

    @property
    def matched(self) -> bool:
        """Whether any signal matched because of it."""
        return any(one.over for one in self.verdicts)


def pictures_of(record: Document, signals: Iterable[Seen]) -> list[Picture]:
    """All images that evidence names or that were captured; `silent_images` tells the others."""
    verdicts: dict[int, list[Verdict]] = {}
    pointers: dict[int, str] = {}
    for answer in signals:
        for piece in answer.pieces:
            if piece.image is not None:
                verdict = Verdict(answer.name, piece.label, piece.score, answer.bound, piece.over, piece.detail)
                verdicts.setdefault(piece.image, []).append(verdict)
                pointers.setdefault(piece.image, piece.pointer)
    sources = _captured(record)
    return [
        Picture(
            number,
            pointers.get(number, ""),
            sources.get(number, ""),
            tuple(sorted(verdicts.get(number, ()), key=lambda one: (not one.over, -(one.score or 0.0)))),
        )
        for number in sorted({*verdicts, *sources})
    ]


def silent_images(record: Document, pictures: Iterable[Picture]) -> str:
    """Numbers of the images that no evidence names, as in `3, 5–9`."""
    named = {picture.number for picture in pictures}
    runs: list[list[int]] = []
    for number in range(1, (record.get("images") or 0) + 1):
        if number in named:
            continue
        if runs and runs[-1][-1] == number - 1:
            runs[-1][-1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{low}" if low == high else f"{low}–{high}" for low, high in runs)


def _captured(record: Document) -> dict[int, str]:
    rows = (record.get("captured") or {}).get("images") or ()
    return {
        row["index"] + 1: f"data:{row['media_type']};base64,{row['data_base64']}"
        for row in rows
        if row.get("media_type") in _SHOWABLE and _BASE64.match(row.get("data_base64") or "")
    }
