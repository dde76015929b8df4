"""Chest radiographs of nobody: a phantom of lungs, ribs, heart, diaphragm, clavicles and spine, seen from the front.

Densities add up and turn into film grey, which gives the look of a projection. Nothing here is diagnostic.
"""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from .art import Art, Floats, clouds
from .looks import camera, lit


class _Plate:
    """Density to which shapes are added; blurred per shape, since bodies have no sharp edges."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.density: Floats = np.zeros((height, width))

    def mask(self, blur: float) -> tuple[Image.Image, ImageDraw.ImageDraw, float]:
        image = Image.new("L", (self.width, self.height), 0)
        return image, ImageDraw.Draw(image), blur

    def add(self, layer: tuple[Image.Image, ImageDraw.ImageDraw, float], weight: float) -> None:
        image, _, blur = layer
        self.density += np.asarray(image.filter(ImageFilter.GaussianBlur(blur))).astype(float) / 255 * weight


def _curve(points: list[tuple[float, float]], count: int = 40) -> list[tuple[float, float]]:
    """A quadratic through three points."""
    (ax, ay), (bx, by), (cx, cy) = points
    curve = []
    for step in range(count + 1):
        t = step / count
        curve.append(
            (
                (1 - t) ** 2 * ax + 2 * t * (1 - t) * bx + t * t * cx,
                (1 - t) ** 2 * ay + 2 * t * (1 - t) * by + t * t * cy,
            )
        )
    return curve


def chest(art: Art) -> Image.Image:
    """A frontal chest radiograph, PA or AP."""
    width = 560
    height = round(width * art.between(0.82, 1.2))
    plate = _Plate(width, height)
    cx = width * art.between(0.47, 0.53)
    top, base = height * art.between(0.08, 0.16), height * art.between(0.68, 0.82)
    half = width * art.between(0.32, 0.40)
    soft = width / 90

    body = plate.mask(soft * 2.5)
    draw = body[1]
    neck = width * 0.11
    shoulder = top + height * art.between(0.02, 0.08)
    draw.polygon(
        [
            (cx - neck, 0),
            (cx + neck, 0),
            (cx + neck * 1.2, top * 0.7),
            (width * 0.98, shoulder + height * 0.1),
            (width * 1.02, height),
            (-width * 0.02, height),
            (width * 0.02, shoulder + height * 0.1),
            (cx - neck * 1.2, top * 0.7),
        ],
        fill=255,
    )
    plate.add(body, art.between(0.55, 0.75))
    arm = plate.mask(soft * 2)
    for side in (-1, 1):
        x = cx + side * width * 0.46
        arm[1].ellipse((x - width * 0.1, height * 0.12, x + width * 0.1, height * 0.75), fill=200)
    plate.add(arm, 0.18)

    for side in (-1, 1):
        lung = plate.mask(soft * art.between(1.4, 2.6))
        inner, outer = cx + side * width * 0.07, cx + side * half
        dome = base + (-height * 0.03 if side < 0 else height * 0.0)
        points = _curve(
            [
                (inner, top + height * 0.06),
                (cx + side * half * 0.35, top - height * 0.05),
                (cx + side * half * 0.72, top + height * 0.12),
            ]
        )
        points += _curve(
            [
                (cx + side * half * 0.72, top + height * 0.12),
                (outer * 1.0, top + height * 0.35),
                (outer, base + height * 0.06),
            ]
        )
        points += _curve(
            [
                (outer, base + height * 0.06),
                (cx + side * half * 0.55, dome - height * art.between(0.08, 0.14)),
                (inner + side * width * 0.02, dome + height * 0.02),
            ]
        )
        lung[1].polygon(points, fill=255)
        plate.add(lung, -art.between(0.42, 0.6))

    spine = plate.mask(soft)
    spine[1].rectangle((cx - width * 0.045, 0, cx + width * 0.045, height), fill=255)
    for level in range(18):
        y = height * level / 18
        spine[1].rectangle((cx - width * 0.06, y, cx + width * 0.06, y + height * 0.03), fill=255)
    plate.add(spine, art.between(0.2, 0.32))
    air = plate.mask(soft)
    air[1].rectangle((cx - width * 0.02, 0, cx + width * 0.02, top + height * 0.2), fill=255)
    plate.add(air, -0.16)

    heart = plate.mask(soft * 1.6)
    reach, size = half * art.between(0.42, 0.68), height * art.between(0.13, 0.19)
    hy = base - size * 0.75
    heart[1].ellipse((cx - half * 0.26, hy - size, cx + reach, hy + size), fill=255)
    heart[1].ellipse((cx - half * 0.2, top + height * 0.14, cx + half * 0.26, hy), fill=200)
    heart[1].ellipse((cx + half * 0.02, top + height * 0.14, cx + half * 0.27, top + height * 0.26), fill=220)
    plate.add(heart, art.between(0.3, 0.45))

    below = plate.mask(soft * 1.8)
    for side, lift in ((-1, 0.05), (1, 0.015)):
        x = cx + side * half * 0.52
        below[1].ellipse(
            (x - half * 0.62, base - height * (0.06 + lift), x + half * 0.62, base + height * 0.6), fill=255
        )
    plate.add(below, art.between(0.22, 0.36))
    if art.chance(0.6):
        bubble = plate.mask(soft * 1.5)
        x = cx + half * 0.5
        bubble[1].ellipse((x - half * 0.2, base + height * 0.01, x + half * 0.2, base + height * 0.09), fill=255)
        plate.add(bubble, -0.25)

    strength = art.between(0.06, 0.15)
    for rib in range(10):
        start = top + height * (0.01 + 0.068 * rib)
        bulge = half * min(1.04, 0.62 + 0.085 * rib)
        for side in (-1, 1):
            back, front = plate.mask(soft * 0.7), plate.mask(soft * 0.9)
            edge = cx + side * bulge
            curve = _curve(
                [
                    (cx + side * width * 0.05, start),
                    (cx + side * bulge * 0.85, start - height * 0.03),
                    (edge, start + height * 0.10),
                ]
            )
            back[1].line(curve, fill=255, width=max(3, int(width * 0.022)), joint="curve")
            plate.add(back, strength)
            if rib < 7:
                low = start + height * art.between(0.2, 0.24)
                curve = _curve(
                    [
                        (edge, start + height * 0.10),
                        (cx + side * bulge * 0.92, low - height * 0.02),
                        (cx + side * bulge * 0.42, low),
                    ]
                )
                front[1].line(curve, fill=220, width=max(3, int(width * 0.02)), joint="curve")
                plate.add(front, strength * 0.6)
    for side in (-1, 1):
        collar = plate.mask(soft * 0.8)
        curve = _curve(
            [
                (cx + side * width * 0.045, top + height * 0.09),
                (cx + side * half * 0.5, top + height * 0.02),
                (cx + side * half * 1.12, top + height * art.between(-0.03, 0.03)),
            ]
        )
        collar[1].line(curve, fill=255, width=int(width * 0.028), joint="curve")
        plate.add(collar, art.between(0.12, 0.2))
        blade = plate.mask(soft * 1.5)
        x = cx + side * half * 1.05
        blade[1].polygon(
            [
                (x, top + height * 0.06),
                (x + side * width * 0.1, top + height * 0.14),
                (x - side * width * 0.02, top + height * 0.36),
            ],
            fill=200,
        )
        plate.add(blade, 0.1)

    vessels = plate.mask(soft * 0.5)
    for side in (-1, 1):
        for _ in range(art.whole(10, 22)):
            x, y = cx + side * width * 0.08, (top + base) / 2 + art.rng.gauss(0, height * 0.04)
            angle = art.between(-1.2, 1.2)
            points = [(x, y)]
            for _step in range(7):
                x += side * math.cos(angle) * half * 0.1
                y += math.sin(angle) * half * 0.1
                angle += art.rng.gauss(0, 0.3)
                points.append((x, y))
            vessels[1].line(points, fill=255, width=art.pick((1, 2, 3)))
    plate.add(vessels, art.between(0.05, 0.12))
    if art.chance(0.45):
        haze = clouds((width, height), art.grain, 4, 4)
        y, x = np.mgrid[0:height, 0:width]
        hx, hy2 = cx + art.pick((-1, 1)) * half * 0.5, art.between(0.4, 0.65) * height
        local = np.exp(-(((x - hx) / (half * 0.45)) ** 2) - ((y - hy2) / (height * art.between(0.1, 0.3))) ** 2)
        plate.density += haze * local * art.between(0.15, 0.5)
    if art.chance(0.3):
        wires = plate.mask(0.8)
        for _ in range(art.whole(1, 4)):
            points = [(art.between(0.1, 0.9) * width, art.between(0.1, 0.9) * height) for _ in range(3)]
            wires[1].line(_curve(points), fill=255, width=2)
            wires[1].ellipse((points[2][0] - 7, points[2][1] - 7, points[2][0] + 7, points[2][1] + 7), fill=255)
        plate.add(wires, 0.4)
    plate.density += (clouds((width, height), art.grain, 6, 5, 0.65) - 0.5) * 0.1

    film = 1 / (1 + np.exp(-(plate.density - art.between(0.42, 0.58)) * art.between(4.0, 8.0)))
    film = film * art.between(0.8, 1.0) + art.between(0, 0.08)
    film += art.grain.normal(0, art.between(0.004, 0.025), film.shape)
    image = Image.fromarray((np.clip(film, 0, 1) * 255).astype(np.uint8))
    image = image.filter(ImageFilter.GaussianBlur(art.between(0.3, 1.4)))
    draw = ImageDraw.Draw(image)
    face = art.sans()
    if art.chance(0.7):
        draw.text(
            art.pick(((width * 0.08, height * 0.08), (width * 0.86, height * 0.08), (width * 0.06, height * 0.2))),
            art.pick(("L", "R", "R", "L")),
            font=face.at(width * 0.06),
            fill=art.whole(200, 255),
        )
    if art.chance(0.35):
        draw.text(
            (8, height - 24),
            art.pick(("PA", "AP PORTABLE", "AP ERECT", "SUPINE", f"{art.digits(6)}  {art.whole(20, 90)}Y")),
            font=face.at(15),
            fill=230,
        )
    if art.chance(0.3):
        framed = Image.new("L", (width + art.whole(10, 160), height + art.whole(10, 90)), art.whole(0, 20))
        framed.paste(image, ((framed.width - width) // 2, (framed.height - height) // 2))
        image = framed
    if art.chance(0.12):
        tinted = np.asarray(image).astype(float)[..., None] * np.array(
            art.pick(((0.86, 0.93, 1.0), (0.95, 0.98, 1.0), (1.0, 0.96, 0.9)))
        )
        return Image.fromarray(np.clip(tinted, 0, 255).astype(np.uint8))
    rgb = image.convert("RGB")
    if art.chance(0.1):
        return camera(art, lit(art, rgb.rotate(art.rng.gauss(0, 4), Image.Resampling.BICUBIC)))
    return rgb
