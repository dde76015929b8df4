"""A vision tower of SigLIP's kind, tiny and seeded, and what its reference makes of an image file."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

HEIGHT, WIDTH, DIMENSION = 24, 32, 8


def photo(seed: int, file_format: str = "PNG", size: tuple[int, int] = (60, 40)) -> bytes:
    """An image file of smooth noise."""
    noise = np.random.default_rng(seed).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC).save(out, file_format)
    return out.getvalue()


def preprocess_by_hand(data: bytes) -> NDArray[np.uint8]:
    """What the reference does, without any of our code."""
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert("RGB").resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC))


def reference_embeddings(tower: Any, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    import torch

    scaled = (torch.from_numpy(pixels.copy()).permute(0, 3, 1, 2).float() - 127.5) / 127.5
    with torch.no_grad():
        rows: NDArray[np.float32] = tower(scaled).numpy()
    return rows
