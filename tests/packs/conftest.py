from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

WEIGHTS = b"w" * 100_000
DISTRIBUTION = "pointsman-test-weights"
MODULE = "pointsman_test_weights"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_pack(folder: Path, change: Callable[[dict[str, Any]], None] = lambda manifest: None) -> Path:
    """A pack whose files are stand-ins: nothing in router.packs opens a model."""
    carried = {"graph.onnx": b"graph", "golden/text.json": b"{}", "tokenizer.json": b"tokenizer"}
    for path, data in carried.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)

    def file(path: str) -> dict[str, Any]:
        return {"path": path, "sha256": sha256(carried[path])}

    source = {"distribution": DISTRIBUTION, "path": f"{MODULE}/model.zip", "member": "weights.bin"}
    manifest: dict[str, Any] = {
        "format": 1,
        "name": "tiny",
        "licence": "Apache-2.0",
        "description": "stand-ins",
        "space": "tiny",
        "text": {
            "graph": file("graph.onnx"),
            "weights": [{"path": "weights.bin", "sha256": sha256(WEIGHTS), "source": source}],
            "tokenizer": file("tokenizer.json"),
            "precision": "fp32",
            "output": "text_embeds",
            "dimension": 4,
            "max_tokens": 16,
            "window_stride": 8,
            "pad_id": 0,
            "golden": {**file("golden/text.json"), "min_cosine": 0.99},
        },
    }
    change(manifest)
    (folder / "pack.yaml").write_text(yaml.safe_dump(manifest))
    return folder


def write_distribution(site: Path, weights: bytes = WEIGHTS) -> Path:
    """An installed distribution that must never be imported."""
    package = site / MODULE
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    with zipfile.ZipFile(package / "model.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("weights.bin", weights)
    info = site / f"{MODULE}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: 1.0\n")
    return site


@pytest.fixture
def pack_folder(tmp_path: Path) -> Path:
    return write_pack(tmp_path / "tiny")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = write_distribution(tmp_path / "site")
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def make_pack() -> Callable[..., Path]:
    return write_pack


@pytest.fixture
def make_distribution() -> Callable[..., Path]:
    return write_distribution
