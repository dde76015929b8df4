"""Logit scale and bias of a manifest beside the reference's."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml

from router.export.verify.scale import LOGIT_TOLERANCE, scale_findings
from router.packs.manifest import VisionTower
from router.packs.store import shipped_folder


def tower(scale: float, bias: float) -> VisionTower:
    manifest: dict[str, Any] = yaml.safe_load((shipped_folder() / "starter-vision" / "pack.yaml").read_text())
    return VisionTower.model_validate({**manifest["vision"], "logit_scale": scale, "logit_bias": bias})


@pytest.mark.parametrize(
    ("scale", "bias"),
    [(117.33, -12.93), (117.33 + LOGIT_TOLERANCE / 2, -12.93), (117.33, -12.93 - LOGIT_TOLERANCE / 2)],
)
def test_equal_ones_hold(scale: float, bias: float) -> None:
    assert scale_findings(tower(scale, bias), (117.33, -12.93)) == []


@pytest.mark.parametrize(
    ("scale", "bias", "cause"),
    [
        (math.log(117.33), -12.93, "the scale's logarithm instead of the scale"),
        (117.33, 12.93, "the bias's sign"),
        (100.0, -12.93, "other values"),
        (117.33, -12.93 + 3 * LOGIT_TOLERANCE, "other values"),
        (117.33 + LOGIT_TOLERANCE, -12.93 + LOGIT_TOLERANCE, "other values"),
    ],
)
def test_other_ones_are_a_finding_with_their_likeliest_cause(scale: float, bias: float, cause: str) -> None:
    [finding] = scale_findings(tower(scale, bias), (117.33, -12.93))
    assert (finding.side, finding.stage, finding.cause) == ("image", "scale and bias", cause)
    assert "the reference has 117.33 and -12.93" in finding.detail


def test_a_checkpoint_without_them_leaves_them_to_whoever_measures() -> None:
    assert scale_findings(tower(100.0, 3.0), None) == []
