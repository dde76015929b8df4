"""How far apart two outputs are, and which fault brings the reference's nearest to the served ones.

A fault explains a drift as far as recomputing the reference with it takes the distance away. No model is opened here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from router.export.verify.pixels import PixelFault
from router.export.verify.reference import Feed, Floats, Ids, OutputFault
from router.export.verify.report import Finding, Side, Stage
from router.packs.manifest import TextTower, VisionTower

# Enough to tell faults apart; a base-size tower takes a third of a second for each input and fault.
EXPLAINED_INPUTS = 6
# Below this a fault is named as a guess only.
CONVINCING = 0.5
UNIT_TOLERANCE = 1e-3


def cosine(a: Floats, b: Floats) -> float:
    """Of two rows, in float64; -1 where it has no value, so that a NaN never passes."""
    x, y = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    if x.shape != y.shape:
        return -1.0
    value = float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y) or 1.0))
    return min(value, 1.0) if np.isfinite(value) else -1.0


def greatest_difference(a: Floats, b: Floats) -> float:
    """Of two arrays of probabilities; 1 where it has no value."""
    if a.shape != b.shape:
        return 1.0
    value = float(np.abs(a.astype(np.float64) - b).max())
    return value if np.isfinite(value) else 1.0


def explain_model(
    side: Side,
    cases: Sequence[tuple[Feed | Ids, Floats, Floats]],
    faults: Sequence[OutputFault],
    precision: str,
    how_many: str,
) -> Finding:
    """Which fault takes most of the distance between the served and the reference's rows away.

    A case is what went in, the served row and the reference's; `how_many` says how many drifted in all.
    """
    some = cases[:EXPLAINED_INPUTS]
    total = sum(_squared(served, expected) for _, served, expected in some)
    best: tuple[OutputFault | None, float] = (None, 0.0)
    for fault in faults:
        left = 0.0
        for given, served, _ in some:
            wrong = quietly(fault.outputs, given)
            left += np.inf if wrong is None or wrong.shape != served.shape else _squared(served, wrong)
        share = 1 - left / total if total else 0.0
        if share > best[1]:
            best = (fault, share)
    likeliest, share = best
    if precision != "fp32" and (likeliest is None or share < CONVINCING):
        return Finding(side, "model", "quantisation", f"{precision} loses more than the pack's bound allows", None)
    return finding_of(side, "model", likeliest, share, how_many)


def finding_of(
    side: Side, stage: Stage, fault: OutputFault | PixelFault | None, share: float, how_many: str
) -> Finding:
    """The finding for the likeliest fault; `share` is what it explains, `how_many` says over what."""
    if fault is None:
        return Finding(side, stage, "unknown", f"{how_many} differ; no known fault explains it")
    cause, detail = fault.cause, fault.detail
    if share < CONVINCING:
        return Finding(side, stage, "unknown", f"{how_many} differ; nearest is {cause}, {detail}", share)
    return Finding(side, stage, cause, f"{detail} ({how_many})", share)


def _squared(a: Floats, b: Floats) -> float:
    if a.shape != b.shape:
        return float("inf")
    x, y = a.astype(np.float64), b.astype(np.float64)
    return float(np.square(x / (np.linalg.norm(x) or 1.0) - y / (np.linalg.norm(y) or 1.0)).sum())


def quietly(forward: Callable[..., Floats], given: object) -> Floats | None:
    """None where one side cannot take what the other made, such as a longer sequence or a larger image."""
    try:
        return forward(given)
    except Exception:  # torch and ONNX Runtime raise a dozen unrelated types
        return None


def is_unit(row: Floats) -> bool:
    """Whether a row (1, d) has length 1."""
    return abs(float(np.linalg.norm(row)) - 1) < UNIT_TOLERANCE


def least_cosine(tower: VisionTower | TextTower) -> float:
    """The pack's bound over its golden inputs, or its exporter's over any inputs where that is lower: eight bits lose
    more on some inputs than on others."""
    least = tower.golden.min_cosine
    return min(least, tower.parity.gate) if tower.parity is not None else least
