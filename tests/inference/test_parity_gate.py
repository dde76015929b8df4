from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from router.inference.cache import EmbeddingCache
from router.inference.executor import InferenceExecutor
from router.inference.gate import Miss, check_encoders, check_text, check_vision
from router.inference.open import open_encoders, open_text_model, open_vision_model
from router.packs.files import PackError
from router.packs.store import Pack, open_pack
from router.request.images import ImageLimits

Vectors = dict[str, Any]


async def test_both_towers_pass_as_they_are(
    text_pack: Pack, vision_pack: Pack, executor: InferenceExecutor, cache: EmbeddingCache, weights: Path
) -> None:
    encoders = open_encoders(text_pack, vision_pack, executor, cache, ImageLimits(), weights=weights)
    assert check_encoders(encoders) == []


def _rewrite(folder: Path, tower: str, path: str, data: bytes) -> None:
    """Replace a file and make the manifest agree, as somebody who changes a pack would."""
    (folder / path).write_bytes(data)
    manifest = yaml.safe_load((folder / "pack.yaml").read_text())
    for entry in manifest[tower].values():
        if isinstance(entry, dict) and entry.get("path") == path:
            entry["sha256"] = hashlib.sha256(data).hexdigest()
    (folder / "pack.yaml").write_text(yaml.safe_dump(manifest))


def _text_misses(text_pack: Pack, weights: Path, folder: Path, change: Callable[[Vectors], None]) -> list[Miss]:
    shutil.copytree(text_pack.folder, folder)
    vectors = json.loads((folder / "golden/text.json").read_text())
    change(vectors)
    _rewrite(folder, "text", "golden/text.json", json.dumps(vectors).encode())
    pack = open_pack(str(folder), "text", folder)
    return check_text(pack, open_text_model(pack, weights))


def _turn(vectors: Vectors) -> None:
    vectors["embeddings"][2] = vectors["embeddings"][1]


def _other_ids(vectors: Vectors) -> None:
    vectors["token_ids"][1] = [101, 2073, 102]
    vectors["embeddings"][1] = vectors["embeddings"][0]


def _nan(vectors: Vectors) -> None:
    vectors["embeddings"][3][0] = float("nan")


def _short(vectors: Vectors) -> None:
    vectors["embeddings"].pop()


def _narrow(vectors: Vectors) -> None:
    vectors["embeddings"] = [row[:10] for row in vectors["embeddings"]]


def _nothing(vectors: Vectors) -> None:
    vectors.update(texts=[], token_ids=[], embeddings=[])


def _no_key(vectors: Vectors) -> None:
    del vectors["token_ids"]


@pytest.mark.parametrize(
    ("change", "stages"),
    [
        (_turn, ["embeddings"]),
        (_other_ids, ["tokens", "embeddings"]),
        (_nan, ["golden"]),
        (_short, ["golden"]),
        (_narrow, ["golden"]),
        (_nothing, ["golden"]),
        (_no_key, ["golden"]),
    ],
)
def test_a_text_tower_that_differs_is_caught(
    text_pack: Pack, weights: Path, tmp_path: Path, change: Callable[[Vectors], None], stages: list[str]
) -> None:
    misses = _text_misses(text_pack, weights, tmp_path / "pack", change)
    assert [miss.stage for miss in misses] == stages
    assert all(miss.pack == "starter-text" and miss.detail for miss in misses)


def test_a_miss_shows_no_content(text_pack: Pack, weights: Path, tmp_path: Path) -> None:
    def change(vectors: Vectors) -> None:
        vectors["texts"][1] = "a secret sentence"

    misses = _text_misses(text_pack, weights, tmp_path / "pack", change)
    assert [miss.stage for miss in misses] == ["tokens"]
    assert "secret" not in str(misses)


def _png(change: Callable[[Image.Image], Image.Image]) -> Callable[[bytes], bytes]:
    def rewrite(data: bytes) -> bytes:
        out = io.BytesIO()
        with Image.open(io.BytesIO(data)) as image:
            change(image).save(out, "PNG")
        return out.getvalue()

    return rewrite


