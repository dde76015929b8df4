from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from router.inference.preprocess import Preprocessor
from router.packs.manifest import VisionTower
from router.packs.store import Pack


@pytest.fixture
def tower(vision_pack: Pack) -> VisionTower:
    assert vision_pack.manifest.vision is not None
    return vision_pack.manifest.vision


def test_every_value_of_every_channel_is_normalised_in_float64(tower: VisionTower) -> None:
    tower = tower.model_copy(update={"size": (16, 16), "mean": (127.0, 100.5, 90.0), "std": (128.0, 57.3, 60.0)})
    values = np.arange(256, dtype=np.uint8).reshape(16, 16)
    pixels = np.stack([values] * 3, axis=-1)[None]
    found = Preprocessor(tower).normalise(pixels)
    exact = (pixels.astype(np.float64) - tower.mean) / tower.std
    assert (found.shape, found.dtype) == ((1, 3, 16, 16), np.dtype(np.float32))
    assert np.array_equal(found, exact.astype(np.float32).transpose(0, 3, 1, 2))


@pytest.mark.parametrize("resample", ["nearest", "bilinear", "bicubic", "lanczos"])
def test_the_manifests_filter_resizes(tower: VisionTower, resample: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8)
    image = Image.fromarray(noise)
    found = Preprocessor(tower.model_copy(update={"resample": resample})).resize(image)
    assert np.array_equal(found, np.asarray(image.resize((32, 24), Image.Resampling[resample.upper()])))


@pytest.mark.parametrize("mode", ["L", "RGBA", "CMYK", "P"])
def test_only_rgb_is_taken(tower: VisionTower, mode: str) -> None:
    with pytest.raises(ValueError, match="an RGB image is expected"):
        Preprocessor(tower).resize(Image.new(mode, (9, 9)))


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((1, 32, 24, 3), np.uint8),
        np.zeros((24, 32, 3), np.uint8),
        np.zeros((1, 24, 32, 4), np.uint8),
        np.zeros((1, 24, 32, 3), np.float32),
        np.zeros((1, 3, 24, 32), np.uint8),
    ],
)
def test_another_shape_or_type_never_reaches_the_session(tower: VisionTower, pixels: np.ndarray) -> None:
    with pytest.raises(ValueError, match="pixels are"):
        Preprocessor(tower).normalise(pixels)


def test_height_comes_before_width(tower: VisionTower, vision_folder: Path) -> None:
    assert Preprocessor(tower).resize(Image.new("RGB", (5, 5))).shape == (24, 32, 3)
