"""Does the served graph mean what the PyTorch reference means, from image file to embedding?

    python -m models.vision.parity --images FOLDER [--count 60]

Loads the reference from the pack's own weights file, decodes and preprocesses each file on both paths, and prints the
smallest cosine. Exits 1 below the pack's bound.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import numpy as np
import torch

from .pack import PACK, VisionPack, rgb
from .tower import Tower
from .weights import averaged


def reference(pack: VisionPack) -> Tower:
    """The PyTorch tower with the pack's weights."""
    return averaged([pack.folder / pack.manifest["weights"][0]["path"]])


def compare(pack: VisionPack, files: list[Path]) -> tuple[float, float]:
    """Smallest cosine and largest difference over the files."""
    tower = reference(pack)
    mean, std = (torch.tensor(pack.manifest[name], dtype=torch.float32)[:, None, None] for name in ("mean", "std"))
    height, width = pack.manifest["size"]
    cosines, differences = [], []
    for file in files:
        pixels = np.asarray(rgb(file).resize((width, height), pack.preprocessing.resample))
        values = (torch.from_numpy(pixels.copy()).permute(2, 0, 1).float() - mean) / std
        with torch.no_grad():
            expected = tower(values[None]).numpy()[0].astype(np.float64)
        served = pack.embed([file])[0].astype(np.float64)
        cosines.append(float(expected @ served / np.linalg.norm(expected) / np.linalg.norm(served)))
        differences.append(float(np.abs(expected - served).max()))
    return min(cosines), max(differences)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True, help="searched for PNG and JPEG files")
    parser.add_argument("--pack", type=Path, default=PACK)
    parser.add_argument("--count", type=int, default=60)
    arguments = parser.parse_args()
    files = sorted(file for file in arguments.images.rglob("*") if file.suffix.lower() in (".png", ".jpg", ".jpeg"))
    files = random.Random(0).sample(files, min(arguments.count, len(files)))
    pack = VisionPack(arguments.pack)
    cosine, difference = compare(pack, files)
    bound = float(pack.manifest["golden"]["min_cosine"])
    print(f"{len(files)} files: smallest cosine {cosine:.9f} (bound {bound}), largest difference {difference:.2e}")
    raise SystemExit(0 if cosine >= bound else 1)


if __name__ == "__main__":
    main()
