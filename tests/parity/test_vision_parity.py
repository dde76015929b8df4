"""The served starter vision tower against the PyTorch module it was trained as: files in, unit vectors out."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from models.rendering import FIRST_UNSEEN_SEED, KINDS, render
from router.inference.cache import EmbeddingCache
from router.inference.executor import InferenceExecutor
from router.inference.gate import check_vision
from router.inference.open import open_vision_model
from router.inference.vision import VisionEncoder
from router.inference.vision_model import VisionModel
from router.packs.files import inside
from router.packs.store import Pack, open_pack
from router.request.images import ImageLimits
from router.request.view import ImagePart

COSINE = 0.99999
IMAGES = 40
# Lossless and lossy, as clients send them.
FORMATS = (("PNG", {}), ("JPEG", {"quality": 90}), ("WEBP", {"quality": 85}), ("JPEG", {"quality": 60}))
Reference = Callable[[bytes], NDArray[np.float32]]


@pytest.fixture(scope="module")
def served() -> tuple[Pack, VisionModel]:
    pack = open_pack("starter", "vision", Path("/nowhere"))
    return pack, open_vision_model(pack, ImageLimits(frames=1_000))


@pytest.fixture(scope="module")
def reference(served: tuple[Pack, VisionModel]) -> Reference:
    """An image file's bytes to the module's unit vector, with Pillow and torch and none of our code."""
    import torch
    from safetensors.torch import load_file

    from models.vision.tower import MEAN, STD, Tower

    pack, _ = served
    assert pack.manifest.vision is not None
    (weights,) = pack.manifest.vision.weights
    tower = Tower()
    missing, unexpected = tower.load_state_dict(load_file(inside(pack.folder, weights.path)), strict=False)
    assert unexpected == []
    assert all(name.endswith("num_batches_tracked") for name in missing)
    tower.eval()
    height, width = pack.manifest.vision.size

    def embed(data: bytes) -> NDArray[np.float32]:
        with Image.open(io.BytesIO(data)) as image:
            pixels = np.asarray(image.convert("RGB").resize((width, height), Image.Resampling.BICUBIC)).copy()
        scaled = (torch.from_numpy(pixels).permute(2, 0, 1).float() - MEAN) / STD
        with torch.no_grad():
            row: NDArray[np.float32] = tower(scaled[None])[0].numpy()
        return row

    return embed


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Forty image files of every kind that the project renders, from seeds that training never saw."""
    folder = tmp_path_factory.mktemp("images")
    kinds = sorted(KINDS)
    written = []
    for index in range(IMAGES):
        file_format, options = FORMATS[index % len(FORMATS)]
        path = folder / f"{index}.{file_format.lower()}"
        render(kinds[index % len(kinds)], FIRST_UNSEEN_SEED + index).save(path, file_format, **options)
        written.append(path)
    return written


@pytest.fixture
async def encoder(served: tuple[Pack, VisionModel]) -> AsyncIterator[VisionEncoder]:
    executor = InferenceExecutor(threads=2, queue=64)
    yield VisionEncoder(*served, executor, EmbeddingCache(1 << 22))
    executor.close()


async def test_forty_files_mean_what_they_mean_to_the_module(
    encoder: VisionEncoder, reference: Reference, files: list[Path]
) -> None:
    assert len(files) == IMAGES
    cosines = {}
    for path in files:
        data = path.read_bytes()
        ours = (await encoder.embed(ImagePart("/messages/0/content/0", "inline", data))).astype(np.float64)
        theirs = reference(data).astype(np.float64)
        cosines[path.name] = float(ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs))
    assert {name: cosine for name, cosine in cosines.items() if cosine < COSINE} == {}


async def test_a_camera_sized_jpeg_decoded_small_means_nearly_the_same(
    encoder: VisionEncoder, reference: Reference
) -> None:
    for index, kind in enumerate(("passport", "chest_radiograph", "car", "code", "receipt", "landscape")):
        image = render(kind, FIRST_UNSEEN_SEED + index)
        scale = 4_000 / max(image.size)
        out = io.BytesIO()
        image.resize((int(image.width * scale), int(image.height * scale))).save(out, "JPEG", quality=88)
        ours = await encoder.embed(ImagePart("/messages/0/content/0", "inline", out.getvalue()))
        assert float(ours @ reference(out.getvalue())) > 0.995


def test_the_pack_passes_its_own_gate(served: tuple[Pack, VisionModel]) -> None:
    assert check_vision(*served) == []


def test_both_starter_towers_share_one_space(served: tuple[Pack, VisionModel]) -> None:
    pack, _ = served
    text = open_pack("starter", "text", Path("/nowhere"))
    assert pack.manifest.space == text.manifest.space
    assert pack.manifest.vision is not None
    assert text.manifest.text is not None
    assert pack.manifest.vision.dimension == text.manifest.text.dimension
