"""What the parity gate's checks share: a miss, and the comparisons that find one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from router.inference.golden import Doubles, Floats, GoldenClasses, GoldenHeads, GoldenTexts
from router.inference.ledger import Saw, unseen
from router.inference.sessions import providers_of
from router.inference.text_model import WindowModel
from router.packs.heads import HeadsGolden
from router.packs.manifest import ClassifierGolden
from router.packs.parts import Precision

Stage = Literal["golden", "providers", "tokens", "pixels", "embeddings", "batch"]

TOGETHER: Final = 4
"""Golden inputs that are also run together, to see that neighbours and padding do not matter."""


@dataclass(frozen=True, slots=True)
class Miss:
    """One way in which a tower is not what its golden vectors say. `pack` is the pack's name."""

    pack: str
    stage: Stage
    detail: str

    def __str__(self) -> str:
        return f"pack {self.pack!r}, {self.stage}: {self.detail}"


def golden_tokens_miss(
    name: str, model: WindowModel, golden: GoldenTexts | GoldenClasses | GoldenHeads, index: int
) -> list[Miss]:
    """The miss of a golden text whose token ids differ, or nothing."""
    found = model.window(model.tokenise(golden.texts[index]), 0)
    if np.array_equal(found, golden.ids[index]):
        return []
    return [Miss(name, "tokens", f"golden text {index} has other token ids than the reference tokeniser")]


def equally_likely(
    name: str,
    stage: Stage,
    index: int,
    found: Doubles | Floats,
    reference: Doubles,
    golden: ClassifierGolden | HeadsGolden,
    saw: Saw = unseen,
    whose: str = "",
) -> list[Miss]:
    """The miss of probabilities, one or an array of them, that are off by too much, or nothing."""
    off = float(np.abs(found - reference).max()) if found.shape == reference.shape else np.inf
    saw(off)
    # Written so that a NaN is a miss.
    if off <= golden.max_difference:
        return []
    detail = f"{whose}golden {index} has a probability off by {off:.6f}, at most {golden.max_difference} is asked"
    return [Miss(name, stage, detail)]


def providers_miss(name: str, found: Sequence[str], precision: Precision) -> list[Miss]:
    """The miss of a session that runs on something else than was asked for, or nothing."""
    asked = providers_of(precision)
    # What another server runs a model on it does not say.
    if not found or tuple(found) == asked:
        return []
    return [Miss(name, "providers", f"runs on {', '.join(found)}, asked for {', '.join(asked)}")]


def near(
    name: str,
    stage: Stage,
    ours: Floats,
    reference: Floats,
    least: float,
    numbers: Sequence[int] | None = None,
    saw: Saw = unseen,
) -> list[Miss]:
    """The misses of embeddings that point elsewhere. `numbers` are what the rows are called, where that is not 0, 1,
    ..."""
    if ours.shape != reference.shape:
        return [Miss(name, stage, f"embeddings are {ours.shape}, the reference's {reference.shape}")]
    with np.errstate(divide="ignore", invalid="ignore"):
        lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(reference, axis=1)
        cosines = (ours.astype(np.float64) * reference).sum(axis=1) / lengths
    for cosine in cosines.tolist():
        saw(cosine)
    called = range(len(ours)) if numbers is None else numbers
    # Written so that a NaN is a miss.
    return [
        Miss(name, stage, f"golden {called[row]} has cosine {cosines[row]:.6f}, at least {least} is asked")
        for row in np.flatnonzero(~(cosines >= least)).tolist()
    ]
