"""How a flat document comes to a camera: lying on a desk, held at a slant, scanned, lit badly, saved small."""

from __future__ import annotations

import io
import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from .art import Art, Colour, clouds, gradient, mix, shade, to_image


def quadrangle(width: int, height: int, corners: list[tuple[float, float]]) -> tuple[float, ...]:
    """The eight numbers by which PIL maps the canvas back to a picture whose corners lie at `corners`."""
    source = [(0.0, 0.0), (float(width), 0.0), (float(width), float(height)), (0.0, float(height))]
    rows = []
    values = []
    for (x, y), (u, v) in zip(corners, source, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return tuple(float(value) for value in np.linalg.solve(np.array(rows), np.array(values)))


def desk(art: Art, size: tuple[int, int]) -> Image.Image:
    """A table top: wood, cloth, plain, dark, or cluttered."""
    width, height = size
    style = art.pick(("wood", "plain", "cloth", "gradient", "noise", "wood"))
    if style == "wood":
        base = art.pick(((160, 110, 70), (120, 80, 50), (200, 165, 120), (90, 60, 40), (220, 200, 170), (70, 50, 40)))
        y, x = np.mgrid[0:height, 0:width]
        wobble = clouds(size, art.grain, 3, 3) * art.between(10, 60)
        rings = np.sin((y + wobble * 2) / art.between(3, 12)) * 0.5 + np.sin(y / art.between(40, 120) + x / 900) * 0.5
        values = np.array(base)[None, None] * (1 + 0.10 * rings[..., None]) + 12 * (
            clouds(size, art.grain, 20, 3)[..., None] - 0.5
        )
        board = to_image(values)
        return board.rotate(90).resize(size) if art.chance(0.4) else board
    colour = art.colour((0.0, 0.5), (0.1, 0.95))
    if style == "gradient":
        return gradient(size, colour, shade(colour, art.between(0.4, 0.9)), art.between(0, 360))
    strength = {"plain": 12.0, "cloth": 25.0, "noise": 70.0}[style]
    values = np.array(colour)[None, None] + strength * (
        clouds(size, art.grain, 4 if style != "cloth" else 60, 4)[..., None] - 0.5
    )
    return to_image(values)


def clutter(art: Art, canvas: Image.Image) -> None:
    """Things that lie about: pens, papers, a cup, a keyboard's edge."""
    draw = ImageDraw.Draw(canvas)
    width, height = canvas.size
    for _ in range(art.whole(1, 4)):
        x, y = art.whole(0, width), art.whole(0, height)
        colour = art.colour((0.0, 0.9), (0.1, 1.0))
        what = art.pick(("pen", "paper", "cup", "box"))
        if what == "pen":
            angle = art.between(0, math.tau)
            length = art.between(0.2, 0.5) * width
            draw.line(
                (x, y, x + length * math.cos(angle), y + length * math.sin(angle)),
                fill=colour,
                width=max(3, width // 60),
            )
        elif what == "paper":
            w, h = art.whole(width // 5, width // 2), art.whole(height // 5, height // 2)
            draw.polygon(
                [(x, y), (x + w, y + art.whole(-20, 20)), (x + w - 10, y + h), (x - 10, y + h)],
                fill=mix(colour, (255, 255, 255), 0.8),
            )
        elif what == "cup":
            r = art.whole(width // 14, width // 6)
            draw.ellipse((x - r, y - r, x + r, y + r), fill=colour)
            draw.ellipse((x - r * 0.8, y - r * 0.8, x + r * 0.8, y + r * 0.8), fill=(60, 40, 25))
        else:
            w = art.whole(width // 10, width // 4)
            draw.rectangle((x, y, x + w, y + w * art.between(0.4, 1.4)), fill=colour)


def on_desk(
    art: Art, flat: Image.Image, steepness: float = 0.12, fill: tuple[float, float] = (0.55, 0.95)
) -> Image.Image:
    """A phone's photo of something flat (RGB or RGBA) on a surface."""
    long_side = 760
    portrait = art.chance(0.75 if flat.height > flat.width else 0.3)
    size = (
        (round(long_side * art.between(0.66, 0.8)), long_side)
        if portrait
        else (long_side, round(long_side * art.between(0.66, 0.8)))
    )
    canvas = desk(art, size)
    if art.chance(0.4):
        clutter(art, canvas)
    width, height = size
    share = art.between(*fill)
    turn = math.radians(art.rng.gauss(0, 7))
    if art.chance(0.08):
        turn += math.pi * art.pick((0.5, 1.0, 1.5))
    cos, sin = math.cos(turn), math.sin(turn)
    reach_x = abs(flat.width * cos) + abs(flat.height * sin)
    reach_y = abs(flat.width * sin) + abs(flat.height * cos)
    zoom = share * min(width / reach_x, height / reach_y)
    cx = width / 2 + art.between(-1, 1) * max(0.0, width - reach_x * zoom) * 0.35
    cy = height / 2 + art.between(-1, 1) * max(0.0, height - reach_y * zoom) * 0.35
    corners = []
    for sx, sy in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
        x, y = sx * flat.width / 2 * zoom, sy * flat.height / 2 * zoom
        slant = 1 + art.between(-steepness, steepness)
        corners.append((cx + (x * cos - y * sin) * slant, cy + (x * sin + y * cos) * slant))
    top = flat.convert("RGBA").transform(
        size, Image.Transform.PERSPECTIVE, quadrangle(flat.width, flat.height, corners), Image.Resampling.BICUBIC
    )
    shadow = top.getchannel("A").filter(ImageFilter.GaussianBlur(art.between(3, 14))).point(lambda a: int(a * 0.5))
    dark = Image.new("RGB", size, (0, 0, 0))
    moved = Image.new("L", size, 0)
    moved.paste(shadow, (art.whole(-8, 8), art.whole(0, 10)))
    canvas = Image.composite(dark, canvas, moved)
    canvas.paste(top, (0, 0), top)
    return camera(art, lit(art, canvas))


def lit(art: Art, image: Image.Image) -> Image.Image:
    """Uneven light, a colour cast, now and then a glare."""
    values = np.asarray(image.convert("RGB")).astype(np.float32)
    height, width = values.shape[:2]
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    angle = art.between(0, math.tau)
    ramp = (x / width - 0.5) * math.cos(angle) + (y / height - 0.5) * math.sin(angle)
    values *= (art.between(0.7, 1.1) + art.between(0, 0.5) * ramp)[..., None]
    values *= np.array([art.rng.gauss(1, 0.06) for _ in range(3)])
    if art.chance(0.3):
        gx, gy = art.between(0.1, 0.9) * width, art.between(0.1, 0.9) * height
        spread = art.between(0.05, 0.22) * width
        glow = np.exp(-(((x - gx) / spread) ** 2 + ((y - gy) / (spread * art.between(0.4, 1.6))) ** 2))
        values += art.between(80, 230) * glow[..., None]
    return to_image(values)


def camera(art: Art, image: Image.Image) -> Image.Image:
    """Blur, noise and compression, each now and then."""
    if art.chance(0.45):
        image = image.filter(ImageFilter.GaussianBlur(art.between(0.4, 2.0)))
    if art.chance(0.5):
        values = np.asarray(image).astype(np.float32)
        image = to_image(values + art.grain.normal(0, art.between(1, 9), values.shape))
    if art.chance(0.5):
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=art.whole(30, 85))
        image = Image.open(buffer).convert("RGB")
    return image


def scanned(art: Art, flat: Image.Image, glass: Colour | None = None) -> Image.Image:
    """Flat on a scanner: slightly askew, perhaps grey, perhaps with a margin of the glass."""
    ground = glass or art.pick(((255, 255, 255), (250, 250, 250), (235, 235, 235), (30, 30, 30), (200, 205, 210)))
    margin_x, margin_y = (round(flat.width * art.between(0, 0.25)), round(flat.height * art.between(0, 0.35)))
    canvas = Image.new("RGB", (flat.width + 2 * margin_x, flat.height + 2 * margin_y), ground)
    turned = flat.convert("RGBA").rotate(art.rng.gauss(0, 1.5), Image.Resampling.BICUBIC, expand=True)
    canvas.paste(turned, ((canvas.width - turned.width) // 2, (canvas.height - turned.height) // 2), turned)
    if art.chance(0.35):
        canvas = canvas.convert("L").convert("RGB")
    if art.chance(0.35):
        values = np.asarray(canvas).astype(np.float32)
        canvas = to_image(128 + (values - 128) * art.between(0.8, 1.3) + art.between(-10, 15))
    return camera(art, canvas) if art.chance(0.6) else canvas


def photocopied(art: Art, flat: Image.Image) -> Image.Image:
    """Black and white with hard contrast and dirt."""
    grey = np.asarray(flat.convert("L")).astype(np.float32)
    contrast = 255 / (1 + np.exp(-(grey - art.between(110, 170)) / art.between(12, 40)))
    contrast += art.grain.normal(0, art.between(2, 14), contrast.shape)
    return to_image(contrast).convert("RGB")


def paper(art: Art, size: tuple[int, int], aged: float = 0.0) -> Image.Image:
    """Blank paper; `aged` from 0 (white) to 1 (old and stained)."""
    white: Colour = (255, 255, 255)
    old: Colour = art.pick(((225, 200, 150), (232, 215, 180), (210, 190, 160), (238, 225, 190)))
    base = mix(white, old, aged)
    values = np.array(base)[None, None] * np.ones((size[1], size[0], 1))
    if aged > 0:
        values = values + (clouds(size, art.grain, 3, 5)[..., None] - 0.5) * 50 * aged
    return to_image(values)


def look(art: Art, flat: Image.Image, clean: float = 0.3, desk_share: float = 0.4) -> Image.Image:
    """One of: as it is, on a desk, scanned, photocopied."""
    draw = art.rng.random()
    if draw < clean:
        if flat.mode == "RGBA":
            ground = Image.new(
                "RGB", flat.size, art.pick(((255, 255, 255), (255, 255, 255), (0, 0, 0), (240, 240, 240)))
            )
            ground.paste(flat, (0, 0), flat)
            return ground
        return flat
    if draw < clean + desk_share:
        return on_desk(art, flat)
    if draw < clean + desk_share + (1 - clean - desk_share) * 0.8:
        return scanned(art, flat)
    flattened = Image.new("RGB", flat.size, (255, 255, 255))
    flattened.paste(flat, (0, 0), flat if flat.mode == "RGBA" else None)
    return photocopied(art, flattened)
