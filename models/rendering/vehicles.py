"""A car on a road, photo-like: painted body with sky reflections, glass, wheels, shadow, a scene behind it."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from .art import Art, Colour, clouds, mix, shade, to_image
from .looks import camera
from .scenes import house, sky


def _smooth(points: list[tuple[float, float]], steps: int = 8) -> list[tuple[float, float]]:
    """A closed Catmull-Rom curve."""
    count = len(points)
    curve = []
    for index in range(count):
        p0, p1, p2, p3 = (points[(index + shift) % count] for shift in (-1, 0, 1, 2))
        for step in range(steps):
            t = step / steps
            x, y = (
                0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t * t + (3 * b - a - 3 * c + d) * t**3)
                for a, b, c, d in zip(p0, p1, p2, p3, strict=True)
            )
            curve.append((x, y))
    return curve


def _scene(art: Art, size: tuple[int, int], ground: float) -> Image.Image:
    width, height = size
    image = sky(art, size)
    draw = ImageDraw.Draw(image)
    horizon = ground - height * art.between(0.16, 0.3)
    style = art.pick(("street", "country", "trees", "wall"))
    if style == "street":
        x = -10.0
        while x < width:
            wide = art.between(0.12, 0.28) * width
            house(art, draw, x, horizon + 10, wide, height * art.between(0.2, 0.5))
            x += wide
    elif style == "wall":
        draw.rectangle((0, horizon - height * 0.35, width, horizon + 20), fill=art.colour((0, 0.3), (0.3, 0.8)))
    else:
        green: Colour = art.pick(((60, 90, 50), (90, 105, 60), (70, 80, 60)))
        points = [(x, horizon - art.between(0.02, 0.2) * height) for x in range(0, width + 40, 40)]
        draw.polygon([(0, horizon + 30), *points, (width, horizon + 30)], fill=mix(green, (150, 170, 190), 0.4))
        if style == "trees":
            for _ in range(60):
                x, y, r = art.whole(0, width), horizon - art.between(0, 0.22) * height, art.between(0.02, 0.08) * width
                draw.ellipse((x - r, y - r, x + r, y + r), fill=shade(green, art.between(0.6, 1.3)))
        draw.rectangle((0, horizon, width, ground), fill=green)
    image = image.filter(ImageFilter.GaussianBlur(art.between(1.5, 5)))
    draw = ImageDraw.Draw(image)
    road: Colour = art.pick(((85, 86, 90), (110, 110, 112), (70, 70, 75), (140, 135, 128)))
    edge = horizon + (ground - horizon) * 0.35
    draw.rectangle((0, edge, width, height), fill=road)
    draw.line((0, edge, width, edge), fill=shade(road, 1.4), width=4)
    for index in range(-1, 6):
        x = width * index / 5 + art.whole(0, 30)
        draw.polygon(
            [
                (x, height * 0.965),
                (x + width * 0.1, height * 0.965),
                (x + width * 0.11, height * 0.985),
                (x - width * 0.01, height * 0.985),
            ],
            fill=(225, 225, 215),
        )
    values = np.asarray(image).astype(float)
    values[int(edge) :] *= (0.85 + 0.3 * clouds((width, height - int(edge)), art.grain, 90, 3, 0.8))[..., None]
    return to_image(values)


def _wheel(art: Art, draw: ImageDraw.ImageDraw, x: float, y: float, r: float, spokes: int) -> None:
    draw.ellipse((x - r, y - r, x + r, y + r), fill=(22, 22, 24))
    rim = r * 0.68
    draw.ellipse((x - rim, y - rim, x + rim, y + rim), fill=(120, 122, 126))
    draw.ellipse((x - rim * 0.92, y - rim * 0.92, x + rim * 0.92, y + rim * 0.92), fill=(52, 53, 56))
    for index in range(spokes):
        angle = math.tau * index / spokes + 0.3
        draw.line(
            (x, y, x + rim * 0.9 * math.cos(angle), y + rim * 0.9 * math.sin(angle)),
            fill=(185, 187, 192),
            width=max(2, int(r * 0.14)),
        )
    draw.ellipse((x - r * 0.16, y - r * 0.16, x + r * 0.16, y + r * 0.16), fill=(160, 162, 166))


def car(art: Art) -> Image.Image:
    """A car from the side."""
    scale = 2
    size = art.pick(((720, 480), (760, 440), (640, 480)))
    width, height = size[0] * scale, size[1] * scale
    ground = height * art.between(0.76, 0.86)
    image = _scene(art, (width, height), ground)
    length = width * art.between(0.62, 0.84)
    left = (width - length) * art.between(0.3, 0.7)
    r = length * art.between(0.074, 0.088)
    rear, front = left + length * art.between(0.18, 0.2), left + length * art.between(0.79, 0.82)
    kind = art.pick(("saloon", "hatch", "estate", "coupe", "suv"))
    roof = {"saloon": 0.30, "hatch": 0.31, "estate": 0.31, "coupe": 0.25, "suv": 0.36}[kind] * length
    belt = {"suv": 0.21}.get(kind, 0.185) * length
    sill = ground - r * 0.55
    top, waist = ground - roof, ground - belt

    def at(share: float, y: float) -> tuple[float, float]:
        return left + length * share, y

    back = {"saloon": 0.12, "hatch": 0.06, "estate": 0.03, "coupe": 0.1, "suv": 0.03}[kind]
    body = _smooth(
        [
            at(0.0, waist + belt * 0.35),
            at(0.01, waist + 4),
            at(back + 0.03, waist - belt * 0.06),
            at(0.4, waist - belt * 0.04),
            at(0.72, waist),
            at(0.92, waist + belt * 0.14),
            at(0.99, waist + belt * 0.34),
            at(1.0, sill - belt * 0.16),
            at(0.97, sill),
            at(0.5, sill + 4),
            at(0.03, sill),
            at(0.0, sill - belt * 0.2),
        ]
    )
    cabin = _smooth(
        [
            at(back, waist + 8),
            at(back + 0.07, top + roof * 0.1),
            at(back + 0.17, top),
            at(0.5, top + roof * 0.01),
            at(0.6, top + roof * 0.06),
            at(0.75, waist + 8),
            at(0.5, waist + 20),
            at(0.2, waist + 20),
        ]
    )

    shadow = Image.new("L", (width, height), 0)
    ImageDraw.Draw(shadow).ellipse(
        (left - length * 0.02, ground - r * 0.5, left + length * 1.02, ground + r * 0.5), fill=210
    )
    image.paste((8, 8, 10), (0, 0, width, height), shadow.filter(ImageFilter.GaussianBlur(18)))

    paint = art.pick(
        (
            (190, 25, 30),
            (30, 60, 140),
            (225, 227, 230),
            (20, 22, 26),
            (150, 155, 160),
            (30, 90, 60),
            (220, 170, 40),
            (90, 20, 30),
            (120, 140, 165),
            (230, 110, 30),
        )
    )
    mask = Image.new("L", (width, height), 0)
    cut = ImageDraw.Draw(mask)
    cut.polygon(cabin, fill=255)
    cut.polygon(body, fill=255)
    y = np.mgrid[0:height, 0:width][0].astype(np.float32)
    share = np.clip((y - top) / (sill - top), 0, 1)
    light = (
        1.25
        - 0.75 * share
        + 0.30 * np.exp(-(((share - 0.50) / 0.05) ** 2))
        - 0.18 * np.exp(-(((share - 0.66) / 0.07) ** 2))
        + 0.12 * np.exp(-(((share - 0.8) / 0.05) ** 2))
    )
    gloss = 70 * np.exp(-(((share - 0.47) / 0.035) ** 2)) + 46 * np.exp(-((share / 0.05) ** 2))
    painted = to_image(np.array(paint, dtype=np.float32)[None, None] * light[..., None] + gloss[..., None])
    image.paste(painted, (0, 0), mask.filter(ImageFilter.GaussianBlur(1)))

    draw = ImageDraw.Draw(image)
    glass: Colour = art.pick(((40, 50, 60), (60, 72, 84), (25, 30, 36)))
    inset = roof * 0.055
    pillar = back + art.between(0.33, 0.38)
    windows = [
        [
            at(back + 0.045, waist - 2),
            at(back + 0.1, top + inset + roof * 0.08),
            at(back + 0.17, top + inset),
            at(pillar - 0.008, top + inset),
            at(pillar - 0.008, waist - 2),
        ],
        [
            at(pillar + 0.01, waist - 2),
            at(pillar + 0.01, top + inset),
            at(0.54, top + inset + roof * 0.02),
            at(0.6, top + inset + roof * 0.06),
            at(0.7, waist - 2),
        ],
    ]
    for window in windows:
        draw.polygon(window, fill=glass)
        (x0, y0), (x1, y1) = window[0], window[2]
        draw.polygon(
            [
                (x0 + (x1 - x0) * 0.5, y1 + 4),
                (x0 + (x1 - x0) * 0.5 + length * 0.05, y1 + 4),
                (x0 + length * 0.05, y0 - 6),
                (x0 + length * 0.02, y0 - 6),
            ],
            fill=mix(glass, (200, 220, 235), 0.35),
        )
    line = shade(paint, 0.5)
    for x in (back + 0.08, pillar, 0.665):
        draw.line((*at(x, waist), *at(x - 0.004, sill - belt * 0.12)), fill=line, width=3)
    for x in (pillar - 0.05, 0.6):
        draw.rounded_rectangle(
            (*at(x - 0.03, waist + belt * 0.2), *at(x, waist + belt * 0.25)), 4, fill=shade(paint, 1.3), outline=line
        )
    draw.line((*at(0.03, sill - 4), *at(0.97, sill - 4)), fill=(25, 25, 28), width=10)
    draw.polygon(
        [
            at(0.93, waist + belt * 0.2),
            at(0.99, waist + belt * 0.36),
            at(0.985, waist + belt * 0.46),
            at(0.91, waist + belt * 0.36),
        ],
        fill=(240, 245, 235),
        outline=(90, 95, 100),
    )
    draw.polygon(
        [
            at(0.0, waist + belt * 0.22),
            at(0.045, waist + belt * 0.2),
            at(0.04, waist + belt * 0.42),
            at(0.002, waist + belt * 0.44),
        ],
        fill=(170, 20, 25),
        outline=(70, 10, 12),
    )
    draw.rectangle((*at(0.955, sill - belt * 0.3), *at(0.998, sill - belt * 0.14)), fill=(35, 36, 40))
    draw.polygon([at(0.66, waist - 2), at(0.69, waist - belt * 0.14), at(0.705, waist - 2)], fill=shade(paint, 0.8))
    spokes = art.pick((5, 6, 7, 10))
    for x in (rear, front):
        draw.pieslice((x - r * 1.22, ground - r * 2.2, x + r * 1.22, ground + r * 0.24), 180, 360, fill=(14, 14, 16))
        draw.rectangle((x - r * 1.22, ground - r * 1.0, x + r * 1.22, sill + 6), fill=(14, 14, 16))
        _wheel(art, draw, x, ground - r, r, spokes)
    if art.chance(0.5):
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    small = image.resize(size, Image.Resampling.LANCZOS).filter(ImageFilter.GaussianBlur(0.5))
    values = np.asarray(small).astype(np.float32)
    values *= np.array([art.rng.gauss(1, 0.04) for _ in range(3)], dtype=np.float32)
    return camera(art, to_image(values))
