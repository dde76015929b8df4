"""Images into which something was planted, and the same images without it.

The grounds are drawn ones, which `models.rendering` makes from seeds that training never sees, and real ones. What is
planted stands on a plate of its own, as a note, a label or a line of a terminal does, in letters that a person can
read: from 13 to 26 pixels high. Real images are collected as small ones, so that they are made larger first.
"""

from __future__ import annotations

import io
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PIL import Image, ImageDraw, ImageFont

from models.rendering import FIRST_UNSEEN_SEED, SYSTEM_FONTS, render
from models.rendering.fonts import AnyFont
from models.report.planted import KINDS, Planted, lines_of

DRAWN_GROUNDS: Final = (
    "code", "terminal", "interface", "document_page", "letter", "form", "invoice", "receipt", "table", "identity_card",
)  # fmt: skip
REAL_GROUNDS: Final = (
    "code_screenshot", "terminal_screenshot", "ui_screenshot", "document_page", "receipt_invoice", "table",
    "passport_or_id", "chart_plot", "product", "landscape",
)  # fmt: skip

LETTERS: Final = (13, 26)
"""Height of the type in pixels."""

_PLATES: Final = (((255, 255, 255), (20, 20, 20)), ((24, 26, 30), (226, 228, 230)), ((250, 246, 228), (40, 36, 90)))


@dataclass(frozen=True, slots=True)
class PlantedImage:
    """`data` is the file; `kind` says what was planted, None: nothing was."""

    name: str
    ground: str
    real: bool
    kind: Planted | None
    data: bytes

    @property
    def suffix(self) -> str:
        """Of a file with these bytes."""
        return ".png" if self.data.startswith(b"\x89PNG") else ".jpg"


def planted_images(dev: Path, count: int, seed: int) -> list[PlantedImage]:
    """`count` drawn and `count` real images with something planted, and every second ground as it was."""
    made = []
    for real in (False, True):
        for index in range(count):
            rng = random.Random(f"{seed}:{real}:{index}")
            name, ground = _real(dev, index, rng) if real else _drawn(index, seed)
            kind = KINDS[index % len(KINDS)]
            where = "real" if real else "drawn"
            if index % 2 == 0:
                made.append(PlantedImage(f"{where} {index}", name, real, None, _file(ground, rng)))
            planted = plant(ground, lines_of(kind, rng), rng)
            made.append(PlantedImage(f"{where} {index} {kind}", name, real, kind, _file(planted, rng)))
    return made


def plant(ground: Image.Image, lines: tuple[str, ...], rng: random.Random) -> Image.Image:
    """The image with these lines on a plate, somewhere; made larger where they would not fit."""
    size = rng.randint(*LETTERS)
    face = SYSTEM_FONTS.pick("mono" if max(map(len, lines)) < 70 and rng.random() < 0.7 else "sans", rng)
    if any("<<" in line for line in lines):
        face = SYSTEM_FONTS.pick(rng.choice(("ocr", "mono")), rng)
    font = face.at(size)
    rows = _wrapped(lines, rng)
    margin = size // 2
    wide = max(_width(row, font) for row in rows) + 2 * margin
    step = round(size * rng.uniform(1.25, 1.6))
    high = step * len(rows) + 2 * margin
    scale = max(1.0, 1.05 * wide / ground.width, 1.05 * high / ground.height)
    image = ground.convert("RGB").resize((round(ground.width * scale), round(ground.height * scale)))
    left, top = rng.randint(0, image.width - wide), rng.randint(0, image.height - high)
    paper, ink = rng.choice(_PLATES)
    draw = ImageDraw.Draw(image)
    draw.rectangle((left, top, left + wide, top + high), fill=paper)
    for index, row in enumerate(rows):
        draw.text((left + margin, top + margin + index * step), row, font=font, fill=ink)
    return image


def _wrapped(lines: tuple[str, ...], rng: random.Random) -> list[str]:
    """Sentences break between words; what has no blanks is cut where a terminal ends, one time in four."""
    rows = []
    for line in lines:
        if line.count(" ") > 5:
            words, row = line.split(), ""
            room = rng.randint(28, 60)
            for word in words:
                if row and len(row) + len(word) >= room:
                    rows.append(row)
                    row = ""
                row = f"{row} {word}".strip()
            rows.append(row)
        elif len(line) > 50 and "<" not in line and rng.random() < 0.25:
            rows += [line[:48], line[48:]]
        else:
            rows.append(line)
    return rows


def _width(row: str, font: AnyFont) -> int:
    return round(font.getlength(row)) if isinstance(font, ImageFont.FreeTypeFont) else 8 * len(row)


def _drawn(index: int, seed: int) -> tuple[str, Image.Image]:
    kind = DRAWN_GROUNDS[index % len(DRAWN_GROUNDS)]
    return kind, render(kind, FIRST_UNSEEN_SEED + seed + index)


def _real(dev: Path, index: int, rng: random.Random) -> tuple[str, Image.Image]:
    kind = REAL_GROUNDS[index % len(REAL_GROUNDS)]
    with Image.open(rng.choice(sorted((dev / kind).glob("*.jpg")))) as file:
        ground = file.convert("RGB")
    scale = rng.uniform(1.5, 3.5)
    return kind, ground.resize((round(ground.width * scale), round(ground.height * scale)), Image.Resampling.LANCZOS)


def _file(image: Image.Image, rng: random.Random) -> bytes:
    buffer = io.BytesIO()
    if rng.random() < 0.5:
        image.save(buffer, "PNG")
    else:
        image.save(buffer, "JPEG", quality=rng.randint(75, 95))
    return buffer.getvalue()
