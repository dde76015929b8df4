"""Every kind of checkpoint that can be exported, verified as a user would: the pack against the folder it came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checkpoint_makers import Make

from router.export.verify.images import corpus_files
from router.export.verify.isolate import verify
from router.export.verify.report import Report
from router.export.verify.sources import find_reference
from router.export.verify.texts import TEXTS
from router.packs.store import read_pack

pytestmark = pytest.mark.slow

KINDS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], list[str]]] = {
    "siglip": ("siglip", (), {}, ["image", "text"]),
    "siglip2": ("siglip", (), {"gemma": True}, ["image", "text"]),
    "naflex": ("naflex", (), {}, ["image", "text"]),
    "multimodal": ("multimodal", (), {}, ["image", "text"]),
    "multimodal large": ("multimodal_large", (), {}, ["image", "text"]),
    "multimodal large as published": ("multimodal_large", ("large's",), {}, ["image", "text"]),
    "mean": ("sentence_encoder", ("bert", "mean"), {}, ["text"]),
    "cls": ("sentence_encoder", ("modernbert", "cls"), {}, ["text"]),
    "classifier": ("classifier", ("deberta-v2",), {}, ["classifier"]),
    "tokens": ("classifier", ("bert",), {"each_token": True}, ["classifier"]),
}


def report_of(checkpoint: Path, pack: Path, scratch: Path) -> Report:
    opened = read_pack(pack)
    reference = find_reference(opened, str(checkpoint), scratch, print)
    return verify(opened, reference, "", corpus_files(), TEXTS, lambda words: None)


@pytest.mark.parametrize("name", KINDS)
def test_what_is_exported_holds(made: Make, packed: Make, tmp_path: Path, name: str) -> None:
    maker, args, kwargs, sides = KINDS[name]
    report = report_of(made(maker, *args, **kwargs), packed(maker, *args, **kwargs), tmp_path)
    assert [str(finding) for finding in report.findings] == []
    assert report.holds
    assert [side.side for side in report.sides] == sides
    assert all(side.equal_inputs == len(side.rows) > 0 for side in report.sides)


def test_int8_after_smoothquant_holds_its_own_bound_on_a_model_with_outliers(
    made: Make, packed: Make, tmp_path: Path
) -> None:
    report = report_of(
        made("siglip", outliers=True), packed("siglip", outliers=True, precision="int8", allow_drift=True), tmp_path
    )
    assert {side.precision for side in report.sides} == {"int8"}
    assert all(finding.cause == "quantisation" for finding in report.findings)
