"""The table of docs/faults.md, read: what clients may see of each fault. It stands nowhere else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.e2e.faults.traffic import Tally

DOCUMENT: Final = Path(__file__).resolve().parents[3] / "docs" / "faults.md"

_ROW = re.compile(r"^\| \*\*(?P<name>[^*]+)\*\*[^|]*" + r"\|([^|]*)" * 4 + r"\|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """What clients may see, by `on_failure` and whether a guard would refuse the request; words in backticks count."""

    cells: dict[tuple[str, str], frozenset[str]]


def read_table(document: Path = DOCUMENT) -> dict[str, Row]:
    """The rows by their names."""
    columns = [(on_failure, kind) for on_failure in ("closed", "open") for kind in ("ordinary", "guarded")]
    return {
        found["name"]: Row(
            {column: frozenset(re.findall("`([a-z_]+)`", found[index + 2])) for index, column in enumerate(columns)}
        )
        for found in _ROW.finditer(document.read_text())
    }


def fits(row: Row, on_failure: str, tally: Tally) -> bool:
    """Whether clients saw what the row says, and nothing else."""
    seen = {"ordinary": set(tally.ordinary), "guarded": set(tally.guarded)}
    return all(labels and labels <= row.cells[on_failure, kind] for kind, labels in seen.items())
