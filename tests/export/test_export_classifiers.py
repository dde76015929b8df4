from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from checkpoint_makers import Make

from router.inference.classifier_model import ClassifierModel
from router.inference.gate import check_classifier
from router.inference.open import open_classifier_model
from router.packs.files import PackError
from router.packs.store import Pack, open_pack

HERE = Path("/nowhere")


def opened(folder: Path) -> tuple[Pack, ClassifierModel]:
    pack = open_pack(str(folder), "classifier", HERE)
    return pack, open_classifier_model(pack)


@pytest.fixture
def spoiled(packed: Make, tmp_path: Path) -> Callable[..., tuple[Pack, ClassifierModel]]:
    """The pack of a token classifier with its golden vectors changed, digests and all."""

    def spoil(change: Callable[[dict[str, Any]], None]) -> tuple[Pack, ClassifierModel]:
        folder = tmp_path / "pack"
        shutil.copytree(packed("classifier", "bert", each_token=True), folder)
        path = folder / "golden" / "classifier.json"
        vectors = json.loads(path.read_text())
        change(vectors)
        path.write_text(json.dumps(vectors))
        manifest = yaml.safe_load((folder / "pack.yaml").read_text())
        manifest["classifier"]["golden"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        (folder / "pack.yaml").write_text(yaml.safe_dump(manifest))
        return opened(folder)

    return spoil


def test_another_probability_is_a_miss(spoiled: Callable[..., tuple[Pack, ClassifierModel]]) -> None:
    def change(vectors: dict[str, Any]) -> None:
        vectors["probabilities"][1][0][0] += 0.01

    assert {(miss.stage, miss.detail.split(" has")[0]) for miss in check_classifier(*spoiled(change))} == {
        ("embeddings", "golden 1"),
        ("batch", "golden 1"),
    }


def test_another_token_id_is_a_miss(spoiled: Callable[..., tuple[Pack, ClassifierModel]]) -> None:
    def change(vectors: dict[str, Any]) -> None:
        vectors["token_ids"][3][1] += 1

    assert "tokens" in {miss.stage for miss in check_classifier(*spoiled(change))}


def test_golden_vectors_of_another_shape_are_a_miss(spoiled: Callable[..., tuple[Pack, ClassifierModel]]) -> None:
    def change(vectors: dict[str, Any]) -> None:
        del vectors["texts"][0]

    assert [miss.stage for miss in check_classifier(*spoiled(change))] == ["golden"]


def test_a_tampered_graph_does_not_open(packed: Make, tmp_path: Path) -> None:
    folder = tmp_path / "pack"
    shutil.copytree(packed("classifier", "bert"), folder)
    with (folder / "classifier.weights").open("r+b") as file:
        file.seek(100)
        file.write(b"\x01")
    with pytest.raises(PackError, match=r"classifier\.weights has sha256"):
        opened(folder)


def test_a_pack_of_a_classifier_is_no_encoder(packed: Make) -> None:
    with pytest.raises(PackError, match="has no text tower"):
        open_pack(str(packed("classifier", "bert")), "text", HERE)


def test_a_pack_of_encoders_is_no_classifier(packed: Make) -> None:
    with pytest.raises(PackError, match="has no classifier"):
        open_pack(str(packed("siglip")), "classifier", HERE)


def test_a_temperature_softens_and_keeps_the_order(packed: Make) -> None:
    _, model = opened(packed("classifier", "bert"))
    logits = np.array([[0.0, 2.0]], dtype=np.float32)
    plain = model.activate(logits)
    model.tower = model.tower.model_copy(update={"temperature": 2.0})
    soft = model.activate(logits)
    assert plain[0, 1] > soft[0, 1] > 0.5
    assert soft[0, 1] == pytest.approx(1 / (1 + np.exp(-1.0)))
    model.tower = model.tower.model_copy(update={"activation": "sigmoid", "temperature": 1.0})
    assert model.activate(logits)[0] == pytest.approx([0.5, 1 / (1 + np.exp(-2.0))])


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_text_is_judged_alike_alone_and_beside_others(packed: Make, precision: str) -> None:
    _, model = opened(packed("classifier", "modernbert", each_token=True, precision=precision))
    windows = [model.window(model.tokenise(text), 0) for text in ("a cat", "Maria is a patient in Springfield " * 8)]
    together = model.probabilities(windows)
    for window, rows in zip(windows, together, strict=True):
        assert np.allclose(model.probabilities([window])[0], rows[: len(window)], atol=1e-5)
