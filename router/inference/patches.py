"""Pixels for a tower that takes any aspect ratio (SigLIP2 NaFlex): resized in the image's own shape, cut into squares.

The sizes follow the reference image processor, whose search for the largest scale that fits is repeated here step by
step: a size that differs by one patch is another input.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from router.inference.preprocess import RESAMPLE, level_table
from router.packs.manifest import PatchGrid, VisionTower

INPUTS = ("pixel_values", "pixel_attention_mask", "spatial_shapes")
# Bounds and precision of the reference's search for the scale.
_LEAST_SCALE, _GREATEST_SCALE, _PRECISION = 1e-6, 100.0, 1e-5


class PatchPreprocessor:
    """Resizes, cuts and normalises for one tower; safe in several threads."""

    inputs = INPUTS

    def __init__(self, tower: VisionTower, grid: PatchGrid) -> None:
        self._grid = grid
        self._resample = RESAMPLE[tower.resample]
        self._table = level_table(tower)

    def resize(self, image: Image.Image) -> NDArray[np.uint8]:
        """An RGB image as (height, width, 3) uint8, both multiples of the patch; raises ValueError for another mode."""
        if image.mode != "RGB":
            raise ValueError(f"an RGB image is expected, not {image.mode}")
        height, width = fitting_size(image.height, image.width, self._grid)
        return np.asarray(image.resize((width, height), self._resample))

    def feed(self, pixels: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """What the graph takes for (n, height, width, 3) uint8; raises ValueError for another shape."""
        side = self._grid.patch
        if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[3] != 3:
            raise ValueError(f"pixels are {pixels.dtype} {pixels.shape}, not uint8 (n, height, width, 3)")
        count, height, width, _ = pixels.shape
        rows, columns = height // side, width // side
        real = rows * columns
        if (rows * side, columns * side) != (height, width) or not 0 < real <= self._grid.max_patches:
            raise ValueError(f"{height} x {width} pixels are not up to {self._grid.max_patches} squares of {side}")
        values = np.stack([self._table[channel][pixels[..., channel]] for channel in range(3)], axis=-1)
        squares = values.reshape(count, rows, side, columns, side, 3).transpose(0, 1, 3, 2, 4, 5)
        patches = np.zeros((count, self._grid.max_patches, side * side * 3), dtype=np.float32)
        patches[:, :real] = squares.reshape(count, real, -1)
        mask = np.zeros((count, self._grid.max_patches), dtype=np.int64)
        mask[:, :real] = 1
        shapes = np.tile(np.array([rows, columns], dtype=np.int64), (count, 1))
        return dict(zip(INPUTS, (patches, mask, shapes), strict=True))


def fitting_size(height: int, width: int, grid: PatchGrid) -> tuple[int, int]:
    """Height and width in pixels of the largest size of about this shape that has at most `max_patches` patches."""

    def scaled(size: int, scale: float) -> int:
        return max(grid.patch, math.ceil(size * scale / grid.patch) * grid.patch)

    least, greatest = _LEAST_SCALE, _GREATEST_SCALE
    while greatest - least >= _PRECISION:
        scale = (least + greatest) / 2
        patches = scaled(height, scale) // grid.patch * (scaled(width, scale) // grid.patch)
        if patches <= grid.max_patches:
            least = scale
        else:
            greatest = scale
    return scaled(height, least), scaled(width, least)
