"""What every renderer draws with: seeded chance, faces, colours, gradients, noise, and text that fits."""

from __future__ import annotations

import colorsys
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from .fonts import Face, Fonts

Colour = tuple[int, int, int]
Floats = NDArray[np.float64]
T = TypeVar("T")


@dataclass
class Art:
    """One picture's chance and material. Same seed and fonts, same picture."""

    rng: random.Random
    fonts: Fonts
    portraits: Sequence[Image.Image] = ()
    grain: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.grain = np.random.default_rng(self.rng.getrandbits(64))

    def chance(self, share: float) -> bool:
        """True in this share of draws."""
        return self.rng.random() < share

    def pick(self, choices: Sequence[T]) -> T:
        """One of these, each as likely."""
        return self.rng.choice(choices)

    def between(self, low: float, high: float) -> float:
        """A real number in the range."""
        return self.rng.uniform(low, high)

    def whole(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return self.rng.randint(low, high)

    def sans(self) -> Face:
        """A face without serifs."""
        return self.fonts.pick("sans", self.rng)

    def bold(self) -> Face:
        """A bold face."""
        return self.fonts.pick("bold", self.rng)

    def serif(self) -> Face:
        """A face with serifs."""
        return self.fonts.pick("serif", self.rng)

    def mono(self) -> Face:
        """A face for code; see `Face.fixed`."""
        return self.fonts.pick("mono", self.rng)

    def hand(self) -> Face:
        """A face like handwriting where one is installed."""
        return self.fonts.pick("hand", self.rng)

    def print_face(self) -> Face:
        """A face as books or reports have them."""
        return self.serif() if self.chance(0.5) else self.sans()

    def colour(self, saturation: tuple[float, float] = (0.2, 0.9), value: tuple[float, float] = (0.2, 0.95)) -> Colour:
        """Any hue, within these bounds."""
        return hsv(self.rng.random(), self.between(*saturation), self.between(*value))

    def pale(self) -> Colour:
        """A colour to write on."""
        return self.colour((0.03, 0.25), (0.85, 1.0))

    def dark(self) -> Colour:
        """A colour to write with."""
        return self.colour((0.2, 0.9), (0.1, 0.45))

    def vivid(self) -> Colour:
        """A colour that stands out."""
        return self.colour((0.5, 1.0), (0.5, 1.0))

    def digits(self, count: int) -> str:
        """So many digits."""
        return "".join(self.rng.choice("0123456789") for _ in range(count))

    def letters(self, count: int) -> str:
        """So many capitals, without those that look like digits."""
        return "".join(self.rng.choice("ABCDEFGHJKLMNPRSTUVWXYZ") for _ in range(count))

    def code(self, count: int) -> str:
        """So many capitals and digits."""
        return "".join(self.rng.choice("ABCDEFGHJKLMNPRSTUVWXYZ0123456789") for _ in range(count))

    def date(self, first: int = 1950, last: int = 2034) -> tuple[int, int, int]:
        """Year, month and day that exist in every year."""
        return self.whole(first, last), self.whole(1, 12), self.whole(1, 28)


def hsv(hue: float, saturation: float, value: float) -> Colour:
    """Hue wraps around, the other two are clipped."""
    r, g, b = colorsys.hsv_to_rgb(hue % 1.0, min(1.0, max(0.0, saturation)), min(1.0, max(0.0, value)))
    return round(r * 255), round(g * 255), round(b * 255)


def mix(a: Colour, b: Colour, share: float) -> Colour:
    """From the first colour (0) to the second (1)."""
    r, g, bl = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return r, g, bl


def shade(colour: Colour, factor: float) -> Colour:
    """Darker below 1, lighter above."""
    r, g, b = (min(255, max(0, round(c * factor))) for c in colour)
    return r, g, b


def luminance(colour: Colour) -> float:
    """How bright the eye sees it, 0 to 1."""
    return (0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]) / 255


