"""Medical and microscopic images that are not chest radiographs: slices, ultrasound, retina, tissue, cells."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from .art import Art, Colour, clouds, shade, to_image


def _grey(values: np.ndarray) -> Image.Image:
    return Image.fromarray((np.clip(values, 0, 1) * 255).astype(np.uint8)).convert("RGB")


def _ellipse(
    size: tuple[int, int], box: tuple[float, float, float, float], blur: float, turn: float = 0.0
) -> np.ndarray:
    mask = Image.new("L", size, 0)
    ImageDraw.Draw(mask).ellipse(box, fill=255)
    if turn:
        mask = mask.rotate(turn, center=((box[0] + box[2]) / 2, (box[1] + box[3]) / 2))
    return np.asarray(mask.filter(ImageFilter.GaussianBlur(blur))).astype(float) / 255


def mri(art: Art) -> Image.Image:
    """A head from above or a joint from the side, bright on black."""
    size = (420, art.pick((420, 500)))
    w, h = size
    cx, cy = w / 2, h / 2
    if art.chance(0.55):
        rx, ry = w * art.between(0.33, 0.42), h * art.between(0.38, 0.46)
        scalp = _ellipse(size, (cx - rx, cy - ry, cx + rx, cy + ry), 2)
        skull = _ellipse(size, (cx - rx * 0.93, cy - ry * 0.94, cx + rx * 0.93, cy + ry * 0.94), 2)
        brain = _ellipse(size, (cx - rx * 0.86, cy - ry * 0.88, cx + rx * 0.86, cy + ry * 0.88), 2)
        folds = clouds(size, art.grain, art.whole(9, 14), 2)
        grey, white = art.between(0.35, 0.6), art.between(0.5, 0.85)
        cortex = np.where(np.abs(folds - 0.5) < art.between(0.05, 0.1), grey * 0.6, white)
        values = scalp * 0.75 - skull * 0.65 + brain * (cortex - 0.08)
        for side in (-1, 1):
            values -= _ellipse(
                size,
                (cx + side * w * 0.04 - w * 0.03, cy - h * 0.12, cx + side * w * 0.04 + w * 0.03, cy + h * 0.1),
                3,
                side * 12,
            ) * art.between(0.3, 0.6)
        values -= _ellipse(size, (cx - 2, cy - ry * 0.85, cx + 2, cy + ry * 0.85), 1) * 0.3
        if art.chance(0.3):
            x, y, r = cx + art.between(-0.5, 0.5) * rx, cy + art.between(-0.5, 0.5) * ry, art.between(0.04, 0.1) * w
            values += _ellipse(size, (x - r, y - r, x + r, y + r), 4) * 0.4
    else:
        outline = _ellipse(size, (w * 0.12, -h * 0.1, w * 0.88, h * 1.1), 8)
        texture = clouds(size, art.grain, 8, 5, 0.6)
        values = outline * (0.18 + 0.25 * texture)
        gap = h * art.between(0.46, 0.54)
        for low, high in ((-0.2 * h, gap - 8), (gap + 8, h * 1.2)):
            bone = Image.new("L", size, 0)
            wide = w * art.between(0.2, 0.26)
            ImageDraw.Draw(bone).rounded_rectangle((cx - wide, low, cx + wide, high), 50, fill=255)
            values += np.asarray(bone.filter(ImageFilter.GaussianBlur(3))).astype(float) / 255 * art.between(0.25, 0.5)
        values += _ellipse(size, (w * 0.16, gap - h * 0.14, w * 0.26, gap + h * 0.12), 4) * 0.35
    values = values * art.between(0.8, 1.1) + art.grain.normal(0, art.between(0.01, 0.04), (h, w))
    return _grey(values)


def ct(art: Art) -> Image.Image:
    """A slice through a trunk with ribs and organs."""
    size = (480, 400)
    w, h = size
    cx, cy = w / 2, h / 2
    rx, ry = w * art.between(0.4, 0.46), h * art.between(0.36, 0.44)
    values = _ellipse(size, (cx - rx, cy - ry, cx + rx, cy + ry), 2) * 0.35
    values += _ellipse(size, (cx - rx * 0.9, cy - ry * 0.88, cx + rx * 0.9, cy + ry * 0.88), 2) * 0.15
    if art.chance(0.5):
        for side in (-1, 1):
            x = cx + side * rx * 0.45
            values -= _ellipse(size, (x - rx * 0.33, cy - ry * 0.6, x + rx * 0.33, cy + ry * 0.5), 2) * 0.5
    for _ in range(art.whole(4, 9)):
        x, y, r = cx + art.between(-0.6, 0.6) * rx, cy + art.between(-0.5, 0.4) * ry, art.between(0.06, 0.22) * rx
        values += _ellipse(size, (x - r, y - r * 0.8, x + r, y + r * 0.8), 2, art.between(0, 180)) * art.between(
            -0.1, 0.16
        )
    values += _ellipse(size, (cx - 22, cy + ry * 0.45, cx + 22, cy + ry * 0.75), 1) * 0.5
    for step in range(14):
        angle = math.tau * step / 14
        x, y = cx + rx * 0.85 * math.cos(angle), cy + ry * 0.84 * math.sin(angle)
        values += _ellipse(size, (x - 9, y - 5, x + 9, y + 5), 1, -math.degrees(angle) + 90) * 0.5
    values += art.grain.normal(0, art.between(0.01, 0.05), (h, w))
    image = _grey(values)
    if art.chance(0.5):
        ImageDraw.Draw(image).text(
            (8, 6),
            f"Se: {art.whole(1, 9)}  Im: {art.whole(1, 200)}\nW {art.whole(80, 1500)} L {art.whole(-600, 60)}",
            font=art.sans().at(13),
            fill=(220, 220, 220),
        )
    return image


def ultrasound(art: Art) -> Image.Image:
    """A probe's fan with dark cavities."""
    size = (520, 420)
    w, h = size
    y, x = np.mgrid[0:h, 0:w].astype(float)
    ax, ay = w / 2, -h * art.between(0.02, 0.25)
    angle, radius = np.arctan2(x - ax, y - ay), np.hypot(x - ax, y - ay)
    spread = art.between(0.5, 0.75)
    inside = (np.abs(angle) < spread) & (radius < h * art.between(1.02, 1.15)) & (radius > h * 0.1 - ay)
    field = clouds(size, art.grain, 5, 4)
    noise = clouds(size, art.grain, 60, 2)
    values = inside * (0.12 + 0.5 * field**2) * (0.4 + 1.1 * noise)
    for _ in range(art.whole(1, 3)):
        px, py, r = art.between(0.35, 0.65) * w, art.between(0.35, 0.7) * h, art.between(0.05, 0.16) * w
        values *= 1 - _ellipse(size, (px - r, py - r * 0.7, px + r, py + r * 0.7), 4) * 0.9
    image = _grey(values * 1.3)
    draw = ImageDraw.Draw(image)
    if art.chance(0.6):
        draw.text(
            (10, 8),
            f"{art.pick(('ABD', 'OB', 'CARD', 'THY'))}  {art.whole(2, 18)} MHz\nMI {art.between(0.5, 1.5):.1f}",
            font=art.sans().at(13),
            fill=(230, 230, 210),
        )
    return image


