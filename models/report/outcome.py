"""What a section found: figures beside their goals, and tables. Plain values that are kept as JSON between runs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from router.evaluation.statistics import Figure


@dataclass(frozen=True, slots=True)
class Found:
    """A figure; `least` or `most` is its goal, where it has one. Without an interval `low` and `high` are None."""

    what: str
    n: int
    value: float
    low: float | None = None
    high: float | None = None
    least: float | None = None
    most: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None where there is none."""
        if self.least is not None:
            return self.value >= self.least
        return None if self.most is None else self.value <= self.most


@dataclass(frozen=True, slots=True)
class Outcome:
    """One section. `sizes` says what was measured on; `tables` are Markdown."""

    title: str
    sizes: tuple[str, ...]
    found: tuple[Found, ...]
    tables: tuple[str, ...] = ()
    seconds: float = 0.0
    key: str = field(default="", repr=False)


def found(
    what: str, figure: Figure | None, n: int, *, least: float | None = None, most: float | None = None, note: str = ""
) -> list[Found]:
    """A figure as it is told; nothing where there was nothing to measure."""
    if figure is None:
        return []
    return [Found(what, n, figure.value, figure.low, figure.high, least, most, note)]


def write(outcome: Outcome, path: Path) -> None:
    """Keep it."""
    path.write_text(json.dumps(asdict(outcome)), encoding="utf-8")


def read(path: Path, key: str) -> Outcome | None:
    """What was kept, if it was found with the same packs, sets and limits."""
    if not path.is_file():
        return None
    plain = json.loads(path.read_text(encoding="utf-8"))
    if plain["key"] != key:
        return None
    return Outcome(
        title=plain["title"],
        sizes=tuple(plain["sizes"]),
        found=tuple(Found(**each) for each in plain["found"]),
        tables=tuple(plain["tables"]),
        seconds=plain["seconds"],
        key=plain["key"],
    )
