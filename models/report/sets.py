"""Rows of the measuring sets, sampled by a seed where a set is large, and the halves of the secrets set.

What a set is for, and where it comes from, says the README of the data folder.
"""

from __future__ import annotations

import csv
import hashlib
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

Row = dict[str, Any]
T = TypeVar("T")

NEVER_TRAINED: Final = ("authored/domain", "authored/long_benign", "sources/xquad_questions_multilingual")
"""Harmless texts that no training saw. At the score that one in a hundred of these reaches, recall is told."""


def rows(data: Path, name: str) -> list[Row]:
    """The rows of `text/<name>.jsonl`."""
    path = data / "text" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").rstrip().split("\n")]


def texts(data: Path, name: str, wanted: Callable[[Row], bool] = lambda _: True) -> list[str]:
    """The texts of the rows that are wanted."""
    return [row["text"] for row in rows(data, name) if wanted(row)]


def sample(items: Sequence[T], most: int, seed: int) -> list[T]:
    """At most so many of them, drawn by the seed, in their order."""
    if len(items) <= most:
        return list(items)
    chosen = sorted(random.Random(seed).sample(range(len(items)), most))
    return [items[index] for index in chosen]


def images(data: Path) -> list[tuple[str, Path]]:
    """Class and file of each measuring image."""
    folder = data / "images" / "dev"
    with (folder / "SOURCES.csv").open(encoding="utf-8", newline="") as file:
        return [(row["class"], folder / row["file"]) for row in csv.DictReader(file)]


def secrets_half(row: Row) -> Literal["tuning", "held out"]:
    """Which half a fixture belongs to: all of a source file's rule to one, by SHA-256 of their names."""
    name = f"{row['source']}#{row.get('rule', '')}"
    return "tuning" if hashlib.sha256(name.encode()).digest()[0] < 128 else "held out"
