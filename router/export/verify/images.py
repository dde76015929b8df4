"""Images to verify with: the corpus that comes with the project, or a folder; decoded here without the served code.

The decoding that serves is one of the things under test, so this one is written with Pillow's own means, and says what
it had to do before a reference could take the image.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from router.packs.files import open_regular

CORPUS = Path(__file__).parents[1] / "corpus" / "verify"
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp")
_ORIENTATION = 0x0112


@dataclass(frozen=True, slots=True)
class CorpusImage:
    """An image file. `upright` is its first frame, upright and opaque in RGB; `note` is what that took, if anything."""

    name: str
    data: bytes = field(repr=False)
    upright: Image.Image = field(repr=False)
    note: str = ""


class UnreadableError(Exception):
    """An image that Pillow cannot read; the message says why."""


def corpus_files() -> list[Path]:
    """The project's own twenty files."""
    return image_files(CORPUS)


def image_files(folder: Path) -> list[Path]:
    """Every image file in the folder and below it, sorted; hidden ones left out."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in SUFFIXES and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def read_image(path: Path, name: str) -> CorpusImage:
    """The image in this file; raises UnreadableError."""
    try:
        with open_regular(path) as file:
            data = file.read()
        with Image.open(io.BytesIO(data)) as image:
            upright, steps = decoded(image, Decoding())
    except Exception as error:  # Pillow's decoders raise whatever a file makes them stumble over
        raise UnreadableError(f"{name} cannot be read: {type(error).__name__}") from error
    return CorpusImage(name, data, upright, ", ".join(steps))


@dataclass(frozen=True, slots=True)
class Decoding:
    """What is done right, and what is left out on purpose to see whether it explains a drift.

    `room` is the width and height that a JPEG may be decoded down to.
    """

    turned: bool = True
    on_white: bool = True
    scaled: bool = True
    room: tuple[int, int] | None = None


def decoded(image: Image.Image, how: Decoding) -> tuple[Image.Image, list[str]]:
    """An opened image's first frame as RGB, and what that took; raises what Pillow raises."""
    steps: list[str] = []
    if getattr(image, "n_frames", 1) > 1:
        steps.append("first frame")
    orientation = image.getexif().get(_ORIENTATION, 1)
    if how.room is not None:
        image.draft(None, how.room)
    image.load()
    if image.mode.startswith("I") and how.scaled:
        steps.append("16 bits to 8")
        grey = np.asarray(image).astype(np.float64) * (255 / 65_535)
        image = Image.fromarray(np.rint(grey).astype(np.uint8))
    if image.has_transparency_data:
        steps.append(f"{image.mode} on white")
        layer = image.convert("RGBA")
        ground = Image.new("RGBA", layer.size, "white")
        image = (Image.alpha_composite(ground, layer) if how.on_white else layer).convert("RGB")
    if image.mode != "RGB":
        steps.append(f"{image.mode} to RGB")
        # Pillow takes no way from 16 bits to RGB; to eight bits it clips.
        image = (image.convert("L") if image.mode.startswith("I") else image).convert("RGB")
    if orientation not in (0, 1) and how.turned:
        steps.append("turned as EXIF says")
        image.getexif()[_ORIENTATION] = orientation
        image = ImageOps.exif_transpose(image)
    return image, steps