def to_image(values: NDArray[np.floating]) -> Image.Image:
    """Clip to bytes."""
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def gradient(size: tuple[int, int], first: Colour, second: Colour, angle: float = 90.0) -> Image.Image:
    """A linear gradient at an angle in degrees."""
    width, height = size
    y, x = np.mgrid[0:height, 0:width]
    radians = math.radians(angle)
    along = x / max(1, width) * math.cos(radians) + y / max(1, height) * math.sin(radians)
    low, high = float(along.min()), float(along.max())
    share = ((along - low) / max(1e-6, high - low))[..., None]
    return to_image(np.array(first) * (1 - share) + np.array(second) * share)


def clouds(
    size: tuple[int, int], grain: np.random.Generator, cells: int = 4, octaves: int = 4, fade: float = 0.5
) -> Floats:
    """Smooth noise between 0 and 1: random grids of growing fineness, enlarged and summed."""
    width, height = size
    total = np.zeros((height, width))
    weight = 1.0
    for octave in range(octaves):
        across = max(2, cells * 2**octave)
        down = max(2, round(across * height / width))
        grid = Image.fromarray(grain.random((down, across)).astype(np.float32))
        total += weight * np.asarray(grid.resize(size, Image.Resampling.BICUBIC))
        weight *= fade
    low, high = float(total.min()), float(total.max())
    scaled: Floats = (total - low) / max(1e-6, high - low)
    return scaled


def speckle(image: Image.Image, grain: np.random.Generator, strength: float) -> Image.Image:
    """Grey noise on all channels alike."""
    values = np.asarray(image).astype(np.float32)
    return to_image(values + grain.normal(0, strength, (*values.shape[:2], 1)))


def wrap(draw: ImageDraw.ImageDraw, text: str, face: Face, size: float, width: float) -> list[str]:
    """Break at spaces so that no line is wider than `width`."""
    lines: list[str] = []
    line = ""
    font = face.at(size)
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and draw.textlength(longer, font=font) > width:
            lines.append(line)
            line = word
        else:
            line = longer
    return [*lines, line] if line else lines


def fit(draw: ImageDraw.ImageDraw, text: str, face: Face, size: float, width: float) -> float:
    """The size, at most `size`, at which the text is no wider than `width`."""
    length = draw.textlength(text, font=face.at(size))
    return size if length <= width else max(5.0, size * width / length)


def text_within(
    draw: ImageDraw.ImageDraw,
    place: tuple[float, float],
    text: str,
    face: Face,
    size: float,
    width: float,
    fill: Colour,
    anchor: str | None = None,
) -> None:
    """Text in this size, or as much smaller as it takes to be no wider than `width`."""
    draw.text(place, text, font=face.at(fit(draw, text, face, size, width)), fill=fill, anchor=anchor)


def grid_text(
    draw: ImageDraw.ImageDraw, place: tuple[float, float], text: str, face: Face, size: float, cell: float, fill: Colour
) -> None:
    """Text on a fixed pitch, whatever the face."""
    font = face.at(size)
    x, y = place
    for index, letter in enumerate(text):
        if letter != " ":
            draw.text((x + (index + 0.5) * cell, y), letter, font=font, fill=fill, anchor="ma")


def shadowed(
    canvas: Image.Image, top: Image.Image, place: tuple[int, int], blur: float = 8, strength: int = 110, shift: int = 4
) -> None:
    """Paste an RGBA picture with a soft shadow below it."""
    mask = Image.new("L", canvas.size, 0)
    mask.paste(top.getchannel("A").point(lambda a: a * strength // 255), (place[0] + shift, place[1] + shift))
    mask = mask.filter(ImageFilter.GaussianBlur(blur))
    canvas.paste((0, 0, 0), (0, 0, *canvas.size), mask)
    canvas.paste(top, place, top)


def rounded(image: Image.Image, radius: float) -> Image.Image:
    """Cut the corners off; the result has alpha."""
    mask = Image.new("L", image.size, 0)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, image.width - 1, image.height - 1), radius, fill=255)
    result = image.convert("RGBA")
    result.putalpha(mask)
    return result
