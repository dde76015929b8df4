"""Does an image of nothing known match nothing?

Every known class is asked for as a policy asks: by the first three of its phrases, the best of which decides, at a
half. The images are `models.rendering.unknown`'s, of kinds that training never draws, and the collection's ragbag.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.rendering import BUNDLED_FONT, FIRST_UNSEEN_SEED
from models.rendering.unknown import UNKNOWN, render_unknown

from .figures import Floats, interval, sigmoid
from .pack import VisionPack
from .phrases import Phrases
from .text import TextTower

RAGBAG = "other"
WORDS = 3
PER_KIND = 20


def unknown_images(pack: VisionPack, per_kind: int = PER_KIND) -> tuple[Floats, list[str]]:
    """Embeddings of the drawn ones, and their kinds."""
    kinds = [kind for kind in UNKNOWN for _ in range(per_kind)]
    seeds = list(range(FIRST_UNSEEN_SEED, FIRST_UNSEEN_SEED + per_kind)) * len(UNKNOWN)
    parts = []
    for kind, seed in zip(kinds, seeds, strict=True):
        pixels = pack.preprocessing.pixels(render_unknown(kind, seed, BUNDLED_FONT))
        parts.append(pack.embed_pixels(pixels[None]))
    return np.concatenate(parts), kinds


def concepts(phrases: Phrases, names: Sequence[str], tower: TextTower) -> Floats:
    """(classes, words, dimension) for every class but the ragbag."""
    return np.stack([tower.embed(phrases.classes[name][:WORDS]) for name in names if name != RAGBAG])


def matched(images: Floats, asked: Floats, scale: float, bias: float) -> Floats:
    """(images, classes): whether the best word of a class says yes, and 0 or 1."""
    cosines = np.einsum("id,cwd->icw", images, asked).max(-1)
    yes: Floats = (sigmoid(scale * cosines + bias) >= 0.5).astype(np.float32)
    return yes


def rejected(
    images: Floats, kinds: Sequence[str], asked: Floats, names: Sequence[str], scale: float, bias: float
) -> dict[str, Any]:
    """How many match nothing, by kind, and what the others match."""
    known = [name for name in names if name != RAGBAG]
    yes = matched(images, asked, scale, bias)
    nothing = yes.sum(1) == 0
    listed = np.array(kinds)
    counts = yes.sum(0).astype(int)
    return {
        "n": len(images),
        "match_nothing": float(nothing.mean()),
        "interval": interval(int(nothing.sum()), len(images)),
        "by_kind": {kind: float(nothing[listed == kind].mean()) for kind in dict.fromkeys(kinds)},
        "taken_for": {known[index]: int(counts[index]) for index in np.argsort(-counts) if counts[index]},
    }
