"""Rows of the data folder, and which of its sets may train what.

`MEASURE_ONLY` never trains, tunes or selects anything. Sources of benign requests are parted by the collection that
they come from, so that thresholds are set on collections that training never saw.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "data"

MEASURE_ONLY = ("tensor_trust", "xquad_questions_multilingual", "authored")

CALIBRATION_BENIGN = ("arena-hard", "WizardLM_testset", "koala_test_set")
"""Collections of benign instructions that set thresholds and calibrate: real users' requests, and evolved ones."""


@dataclass(frozen=True, slots=True)
class Row:
    """A text, its label, and the set that it comes from."""

    text: str = field(repr=False)
    label: str
    source: str
    origin: str = ""
    more: dict[str, Any] = field(default_factory=dict, repr=False)


def rows(data: Path, name: str) -> list[Row]:
    """Rows of `text/sources/<name>.jsonl`, or of `text/authored/...` for a name that begins so."""
    folder = data / "text"
    path = folder / f"{name}.jsonl" if name.startswith("authored/") else folder / "sources" / f"{name}.jsonl"
    found = []
    for line in path.read_text(encoding="utf-8").rstrip().split("\n"):
        row = json.loads(line)
        if "text" in row:
            text, label = row.pop("text"), row.pop("label", "")
            found.append(Row(text, label, name, row.pop("source", ""), row))
    return found


def may_train(row: Row) -> bool:
    """Whether the row is no measuring or calibrating one."""
    return not row.source.startswith(MEASURE_ONLY) and not any(name in row.origin for name in CALIBRATION_BENIGN)


def calibrates(row: Row) -> bool:
    """Whether the row is of a collection that sets thresholds."""
    return any(name in row.origin for name in CALIBRATION_BENIGN)


def own_lines(name: str) -> list[str]:
    """Lines of `models/text/data/<name>.txt`, written for this project (CC0); `#` begins a comment."""
    lines = (HERE / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def own_sections(name: str) -> dict[str, list[str]]:
    """Lines by the `[section]` they stand under."""
    sections: dict[str, list[str]] = {}
    for line in own_lines(name):
        if line.startswith("[") and line.endswith("]"):
            sections[line[1:-1]] = current = []
        else:
            current.append(line)
    return sections


def sample(rows: Iterable[Row], most: int, seed: int, wanted: Callable[[Row], bool] = lambda _: True) -> list[Row]:
    """At most so many of the rows that are wanted, drawn by a seed."""
    those = [row for row in rows if wanted(row)]
    return those if len(those) <= most else random.Random(seed).sample(those, most)
