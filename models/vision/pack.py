"""The finished pack as it lies on disk: preprocess as its manifest says, run its graph. Needs onnxruntime, no torch."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import yaml
from numpy.typing import NDArray
from PIL import Image, ImageOps

PACK = Path(__file__).parent.parent / "starter-vision"
RESAMPLE = {
    "bicubic": Image.Resampling.BICUBIC,
    "bilinear": Image.Resampling.BILINEAR,
    "lanczos": Image.Resampling.LANCZOS,
}


def sha256(file: Path) -> str:
    """The hash of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def rgb(file: Path) -> Image.Image:
    """Upright, alpha on white, three channels."""
    image = ImageOps.exif_transpose(Image.open(file))
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        over = image.convert("RGBA")
        image = Image.new("RGB", over.size, (255, 255, 255))
        image.paste(over, (0, 0), over)
    return image.convert("RGB")


@dataclass(frozen=True)
class Preprocessing:
    """Squash to `size`, then one table of 256 values a channel."""

    size: tuple[int, int]
    resample: Image.Resampling
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def pixels(self, image: Image.Image) -> NDArray[np.uint8]:
        """Resize."""
        return np.asarray(image.resize((self.size[1], self.size[0]), self.resample))

    def values(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The graph's input."""
        levels = np.arange(256, dtype=np.float32)
        tables = np.stack([(levels - np.float32(m)) / np.float32(s) for m, s in zip(self.mean, self.std, strict=True)])
        return np.ascontiguousarray(np.stack([tables[c][pixels[..., c]] for c in range(3)], axis=1))


class VisionPack:
    """Image files to unit vectors."""

    def __init__(self, folder: Path = PACK) -> None:
        self.folder = folder
        self.manifest: dict[str, Any] = yaml.safe_load((folder / "pack.yaml").read_text(encoding="utf-8"))["vision"]
        for entry in (self.manifest["graph"], *self.manifest["weights"], self.manifest["golden"]):
            if sha256(folder / entry["path"]) != entry["sha256"]:
                raise SystemExit(f"{entry['path']} is not the file that pack.yaml names")
        height, width = self.manifest["size"]
        self.preprocessing = Preprocessing(
            (height, width),
            RESAMPLE[self.manifest["resample"]],
            tuple(self.manifest["mean"]),
            tuple(self.manifest["std"]),
        )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(folder / self.manifest["graph"]["path"]), options, providers=["CPUExecutionProvider"]
        )

    def embed_pixels(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Run the graph on resized pixels."""
        feed = {self.manifest["input"]: self.preprocessing.values(pixels)}
        embeddings: NDArray[np.float32] = self._session.run([self.manifest["output"]], feed)[0]
        return embeddings

    def embed(self, files: Sequence[Path]) -> NDArray[np.float32]:
        """From files to vectors."""
        parts = []
        for start in range(0, len(files), 16):
            pixels = np.stack([self.preprocessing.pixels(rgb(file)) for file in files[start : start + 16]])
            parts.append(self.embed_pixels(pixels))
        return np.concatenate(parts)
