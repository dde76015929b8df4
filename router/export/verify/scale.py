"""Logit scale and bias of a manifest beside the checkpoint's: they make probabilities of cosines, and no vector shows
them."""

from __future__ import annotations

import math

from router.export.verify.report import Finding
from router.packs.manifest import VisionTower

# How far a pair's logit may be off. A probability moves by a quarter of that at most.
LOGIT_TOLERANCE = 1e-3


def scale_findings(tower: VisionTower, expected: tuple[float, float] | None) -> list[Finding]:
    """A finding when a pair's logit would differ; `expected` is the reference's scale and bias, None for none."""
    if expected is None:
        return []
    scale, bias = expected
    # A cosine is 1 at most, so that this bounds the difference of any pair's logit.
    off = abs(tower.logit_scale - scale) + abs(tower.logit_bias - bias)
    if off <= LOGIT_TOLERANCE:
        return []
    detail = (
        f"logit_scale is {tower.logit_scale:.6g} and logit_bias {tower.logit_bias:.6g}, "
        f"the reference has {scale:.6g} and {bias:.6g}"
    )
    return [Finding("image", "scale and bias", _cause(tower, scale, bias), detail)]


def _cause(tower: VisionTower, scale: float, bias: float) -> str:
    if scale > 0 and math.isclose(tower.logit_scale, math.log(scale), abs_tol=LOGIT_TOLERANCE):
        return "the scale's logarithm instead of the scale"
    if math.isclose(tower.logit_bias, -bias, abs_tol=LOGIT_TOLERANCE) and abs(bias) > LOGIT_TOLERANCE:
        return "the bias's sign"
    return "other values"
