"""What there is to train on: the collected images by class, and the rendered ones by kind.

Files stay as their encoded bytes in memory; a few thousand small JPEGs are cheaper to keep than to re-read.
"""

from __future__ import annotations

import csv
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from models.rendering import KINDS

from .bank import ALONE

HOLD_OUT_SHARE = 0.10
# What the last stage still leaves out, for calibration: a part of what the stages before it left out.
KEPT_SHARE = 0.05
LARGEST_HELD_REPOSITORY = 0.15
HOLD_OUT_SEED = 7


@dataclass(frozen=True)
class Item:
    """One image: its bytes, its class, and the kind where a renderer made it."""

    data: bytes
    label: str
    kind: str | None = None


def _held_repositories(sizes: dict[str, int], total: int, rng: random.Random) -> list[str]:
    """Whole repositories, none of them large, until about a tenth of the class is held out."""
    names = sorted(name for name, size in sizes.items() if size <= LARGEST_HELD_REPOSITORY * total)
    rng.shuffle(names)
    held: list[str] = []
    count = 0
    for name in names:
        if count >= HOLD_OUT_SHARE * total:
            break
        if count + sizes[name] <= (HOLD_OUT_SHARE + 0.05) * total + 1:
            held.append(name)
            count += sizes[name]
    return held


def collected(folder: Path, kept: float = HOLD_OUT_SHARE) -> tuple[list[Item], list[Item]]:
    """The images of `folder/SOURCES.csv`, split into those to train on and those held out.

    With a smaller share than `HOLD_OUT_SHARE` a part of the same images is held out, again by repository.
    """
    with (folder / "SOURCES.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    by_class: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        by_class[row["class"]].append(row)
    rng = random.Random(HOLD_OUT_SEED)
    train: list[Item] = []
    held_out: list[Item] = []
    for label in sorted(by_class):
        entries = by_class[label]
        sizes: dict[str, int] = defaultdict(int)
        for row in entries:
            sizes[row["repo"]] += 1
        held = _held_repositories(sizes, len(entries), rng)
        # Fewer of the same where less is asked for.
        while len(held) > 1 and sum(sizes[name] for name in held[:-1]) >= kept * len(entries):
            held.pop()
        # A class that comes from one or two repositories is held out by image instead: optimistic, but not blind.
        thin = sum(sizes[name] for name in held) < 0.04 * len(entries)
        for row in entries:
            item = Item((folder / row["file"]).read_bytes(), label)
            keep_out = row["repo"] in held or (thin and rng.random() < kept)
            (held_out if keep_out else train).append(item)
    return train, held_out


def rendered(folder: Path, kinds: Iterable[str] = KINDS, first: int = 0, last: int = 1_000_000) -> list[Item]:
    """What `prepare` left in `folder/<kind>/<seed>.jpg`, with seeds in [first, last)."""
    items: list[Item] = []
    for kind in sorted(kinds):
        for file in sorted((folder / kind).glob("*.jpg")):
            if first <= int(file.stem) < last:
                items.append(Item(file.read_bytes(), KINDS[kind].label, kind))
    return items


def by_label(items: Sequence[Item]) -> dict[str, list[Item]]:
    """Group by class; what is nothing in particular stands apart, to be drawn more often than its class."""
    grouped: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        grouped[item.kind if item.kind in ALONE else item.label].append(item)
    return dict(grouped)
