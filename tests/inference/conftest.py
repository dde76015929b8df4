from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tiny_tower import DIMENSION, HEIGHT, WIDTH, photo, preprocess_by_hand, reference_embeddings

from router.inference.cache import EmbeddingCache
from router.inference.executor import InferenceExecutor
from router.inference.open import open_text_model, open_vision_model
from router.inference.text_model import TextModel
from router.inference.vision_model import VisionModel
from router.packs.store import Pack, open_pack
from router.request.images import ImageLimits


@pytest.fixture
async def executor() -> Any:
    executor = InferenceExecutor(threads=2, queue=64)
    yield executor
    executor.close()


@pytest.fixture
def cache() -> EmbeddingCache:
    return EmbeddingCache(1 << 22)


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weights")


@pytest.fixture(scope="session")
def text_pack() -> Pack:
    return open_pack("starter", "text", Path("/nowhere"))


@pytest.fixture(scope="session")
def text_model(text_pack: Pack, weights: Path) -> TextModel:
    return open_text_model(text_pack, weights)


@pytest.fixture(scope="session")
def siglip_like() -> Any:
    """A vision tower of SigLIP's kind, tiny and seeded: patches, one block of attention, the attention pooling head."""
    import torch
    from torch import nn

    class Tower(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, 16, 8, 8)
            self.positions = nn.Parameter(torch.randn(1, 12, 16) * 0.1)
            self.probe = nn.Parameter(torch.randn(1, 1, 16))
            self.pool = nn.MultiheadAttention(16, 4, batch_first=True)
            self.norm = nn.LayerNorm(16)
            self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(approximate="tanh"), nn.Linear(32, 16))
            self.projection = nn.Linear(16, DIMENSION)

        def forward(self, pixel_values: Any) -> Any:
            tokens = self.patches(pixel_values).flatten(2).transpose(1, 2) + self.positions
            probe = self.probe.expand(tokens.shape[0], -1, -1)
            pooled = self.pool(probe, tokens, tokens, need_weights=False)[0]
            pooled = (pooled + self.mlp(self.norm(pooled)))[:, 0]
            return nn.functional.normalize(self.projection(pooled), dim=-1)

    torch.manual_seed(7)
    return Tower().eval()


@pytest.fixture(scope="session")
def vision_folder(siglip_like: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    folder = tmp_path_factory.mktemp("tiny-vision")
    (folder / "golden").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            siglip_like,
            (torch.zeros(2, 3, HEIGHT, WIDTH),),
            folder / "vision.onnx",
            dynamo=False,
            input_names=["pixel_values"],
            output_names=["image_embeds"],
            dynamic_axes={"pixel_values": {0: "n"}, "image_embeds": {0: "n"}},
        )
    siglip_like.eval()
    names = [f"golden/{index}.png" for index in range(5)]
    for index, name in enumerate(names):
        (folder / name).write_bytes(photo(index))
    pixels = np.stack([preprocess_by_hand((folder / name).read_bytes()) for name in names])
    np.savez(folder / "golden" / "vision.npz", pixels=pixels, embeddings=reference_embeddings(siglip_like, pixels))

    def file(path: str) -> dict[str, Any]:
        return {"path": path, "sha256": hashlib.sha256((folder / path).read_bytes()).hexdigest()}

    manifest = {
        "format": 1,
        "name": "tiny-vision",
        "licence": "Apache-2.0",
        "description": "A seeded tower for tests.",
        "space": "tiny",
        "vision": {
            "graph": file("vision.onnx"),
            "precision": "fp32",
            "input": "pixel_values",
            "output": "image_embeds",
            "dimension": DIMENSION,
            "size": [HEIGHT, WIDTH],
            "resample": "bicubic",
            "mean": [127.5] * 3,
            "std": [127.5] * 3,
            "logit_scale": 10.0,
            "logit_bias": -5.0,
            "golden": {**file("golden/vision.npz"), "images": names, "min_cosine": 0.99999},
        },
    }
    (folder / "pack.yaml").write_text(yaml.safe_dump(manifest))
    return folder


@pytest.fixture(scope="session")
def vision_pack(vision_folder: Path) -> Pack:
    return open_pack(str(vision_folder), "vision", Path("/nowhere"))


@pytest.fixture(scope="session")
def vision_model(vision_pack: Pack) -> VisionModel:
    return open_vision_model(vision_pack, ImageLimits())


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Counts what reaches a model's session: `counted(model)` gives the list of batch sizes."""

    def count(model: Any) -> list[int]:
        sizes: list[int] = []
        forward = model.forward

        def counting(batch: Any) -> Any:
            sizes.append(len(batch))
            return forward(batch)

        monkeypatch.setattr(model, "forward", counting)
        return sizes

    yield count
