"""Photo-like scenes: skies, mountains, seas, streets with houses."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from .art import Art, Colour, clouds, gradient, mix, shade, to_image
from .looks import camera


def sky(art: Art, size: tuple[int, int]) -> Image.Image:
    """Day, dusk or night, with clouds."""
    top, low = art.pick(
        (
            ((70, 130, 200), (190, 220, 240)),
            ((40, 90, 170), (160, 200, 235)),
            ((90, 70, 110), (245, 170, 110)),
            ((30, 40, 80), (230, 120, 80)),
            ((150, 165, 180), (215, 220, 225)),
            ((20, 25, 50), (70, 80, 120)),
        )
    )
    base = np.asarray(gradient(size, top, low, 90)).astype(float)
    cloud = np.clip((clouds(size, art.grain, 3, 5) - art.between(0.45, 0.7)) * 3, 0, 1)[..., None]
    return to_image(base * (1 - 0.8 * cloud) + np.array(mix(low, (255, 255, 255), 0.6)) * 0.8 * cloud)


def _ridge(art: Art, width: int, rough: float) -> np.ndarray:
    line = np.zeros(width)
    for octave in range(6):
        points = art.grain.random(max(3, 3 * 2**octave))
        line += np.interp(np.linspace(0, len(points) - 1, width), np.arange(len(points)), points) * rough**octave
    scaled: np.ndarray = (line - line.min()) / max(1e-6, float(np.ptp(line)))
    return scaled


def landscape(art: Art) -> Image.Image:
    """Ridges one behind the other, trees, perhaps a lake."""
    size = art.pick(((720, 480), (760, 430), (600, 600), (500, 700)))
    width, height = size
    image = np.asarray(sky(art, size)).astype(float)
    y = np.mgrid[0:height, 0:width][0]
    haze = image[int(height * 0.45)].mean(0)
    horizon = height * art.between(0.4, 0.6)
    near = np.array(
        art.pick(((50, 85, 40), (90, 110, 50), (120, 100, 60), (60, 70, 50), (190, 165, 110), (235, 238, 242))),
        dtype=float,
    )
    layers = art.whole(2, 5)
    grain = clouds(size, art.grain, 24, 4, 0.65)
    for layer in range(layers):
        share = layer / max(1, layers - 1)
        ridge = (
            horizon
            - height * (0.28 * (1 - share) + 0.02) * _ridge(art, width, art.between(0.4, 0.6))
            + height * 0.12 * share
        )
        colour = haze * (1 - share) * 0.7 + near * (0.3 + 0.7 * share)
        snow = np.where((y < ridge + height * 0.06)[..., None] & (layer == 0) & art.chance(0.5), 60.0, 0.0)
        painted = colour[None, None] * (0.75 + 0.5 * grain[..., None]) + snow
        image = np.where((y > ridge)[..., None], painted, image)
    if art.chance(0.45):
        shore = int(height * art.between(0.62, 0.78))
        mirror = image[shore - (height - shore) : shore][::-1] if shore > height / 2 else image[: height - shore]
        ripple = (
            0.75
            + 0.15 * np.sin(np.arange(height - shore) / 2.3)[:, None, None]
            + 0.1 * clouds((width, height - shore), art.grain, 12, 3)[..., None]
        )
        image[shore:] = (mirror[: height - shore] * 0.6 + np.array((40, 80, 110)) * 0.4) * ripple
    picture = to_image(image)
    draw = ImageDraw.Draw(picture)
    if art.chance(0.6):
        for _ in range(art.whole(5, 60)):
            x, ground = art.whole(0, width), height * art.between(0.66, 1.02)
            tall = (ground - horizon) * art.between(0.25, 0.6) + 8
            green: Colour = shade((45, 75, 40), art.between(0.5, 1.3))
            if art.chance(0.5):
                for step in range(4):
                    half = tall * 0.22 * (1 - step * 0.2)
                    draw.polygon(
                        [
                            (x - half, ground - step * tall * 0.2),
                            (x + half, ground - step * tall * 0.2),
                            (x, ground - tall * 0.4 - step * tall * 0.2),
                        ],
                        fill=green,
                    )
            else:
                draw.rectangle((x - 2, ground - tall * 0.5, x + 2, ground), fill=(70, 50, 35))
                for _leaf in range(7):
                    lx, ly, r = (
                        x + art.rng.gauss(0, tall * 0.14),
                        ground - tall * 0.65 + art.rng.gauss(0, tall * 0.12),
                        tall * art.between(0.1, 0.2),
                    )
                    draw.ellipse((lx - r, ly - r, lx + r, ly + r), fill=shade(green, art.between(0.8, 1.2)))
    return camera(art, picture.filter(ImageFilter.GaussianBlur(art.between(0.6, 1.2))))


def house(art: Art, draw: ImageDraw.ImageDraw, x: float, ground: float, wide: float, tall: float) -> None:
    """A front with windows, door and perhaps a roof, standing on `ground`."""
    wall = art.colour((0.05, 0.45), (0.45, 0.95))
    draw.rectangle((x, ground - tall, x + wide, ground), fill=wall)
    draw.rectangle((x + wide * 0.8, ground - tall, x + wide, ground), fill=shade(wall, 0.85))
    if art.chance(0.55):
        roof = art.pick(((140, 60, 45), (80, 70, 70), (100, 50, 40), (60, 60, 70)))
        draw.polygon(
            [
                (x - wide * 0.05, ground - tall),
                (x + wide * 1.05, ground - tall),
                (x + wide * 0.5, ground - tall - wide * art.between(0.25, 0.5)),
            ],
            fill=roof,
        )
    columns, rows = max(2, int(wide / 34)), max(1, int(tall / 46))
    pane = art.pick(((70, 90, 115), (40, 50, 65), (200, 215, 230), (245, 220, 150)))
    for column in range(columns):
        for row in range(rows):
            wx, wy = x + wide * (column + 0.3) / columns, ground - tall + tall * (row + 0.25) / rows
            draw.rectangle(
                (wx - 2, wy - 2, wx + wide * 0.4 / columns + 2, wy + tall * 0.5 / rows + 2), fill=shade(wall, 1.25)
            )
            draw.rectangle(
                (wx, wy, wx + wide * 0.4 / columns, wy + tall * 0.5 / rows), fill=shade(pane, art.between(0.7, 1.2))
            )
    if art.chance(0.7):
        dx = x + wide * art.between(0.3, 0.6)
        draw.rectangle((dx, ground - min(60, tall * 0.35), dx + 28, ground), fill=art.dark())


def building(art: Art) -> Image.Image:
    """One house, or a street of them."""
    size = art.pick(((640, 480), (480, 640), (700, 460)))
    width, height = size
    image = sky(art, size)
    draw = ImageDraw.Draw(image)
    ground = height * art.between(0.72, 0.9)
    draw.rectangle((0, ground, width, height), fill=art.pick(((90, 110, 70), (120, 120, 125), (150, 140, 120))))
    x = -20.0
    single = art.chance(0.4)
    while x < width:
        wide = width * (art.between(0.45, 0.7) if single else art.between(0.12, 0.32))
        tall = height * (art.between(0.35, 0.55) if single else art.between(0.2, 0.68))
        house(art, draw, x + (width * 0.15 if single else 0), ground, wide, tall)
        x += wide + (width if single else art.whole(-2, 12))
    values = np.asarray(image).astype(float) * (0.85 + 0.3 * clouds(size, art.grain, 30, 4, 0.7)[..., None])
    picture = to_image(values)
    if art.chance(0.5):
        turn = math.degrees(art.rng.gauss(0, 0.03))
        picture = picture.rotate(turn, Image.Resampling.BICUBIC)
    return camera(art, picture.filter(ImageFilter.GaussianBlur(0.8)))