@pytest.mark.parametrize(
    ("change", "stages"),
    [
        (_png(lambda image: image), []),
        (_png(lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)), ["pixels"]),
        (_png(lambda image: image.point(lambda level: min(level + 1, 255))), ["pixels"]),
        (lambda data: data[:100], ["golden"]),
    ],
)
def test_other_pixels_are_caught(
    vision_folder: Path, tmp_path: Path, change: Callable[[bytes], bytes], stages: list[str]
) -> None:
    folder = tmp_path / "pack"
    shutil.copytree(vision_folder, folder)
    image = folder / "golden/0.png"
    image.write_bytes(change(image.read_bytes()))
    pack = open_pack(str(folder), "vision", folder)
    assert [miss.stage for miss in check_vision(pack, open_vision_model(pack, ImageLimits()))] == stages


def _without(name: str) -> Callable[[Vectors], Vectors]:
    return lambda vectors: {key: value for key, value in vectors.items() if key != name}


@pytest.mark.parametrize(
    ("change", "stages"),
    [
        (lambda vectors: {**vectors, "embeddings": np.roll(vectors["embeddings"], 1, axis=0)}, ["embeddings"] * 5),
        (lambda vectors: {**vectors, "pixels": vectors["pixels"][:, ::-1]}, ["pixels"] * 5 + ["embeddings"] * 5),
        (lambda vectors: {**vectors, "pixels": vectors["pixels"].transpose(0, 2, 1, 3)}, ["golden"]),
        (_without("pixels"), ["golden"]),
        (_without("embeddings"), ["golden"]),
    ],
)
def test_a_vision_tower_that_differs_is_caught(
    vision_folder: Path, tmp_path: Path, change: Callable[[Vectors], Vectors], stages: list[str]
) -> None:
    folder = tmp_path / "pack"
    shutil.copytree(vision_folder, folder)
    with np.load(folder / "golden/vision.npz") as vectors:
        changed = change(dict(vectors))
    out = io.BytesIO()
    np.savez(out, **changed)
    _rewrite(folder, "vision", "golden/vision.npz", out.getvalue())
    pack = open_pack(str(folder), "vision", folder)
    assert [miss.stage for miss in check_vision(pack, open_vision_model(pack, ImageLimits()))] == stages


def test_golden_vectors_changed_after_the_pack_was_opened_are_caught(vision_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pack"
    shutil.copytree(vision_folder, folder)
    pack = open_pack(str(folder), "vision", folder)
    model = open_vision_model(pack, ImageLimits())
    (folder / "golden/vision.npz").write_bytes(b"other")
    assert [miss.stage for miss in check_vision(pack, model)] == ["golden"]


@pytest.mark.parametrize(("key", "value"), [("input", "pixels"), ("output", "pooler_output")])
def test_a_graph_with_other_tensors_than_the_manifest_names_does_not_open(
    vision_folder: Path, tmp_path: Path, key: str, value: str
) -> None:
    folder = tmp_path / "pack"
    shutil.copytree(vision_folder, folder)
    manifest = yaml.safe_load((folder / "pack.yaml").read_text())
    manifest["vision"][key] = value
    (folder / "pack.yaml").write_text(yaml.safe_dump(manifest))
    pack = open_pack(str(folder), "vision", folder)
    with pytest.raises(PackError, match=value):
        open_vision_model(pack, ImageLimits())


def test_a_graph_that_is_none_does_not_open(vision_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pack"
    shutil.copytree(vision_folder, folder)
    _rewrite(folder, "vision", "vision.onnx", b"no graph")
    pack = open_pack(str(folder), "vision", folder)
    with pytest.raises(PackError, match="cannot be loaded by ONNX Runtime"):
        open_vision_model(pack, ImageLimits())


async def test_golden_vectors_that_cannot_be_run_are_a_miss_and_no_crash(
    text_pack: Pack,
    executor: InferenceExecutor,
    cache: EmbeddingCache,
    weights: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoders = open_encoders(text_pack, None, executor, cache, ImageLimits(), weights=weights)
    monkeypatch.setattr("router.inference.gate.read_golden_texts", lambda *_: 1 / 0)
    [miss] = check_encoders(encoders)
    assert (miss.pack, miss.stage) == ("starter-text", "golden")
    assert "ZeroDivisionError" in miss.detail
