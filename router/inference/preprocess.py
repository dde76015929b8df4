"""Pixels as a vision tower takes them: resized as its checkpoint says, then looked up in a table of 256 values.

The table does in float64 once what the reference does to every pixel. Decoding is `router.request.images`' business.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from router.packs.manifest import VisionTower

RESAMPLE = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


class Preprocessor:
    """Resizes and normalises for one tower; safe in several threads."""

    def __init__(self, tower: VisionTower) -> None:
        self._input = tower.input
        self._height, self._width = tower.size
        self._resample = RESAMPLE[tower.resample]
        self._table = level_table(tower)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the graph's inputs."""
        return (self._input,)

    def resize(self, image: Image.Image) -> NDArray[np.uint8]:
        """An RGB image as (height, width, 3) uint8; raises ValueError for another mode."""
        if image.mode != "RGB":
            raise ValueError(f"an RGB image is expected, not {image.mode}")
        return np.asarray(image.resize((self._width, self._height), self._resample))

    def feed(self, pixels: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """What the graph takes for (n, height, width, 3) uint8; raises ValueError for another shape."""
        return {self._input: self.normalise(pixels)}

    def normalise(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """(n, height, width, 3) uint8 to (n, 3, height, width) float32.

        Raises ValueError for another shape: the graph would fail late, or worse.
        """
        if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[1:] != (self._height, self._width, 3):
            raise ValueError(
                f"pixels are {pixels.dtype} {pixels.shape}, not uint8 (n, {self._height}, {self._width}, 3)"
            )
        out = np.empty((len(pixels), 3, self._height, self._width), dtype=np.float32)
        for channel in range(3):
            np.take(self._table[channel], pixels[..., channel], out=out[:, channel])
        return out


def level_table(tower: VisionTower) -> NDArray[np.float32]:
    """(3, 256): what each level of each channel becomes."""
    values: NDArray[np.float64] = np.arange(256, dtype=np.float64)[None]
    mean: NDArray[np.float64] = np.asarray(tower.mean, dtype=np.float64)[:, None]
    std: NDArray[np.float64] = np.asarray(tower.std, dtype=np.float64)[:, None]
    if tower.rescale is None:
        return ((values - mean) / std).astype(np.float32)
    scaled = (values * np.float64(tower.rescale)).astype(np.float32)
    return np.divide(scaled - mean.astype(np.float32), std.astype(np.float32), dtype=np.float32)
