"""Faults that are built into a pack on purpose: each is caught, at its stage, under its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_siglip import SIZE, character_tokenizer, mean_of_patches, write_checkpoint, write_pack

from router.export.verify.images import corpus_files
from router.export.verify.isolate import verify
from router.export.verify.report import Report
from router.export.verify.sources import find_reference
from router.export.verify.texts import TEXTS
from router.inference.preprocess import Preprocessor
from router.packs.store import read_pack

Verify = Callable[..., Report]


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoints") / "tiny")


@pytest.fixture
def verified(tmp_path: Path, checkpoint: Path) -> Verify:
    """`verified(of=checkpoint, **how)`: the report over a pack that `write_pack` makes so."""

    def run(of: Path = checkpoint, images: list[Path] | None = None, pictures: bool = False, **how: Any) -> Report:
        pack = read_pack(write_pack(of, tmp_path / "pack", **how))
        reference = find_reference(pack, str(of), tmp_path, print)
        files = corpus_files() if images is None else images
        return verify(pack, reference, "", files, TEXTS, lambda words: None, with_pictures=pictures)

    return run


def named(report: Report) -> list[tuple[str, str, str]]:
    return [(finding.side, finding.stage, finding.cause) for finding in report.findings]


def test_a_faithful_pack_holds_with_pixels_and_ids_equal_to_the_bit(verified: Verify) -> None:
    report = verified()
    assert report.findings == ()
    assert report.golden == ()
    assert report.holds
    image, text = report.sides
    assert (len(image.rows), image.equal_inputs, image.left_out) == (20, 20, ())
    assert (len(text.rows), text.equal_inputs) == (len(TEXTS), len(TEXTS))
    for side in report.sides:
        for stage in ("whole", "model", "preprocessing"):
            spread = side.spread(stage)  # type: ignore[arg-type]
            assert spread is not None
            assert 0.99999 <= spread.least <= spread.mean <= spread.greatest <= 1


def test_mean_pooling_instead_of_the_attention_head(verified: Verify) -> None:
    report = verified(choose=mean_of_patches)
    assert named(report) == [("image", "model", "pooling head")]
    (finding,) = report.findings
    assert finding.detail.startswith("mean of the patches instead of the attention head")
    assert finding.explained is not None
    assert finding.explained > 0.99
    image = report.sides[0]
    assert image.equal_inputs == 20
    assert any("cosine" in miss for miss in report.golden)


def _unnormalised(manifest: dict[str, Any]) -> None:
    manifest["vision"]["mean"], manifest["vision"]["std"] = [0.0] * 3, [1.0] * 3


def test_normalisation_left_out(verified: Verify) -> None:
    report = verified(manifest_change=_unnormalised)
    assert named(report) == [("image", "preprocessing", "normalisation")]
    (finding,) = report.findings
    assert finding.detail.startswith("left out: levels of 0-1 go in")
    assert all(row.model is not None and row.model >= 0.99999 for row in report.sides[0].rows)


def test_bilinear_without_antialias(verified: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    def resize(self: Preprocessor, image: Any) -> Any:
        tensor = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None].float()
        small = torch.nn.functional.interpolate(tensor, (SIZE, SIZE), mode="bilinear", align_corners=False)
        return small[0].permute(1, 2, 0).round().clamp(0, 255).to(torch.uint8).numpy()

    monkeypatch.setattr(Preprocessor, "resize", resize)
    report = verified()
    assert named(report) == [("image", "preprocessing", "resize filter")]
    assert report.findings[0].detail.startswith("bilinear without antialias")


def _filter(manifest: dict[str, Any]) -> None:
    manifest["vision"]["resample"] = "lanczos"


def test_another_resize_filter(verified: Verify) -> None:
    report = verified(manifest_change=_filter)
    assert named(report) == [("image", "preprocessing", "resize filter")]
    assert report.findings[0].detail.startswith("lanczos instead of bicubic")


def test_bgr_before_the_graph(verified: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    resize = Preprocessor.resize
    monkeypatch.setattr(Preprocessor, "resize", lambda self, image: resize(self, image)[..., ::-1])
    report = verified()
    assert named(report) == [("image", "preprocessing", "colour order")]


def _bgr(model: Any) -> None:
    weight = model.vision_model.embeddings.patch_embedding.weight
    weight.copy_(weight.flip(1))


def test_bgr_inside_the_graph(verified: Verify) -> None:
    report = verified(change=_bgr)
    assert named(report) == [("image", "model", "colour order")]


def _short(manifest: dict[str, Any]) -> None:
    manifest["text"]["max_tokens"], manifest["text"]["window_stride"] = 56, 28


def test_padding_to_another_length(verified: Verify) -> None:
    report = verified(manifest_change=_short)
    assert named(report) == [("text", "tokens", "padding")]
    assert "padded to 56 instead of 64" in report.findings[0].detail
    assert all(row.model is not None and row.model >= 0.99999 for row in report.sides[1].rows)


def _other_pad(manifest: dict[str, Any]) -> None:
    manifest["text"]["pad_id"] = 1


def test_padding_with_another_id(verified: Verify) -> None:
    report = verified(manifest_change=_other_pad)
    assert named(report) == [("text", "tokens", "padding")]
    assert "padded with id 1, the reference pads with id 0" in report.findings[0].detail


def test_a_tokeniser_that_keeps_capitals(verified: Verify) -> None:
    report = verified(tokenizer=character_tokenizer(lower=False))
    assert named(report) == [("text", "tokens", "tokeniser")]
    assert report.findings[0].detail.startswith("lower-casing is missing")


def _outliers(model: Any) -> None:
    for layer in model.vision_model.encoder.layers:
        for norm in (layer.layer_norm1, layer.layer_norm2):
            norm.weight[:2] *= 60


def test_int8_without_smoothquant_on_a_model_with_outliers(verified: Verify, tmp_path: Path) -> None:
    outlier = write_checkpoint(tmp_path / "outlier", _outliers)
    report = verified(of=outlier, int8=True, min_cosine=0.999)
    assert named(report) == [("image", "model", "quantisation")]
    (finding,) = report.findings
    assert finding.detail.startswith("int8 without SmoothQuant")
    assert finding.explained is not None
    assert finding.explained > 0.5


def _larger(manifest: dict[str, Any]) -> None:
    manifest["vision"]["size"] = [80, 80]


def test_another_resolution(verified: Verify) -> None:
    report = verified(manifest_change=_larger)
    assert named(report) == [("image", "preprocessing", "resolution")]
    assert report.findings[0].detail == "80 x 80 pixels instead of 64 x 64"


def test_without_a_reference_golden_vectors_alone_are_compared(tmp_path: Path, checkpoint: Path) -> None:
    pack = read_pack(write_pack(checkpoint, tmp_path / "pack", choose=mean_of_patches))
    report = verify(pack, None, "none at hand", [], (), lambda words: None)
    assert not report.holds
    assert report.sides == ()
    assert report.why_not == "none at hand"
    assert all("embeddings" in miss for miss in report.golden)
