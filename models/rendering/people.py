"""Faces that nobody has: head and shoulders, shaded from simple shapes; for identity photos and portraits."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from .art import Art, Colour, clouds, gradient, mix, shade, to_image

SKIN: tuple[Colour, ...] = (
    (241, 207, 180),
    (224, 182, 150),
    (198, 150, 115),
    (160, 112, 80),
    (120, 82, 58),
    (88, 60, 44),
    (235, 195, 170),
    (210, 165, 130),
)
HAIR: tuple[Colour, ...] = (
    (30, 24, 22),
    (70, 45, 30),
    (120, 80, 45),
    (190, 150, 90),
    (150, 60, 35),
    (170, 170, 170),
    (20, 20, 30),
)


def _segment(cx: float, cy: float, rx: float, ry: float, first: float, last: float) -> list[tuple[float, float]]:
    """A circle's segment as points; PIL's own chord spills over when it is flat."""
    angles = [math.radians(first + (last - first) * step / 40) for step in range(41)]
    return [(cx + rx * math.cos(angle), cy + ry * math.sin(angle)) for angle in angles]


def head_and_shoulders(art: Art, size: tuple[int, int], background: Image.Image | Colour | None = None) -> Image.Image:
    """A frontal portrait."""
    width, height = size
    scale = 2
    w, h = width * scale, height * scale
    if isinstance(background, Image.Image):
        canvas = background.resize((w, h)).convert("RGB")
    else:
        ground = background or art.pick(
            ((235, 238, 242), (210, 222, 235), (245, 245, 245), (190, 200, 210), (225, 215, 205))
        )
        canvas = gradient((w, h), ground, shade(ground, art.between(0.85, 1.02)), 90)
    draw = ImageDraw.Draw(canvas)
    skin, hair = art.pick(SKIN), art.pick(HAIR)
    shirt = art.colour((0.0, 0.7), (0.1, 0.95))
    cx = w * art.between(0.47, 0.53)
    face_w, face_h = w * art.between(0.19, 0.23), h * art.between(0.22, 0.26)
    cy = h * art.between(0.40, 0.46)
    long_hair = art.chance(0.5)
    if long_hair:
        length = art.between(1.3, 2.4)
        draw.ellipse((cx - face_w * 1.45, cy - face_h * 1.35, cx + face_w * 1.45, cy + face_h * 1.1), fill=hair)
        draw.rounded_rectangle(
            (cx - face_w * 1.4, cy - face_h * 0.2, cx + face_w * 1.4, cy + face_h * length), w * 0.08, fill=hair
        )
    shoulder = h * art.between(0.76, 0.82)
    spread = w * art.between(0.36, 0.48)
    draw.rounded_rectangle(
        (cx - face_w * 0.48, cy + face_h * 0.5, cx + face_w * 0.48, shoulder + h * 0.08),
        w * 0.05,
        fill=shade(skin, 0.82),
    )
    draw.rounded_rectangle((cx - spread, shoulder, cx + spread, h * 1.4), w * 0.16, fill=shirt)
    if art.chance(0.5):
        draw.polygon(
            [(cx - face_w * 0.6, shoulder), (cx + face_w * 0.6, shoulder), (cx, shoulder + h * 0.13)],
            fill=shade(skin, 0.9),
        )
    else:
        draw.polygon(
            [
                (cx - face_w * 0.75, shoulder - h * 0.01),
                (cx, shoulder + h * 0.12),
                (cx - face_w * 0.2, shoulder + h * 0.16),
            ],
            fill=shade(shirt, 0.8),
        )
        draw.polygon(
            [
                (cx + face_w * 0.75, shoulder - h * 0.01),
                (cx, shoulder + h * 0.12),
                (cx + face_w * 0.2, shoulder + h * 0.16),
            ],
            fill=shade(shirt, 0.85),
        )
    for side in (-1, 1):
        ear = cx + side * face_w * 0.98
        draw.ellipse(
            (ear - face_w * 0.16, cy - face_h * 0.15, ear + face_w * 0.16, cy + face_h * 0.28), fill=shade(skin, 0.88)
        )
    draw.ellipse((cx - face_w, cy - face_h, cx + face_w, cy + face_h), fill=skin)
    draw.ellipse((cx - face_w * 0.78, cy, cx + face_w * 0.78, cy + face_h * 1.1), fill=skin)
    hairline = art.between(0.35, 0.7)
    if not art.chance(0.08):
        draw.polygon(
            _segment(cx, cy - face_h * 0.15, face_w * 1.08, face_h * 1.05, 180 + 25 * hairline, 360 - 25 * hairline),
            fill=hair,
        )
    eye_y = cy - face_h * 0.05
    for side in (-1, 1):
        ex = cx + side * face_w * 0.42
        ew, eh = face_w * 0.2, face_h * 0.075
        draw.ellipse((ex - ew, eye_y - eh, ex + ew, eye_y + eh), fill=(245, 243, 240))
        iris = art.pick(((70, 45, 25), (60, 90, 120), (70, 95, 60), (35, 25, 20)))
        draw.ellipse((ex - eh * 1.05, eye_y - eh, ex + eh * 1.05, eye_y + eh), fill=iris)
        draw.ellipse((ex - eh * 0.5, eye_y - eh * 0.5, ex + eh * 0.5, eye_y + eh * 0.5), fill=(10, 10, 10))
        draw.arc(
            (ex - ew * 1.1, eye_y - eh * 1.5, ex + ew * 1.1, eye_y + eh * 2),
            190,
            350,
            fill=shade(skin, 0.5),
            width=max(1, w // 160),
        )
        brow = eye_y - face_h * 0.19
        draw.arc(
            (ex - ew * 1.4, brow - eh, ex + ew * 1.4, brow + eh * 3),
            200,
            340,
            fill=shade(hair, 0.9),
            width=max(2, w // 70),
        )
    draw.line(
        (cx, eye_y + face_h * 0.1, cx - face_w * 0.1, cy + face_h * 0.34),
        fill=shade(skin, 0.78),
        width=max(1, w // 110),
    )
    draw.arc(
        (cx - face_w * 0.16, cy + face_h * 0.24, cx + face_w * 0.16, cy + face_h * 0.42),
        20,
        160,
        fill=shade(skin, 0.65),
        width=max(1, w // 90),
    )
    mouth = cy + face_h * 0.58
    lips = mix(skin, (170, 60, 60), art.between(0.3, 0.7))
    draw.ellipse((cx - face_w * 0.34, mouth - face_h * 0.05, cx + face_w * 0.34, mouth + face_h * 0.075), fill=lips)
    draw.line((cx - face_w * 0.33, mouth, cx + face_w * 0.33, mouth), fill=shade(lips, 0.6), width=max(1, w // 150))
    if art.chance(0.25):
        beard = mix(skin, hair, 0.7)
        draw.polygon(_segment(cx, cy + face_h * 0.6, face_w * 0.8, face_h * 0.5, 10, 170), fill=beard)
        draw.ellipse((cx - face_w * 0.3, mouth - face_h * 0.04, cx + face_w * 0.3, mouth + face_h * 0.06), fill=lips)
    if art.chance(0.25):
        for side in (-1, 1):
            ex = cx + side * face_w * 0.42
            draw.ellipse(
                (ex - face_w * 0.3, eye_y - face_h * 0.17, ex + face_w * 0.3, eye_y + face_h * 0.17),
                outline=(40, 35, 35),
                width=max(2, w // 90),
            )
        draw.line((cx - face_w * 0.12, eye_y, cx + face_w * 0.12, eye_y), fill=(40, 35, 35), width=max(2, w // 90))
    canvas = canvas.filter(ImageFilter.GaussianBlur(w / 220))
    values = np.asarray(canvas).astype(np.float32)
    y, x = np.mgrid[0:h, 0:w].astype(np.float32)
    light = art.pick((-1, 1)) * art.between(0.2, 0.9)
    distance = ((x - cx) / (face_w * 1.3)) ** 2 + ((y - cy) / (face_h * 1.3)) ** 2
    roundness = np.where(distance < 1.3, 1.06 - 0.28 * distance + 0.10 * light * (x - cx) / face_w, 0.97)
    smooth = (
        np.asarray(
            Image.fromarray((roundness * 128).clip(0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(w / 30))
        )
        / 128
    )
    values *= smooth[..., None]
    values += (clouds((w, h), art.grain, 40, 2)[..., None] - 0.5) * 14
    return to_image(values).resize(size, Image.Resampling.LANCZOS)


def identity_photo(art: Art, size: tuple[int, int]) -> Image.Image:
    """A borrowed portrait where the caller lends some, else a drawn one."""
    chance = art.rng.random()
    if art.portraits and chance < 0.65:
        image = art.portraits[int(art.rng.random() * len(art.portraits))].convert("RGB")
        ratio = size[0] / size[1]
        width = min(image.width, image.height * ratio)
        height = width / ratio
        left, top = max(0.0, (image.width - width) / 2), max(0.0, (image.height - height) * 0.2)
        photo = image.resize(
            size,
            Image.Resampling.BICUBIC,
            box=(left, top, min(image.width, left + width), min(image.height, top + height)),
        )
    else:
        photo = head_and_shoulders(art, size)
    return photo.convert("L").convert("RGB") if art.chance(0.35) else photo


def portrait(art: Art) -> Image.Image:
    """A portrait as a photo on its own."""
    size = (480, art.pick((480, 600, 640)))
    blurred = to_image(np.stack([clouds(size, art.grain, 3, 3) * art.between(120, 255) for _ in range(3)], -1)).filter(
        ImageFilter.GaussianBlur(12)
    )
    image = head_and_shoulders(art, size, blurred if art.chance(0.7) else None)
    return image.convert("L").convert("RGB") if art.chance(0.1) else image


def signature(
    draw: ImageDraw.ImageDraw, art: Art, box: tuple[float, float, float, float], fill: Colour = (20, 20, 60)
) -> None:
    """A scribble within the box."""
    left, top, right, bottom = box
    points = []
    phase, loops = art.between(0, 6), art.between(3, 7)
    for step in range(90):
        t = step / 89
        x = left + (right - left) * t + math.sin(t * loops * math.tau) * (right - left) * 0.06
        rise = math.sin(t * loops * math.tau + phase) * (1 - 0.6 * t) + 0.4 * math.sin(t * 23 + phase)
        points.append((x, (top + bottom) / 2 - rise * (bottom - top) * 0.38))
    draw.line(points, fill=fill, width=max(1, round((right - left) / 70)), joint="curve")