def fundus(art: Art) -> Image.Image:
    """A retina with its disc and vessels."""
    size = (460, 460)
    w = 460
    y, x = np.mgrid[0:w, 0:w].astype(float)
    r = np.hypot(x - w / 2, y - w / 2)
    base = np.array(art.pick(((190, 85, 40), (160, 70, 30), (205, 110, 60))))
    values = (
        base[None, None] * (1.1 - 0.5 * (r / w * 2)[..., None]) * (0.9 + 0.2 * clouds(size, art.grain, 6, 4)[..., None])
    )
    image = to_image(values)
    draw = ImageDraw.Draw(image)
    dx, dy = w * art.pick((0.3, 0.7)), w * art.between(0.45, 0.55)

    def branch(px: float, py: float, angle: float, width: float, length: int) -> None:
        for _ in range(length):
            nx, ny = px + 9 * math.cos(angle), py + 9 * math.sin(angle)
            draw.line((px, py, nx, ny), fill=shade((150, 35, 20), art.between(0.8, 1.1)), width=max(1, round(width)))
            px, py = nx, ny
            angle += art.rng.gauss(0, 0.13)
            if width > 1.5 and art.chance(0.1):
                branch(px, py, angle + art.pick((-0.6, 0.6)), width * 0.6, length // 2)

    for _ in range(art.whole(5, 8)):
        branch(dx, dy, art.between(0, math.tau), art.between(2.5, 5), 24)
    draw.ellipse((dx - 30, dy - 34, dx + 30, dy + 34), fill=(250, 215, 140))
    image = image.filter(ImageFilter.GaussianBlur(1.4))
    mask = Image.fromarray(((r < w * 0.48) * 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(2))
    return Image.composite(image, Image.new("RGB", size, (0, 0, 0)), mask)


def histology(art: Art) -> Image.Image:
    """Stained tissue with nuclei."""
    size = (480, 420)
    w, h = size
    pink = np.array(art.pick(((225, 160, 195), (235, 190, 210), (200, 150, 200))))
    field = clouds(size, art.grain, 8, 5, 0.6)[..., None]
    values = pink[None, None] * (0.75 + 0.35 * field)
    values = np.where(field > art.between(0.68, 0.85), 245.0, values)
    image = to_image(values)
    draw = ImageDraw.Draw(image)
    for _ in range(art.whole(200, 700)):
        x, y, r = art.whole(0, w), art.whole(0, h), art.between(2, 7)
        colour: Colour = (art.whole(80, 120), art.whole(40, 80), art.whole(120, 160))
        draw.ellipse((x - r, y - r * art.between(0.6, 1.2), x + r, y + r), fill=colour)
    return image.filter(ImageFilter.GaussianBlur(0.8))


def cells(art: Art) -> Image.Image:
    """Cells under a fluorescence or bright-field microscope."""
    size = (460, 460)
    w = h = 460
    glow = np.zeros((h, w, 3))
    style = art.whole(0, 2)
    hue = np.array(art.pick(((0.2, 0.4, 1.0), (0.2, 1.0, 0.3), (1.0, 0.25, 0.2), (1.0, 1.0, 1.0))))
    for _ in range(art.whole(15, 110)):
        x, y, r = art.whole(0, w), art.whole(0, h), art.between(6, 22)
        spot = _ellipse_patch(size, x, y, r, art.between(0.6, 1.0), art.between(0, 180))
        glow += spot[..., None] * hue * art.between(0.3, 1.0)
    if style == 0:
        other = np.array(art.pick(((0.1, 0.9, 0.2), (0.9, 0.1, 0.2))))
        glow += (clouds(size, art.grain, 20, 4) ** 3)[..., None] * other * 0.8
    if style == 1:
        values = 170 - 90 * glow + art.grain.normal(0, 5, (*glow.shape[:2], 1))
    else:
        values = 255 * glow + art.grain.normal(0, 6, (*glow.shape[:2], 1))
    return to_image(values)


def _ellipse_patch(size: tuple[int, int], x: float, y: float, r: float, flat: float, turn: float) -> np.ndarray:
    gy, gx = np.mgrid[0 : size[1], 0 : size[0]].astype(np.float32)
    angle = math.radians(turn)
    u = (gx - x) * math.cos(angle) + (gy - y) * math.sin(angle)
    v = (gy - y) * math.cos(angle) - (gx - x) * math.sin(angle)
    patch: np.ndarray = np.clip(1.4 - ((u / r) ** 2 + (v / (r * flat)) ** 2), 0, 1)
    return patch
