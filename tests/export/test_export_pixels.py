from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import checkpoint_makers as make
import numpy as np
import pytest
from PIL import Image

from router.export.errors import ExportError
from router.export.golden import draw
from router.export.images import read_preprocessing
from router.export.reference import ReferenceImages
from router.inference.patches import PatchPreprocessor, fitting_size
from router.inference.preprocess import Preprocessor
from router.packs.manifest import PatchGrid, VisionGolden, VisionTower
from router.packs.parts import PackFile

SIZES = ((640, 480), (48, 48), (31, 77), (300, 20), (224, 224), (1, 1), (999, 1000))


def tower(folder: Path, size: int, grid: PatchGrid | None = None) -> VisionTower:
    found = read_preprocessing(folder, size, grid)
    return VisionTower(
        graph=PackFile(path="g", sha256="0" * 64), precision="fp32", input="pixel_values", output="o", dimension=1,
        size=found.size, patches=grid, resample=found.resample, mean=found.mean, std=found.std, rescale=found.rescale,
        logit_scale=1.0, logit_bias=0.0,
        golden=VisionGolden(path="v", sha256="0" * 64, images=("i",), min_cosine=0.5),
    )  # fmt: skip


def images() -> list[Image.Image]:
    found = [draw(index, (320, 240)).resize(size) for index, size in enumerate(SIZES)]
    jpeg = io.BytesIO()
    found[0].save(jpeg, "JPEG", quality=60)
    levels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    return [*found, Image.open(jpeg).convert("RGB"), Image.fromarray(np.stack([levels] * 3, axis=-1))]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_mean": ["a", "b", "c"]}, "three finite numbers"),
        ({"image_mean": [float("nan"), 1, 1]}, "three finite numbers"),
        ({"image_mean": [1, 2]}, "three finite numbers"),
        ({"image_mean": "x"}, "three finite numbers"),
        ({"image_std": [0.5, 0, 0.5]}, "is not above nought"),
        ({"rescale_factor": "x"}, "is no finite number"),
        ({"resample": []}, r"resample \[\] is none of"),
        ({"resample": 9}, "resample 9 is none of"),
    ],
)
def test_numbers_that_are_none_are_named_with_their_file(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    make.write_json(tmp_path / "preprocessor_config.json", make.siglip_pixels(48) | change)
    with pytest.raises(ExportError, match=rf"preprocessor_config\.json: .*{message}"):
        read_preprocessing(tmp_path, 48)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"resample": 2},
        {"resample": 1},
        {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]},
        {"rescale_factor": 1 / 127.5},
        {"do_normalize": False},
    ],
)
def test_pixels_are_the_reference_processors_to_the_bit(tmp_path: Path, change: dict[str, Any]) -> None:
    make.write_json(tmp_path / "preprocessor_config.json", make.siglip_pixels(48) | change)
    ours = Preprocessor(tower(tmp_path, 48))
    theirs = ReferenceImages(read_preprocessing(tmp_path, 48), None)
    for image in images():
        found = ours.feed(ours.resize(image)[None])["pixel_values"]
        assert np.array_equal(found, theirs.feed(image)["pixel_values"])


def test_the_processor_that_the_configuration_names_gives_the_same_pixels(tmp_path: Path) -> None:
    import transformers

    make.write_json(tmp_path / "preprocessor_config.json", make.siglip_pixels(48))
    with make.quiet():
        reference = transformers.AutoImageProcessor.from_pretrained(tmp_path, backend="pil")
    ours = Preprocessor(tower(tmp_path, 48))
    for image in images():
        with make.quiet():
            expected = reference(images=image, return_tensors="np")["pixel_values"]
        assert np.array_equal(ours.feed(ours.resize(image)[None])["pixel_values"], expected)


def test_patches_are_the_reference_processors_to_the_bit(tmp_path: Path) -> None:
    grid = PatchGrid(patch=16, max_patches=36)
    pixels = make.siglip_pixels(0) | {"resample": 2}
    del pixels["size"]
    make.write_json(tmp_path / "preprocessor_config.json", pixels)
    ours = PatchPreprocessor(tower(tmp_path, 96, grid), grid)
    theirs = ReferenceImages(read_preprocessing(tmp_path, 96, grid), grid)
    for image in images():
        found, expected = ours.feed(ours.resize(image)[None]), theirs.feed(image)
        assert found.keys() == expected.keys()
        for name in found:
            assert np.array_equal(found[name], expected[name])


@pytest.mark.parametrize("grid", [PatchGrid(patch=16, max_patches=256), PatchGrid(patch=14, max_patches=100)])
def test_an_images_shape_fits_as_the_reference_makes_it_fit(grid: PatchGrid) -> None:
    from transformers.models.siglip2.image_processing_pil_siglip2 import get_image_size_for_max_num_patches

    random = np.random.default_rng(3)
    for height, width in random.integers(1, 5000, (200, 2)).tolist():
        expected = get_image_size_for_max_num_patches(height, width, grid.patch, grid.max_patches)
        assert fitting_size(height, width, grid) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": {"shortest_edge": 48}}, "shortest edge is not supported"),
        ({"do_center_crop": True}, "crops, pads or does not resize"),
        ({"resample": 5}, "resample 5"),
        ({"size": {"height": 32, "width": 32}}, "the vision tower takes 48 x 48"),
        ({"image_mean": [0.5, 0.5]}, "three finite numbers"),
    ],
)
def test_preprocessing_that_would_not_be_served_exactly_is_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    make.write_json(tmp_path / "preprocessor_config.json", make.siglip_pixels(48) | change)
    with pytest.raises(ExportError, match=message):
        read_preprocessing(tmp_path, 48)
