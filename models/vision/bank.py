"""The phrases as vectors, in every template, and which of them is true of an image."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.rendering import KINDS

from .phrases import Phrases, filled
from .text import TextTower

Floats = NDArray[np.float32]
DISTRACTOR = -1
# Kinds that lie in the ragbag for want of a better place: of its phrases only their own are judged.
ALONE = frozenset({"stranger"})


@dataclass(frozen=True)
class Bank:
    """`vectors[p, t]` is phrase p in template t; `group[p]` its class, or -1 for what is never shown."""

    phrases: tuple[str, ...]
    vectors: Floats
    group: NDArray[np.int64]
    names: tuple[str, ...]
    kind_rows: dict[str, frozenset[int]]
    only_kinds: frozenset[int]

    def truth(self, label: str, kind: str | None) -> tuple[Floats, Floats]:
        """Targets and weights over all phrases for an image of this class and kind.

        A phrase of the image's class that speaks of a known kind is true of a rendered image of that kind, false of
        rendered images of other kinds that have such phrases, and counts half where nothing is known.
        """
        own = self.group == self.names.index(label)
        target = own.astype(np.float32)
        weight = np.ones_like(target)
        specific = np.zeros(len(own), dtype=bool)
        specific[list(self.only_kinds)] = True
        if kind is not None and kind in self.kind_rows:
            true_here = np.zeros(len(own), dtype=bool)
            true_here[list(self.kind_rows[kind])] = True
            target[own & specific & ~true_here] = 0.0
            target[true_here] = 1.0
            if kind in ALONE:
                target[own & ~true_here] = 0.0
                weight[own & ~true_here] = 0.0
                return target, weight
            # That a passport is not "a driver's licence" matters less than that it is an identity document.
            weight[own & specific & ~true_here] = 0.3
        else:
            weight[own & specific] = 0.5
        return target, weight


def embed(texts: list[str], cache: Path | None) -> Floats:
    """Embed all texts, or take them from the cache."""
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
    file = cache / f"phrases-{digest}.npy" if cache else None
    if file and file.exists():
        stored: Floats = np.load(file)
        return stored
    vectors = TextTower().embed(texts)
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, vectors)
    return vectors


def build(phrases: Phrases, cache: Path | None = None) -> Bank:
    """All phrases in all templates."""
    names = phrases.names
    rows: dict[str, int] = {}
    group: list[int] = []
    for index, name in enumerate(names):
        for phrase in phrases.classes[name]:
            if phrase not in rows:
                rows[phrase] = len(group)
                group.append(index)
    for kind, label in ((kind, KINDS[kind].label) for kind in phrases.kinds):
        for phrase in phrases.kinds[kind]:
            if phrase not in rows:
                rows[phrase] = len(group)
                group.append(names.index(label))
    for phrase in phrases.distractors:
        rows[phrase] = len(group)
        group.append(DISTRACTOR)
    kind_rows = {kind: frozenset(rows[phrase] for phrase in listed) for kind, listed in phrases.kinds.items()}
    texts = [filled(template, phrase) for phrase in rows for template in phrases.templates]
    unique = sorted(set(texts), key=lambda text: (len(text), text))
    vectors = embed(unique, cache)
    place = {text: index for index, text in enumerate(unique)}
    stacked = vectors[[place[text] for text in texts]].reshape(len(rows), len(phrases.templates), -1)
    return Bank(
        phrases=tuple(rows),
        vectors=stacked,
        group=np.array(group),
        names=names,
        kind_rows=kind_rows,
        only_kinds=frozenset().union(*kind_rows.values()),
    )
