"""Shorter embeddings of checkpoints that were trained for it: the first numbers, made a unit vector again.

Text and images must be shortened alike, so one dimension holds for both towers of a policy.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from router.packs.files import PackError, tower_of
from router.packs.manifest import TextTower, VisionTower
from router.packs.store import Pack


def require_dimension(pack: Pack, kind: Literal["text", "vision"], dimension: int) -> None:
    """Raises PackError unless this tower of the pack can give embeddings of this length."""
    tower = tower_of(pack.manifest, kind)
    assert isinstance(tower, TextTower | VisionTower)
    lengths = (tower.dimension, *tower.matryoshka)
    if dimension not in lengths:
        raise PackError(
            f"pack {pack.manifest.name!r} gives {kind} embeddings of {', '.join(map(str, lengths))} numbers, "
            f"not {dimension}"
        )


def shorten(row: NDArray[np.float32], dimension: int) -> NDArray[np.float32]:
    """A unit vector (d,) of the first `dimension` numbers; the row itself where it is as long."""
    if len(row) == dimension:
        return row
    head = row[:dimension]
    short: NDArray[np.float32] = head / np.linalg.norm(head)
    short.flags.writeable = False
    return short
