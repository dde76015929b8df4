"""Maps: streets, countries by colour, relief with contours, satellite-like ground."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from . import words
from .art import Art, Colour, clouds, hsv, mix, to_image


def _streets(art: Art, size: tuple[int, int]) -> Image.Image:
    width, height = size
    dark = art.chance(0.2)
    land: Colour = (
        art.pick(((36, 40, 48), (20, 24, 30)))
        if dark
        else art.pick(((242, 239, 233), (245, 245, 240), (232, 232, 226)))
    )
    image = Image.new("RGB", size, land)
    draw = ImageDraw.Draw(image)
    for _ in range(art.whole(2, 8)):
        x, y = art.whole(0, width), art.whole(0, height)
        points = [(x + art.whole(-140, 140), y + art.whole(-110, 110)) for _ in range(5)]
        draw.polygon(points, fill=mix(land, (120, 190, 110), 0.5))
    if art.chance(0.7):
        river = [(step * width / 12, height * (0.5 + 0.3 * art.rng.gauss(0, 0.4))) for step in range(13)]
        draw.line(river, fill=mix(land, (110, 170, 220), 0.8), width=art.whole(14, 70), joint="curve")
    turn = art.between(-0.4, 0.4)
    block = art.whole(26, 70)
    road = mix(land, (255, 255, 255), 0.9) if not dark else mix(land, (200, 200, 200), 0.3)
    for index in range(-20, 40):
        if art.chance(0.85):
            x = index * block + art.whole(-6, 6)
            draw.line((x, 0, x + turn * height, height), fill=road, width=art.pick((2, 3, 5)))
        if art.chance(0.85):
            y = index * block + art.whole(-6, 6)
            draw.line((0, y, width, y - turn * width), fill=road, width=art.pick((2, 3, 5)))
    for _ in range(art.whole(1, 4)):
        points = [(art.whole(-50, width + 50), art.whole(-50, height + 50)) for _ in range(3)]
        draw.line(
            points,
            fill=art.pick(((250, 210, 110), (240, 160, 100), (255, 240, 150))),
            width=art.whole(6, 12),
            joint="curve",
        )
    return image


def _land(art: Art, size: tuple[int, int]) -> np.ndarray:
    return clouds(size, art.grain, art.whole(2, 4), 6, 0.55)


def _regions(art: Art, size: tuple[int, int]) -> Image.Image:
    """Countries or districts, coloured by value or alike."""
    width, height = size
    field = _land(art, size)
    level = float(np.quantile(field, art.between(0.35, 0.6)))
    count = art.whole(8, 60)
    seeds = art.grain.random((count, 2)) * [width, height]
    y, x = np.mgrid[0:height, 0:width]
    wobble = (clouds(size, art.grain, 12, 3) - 0.5) * 70
    distance = np.stack([(x + wobble - sx) ** 2 + (y + wobble - sy) ** 2 for sx, sy in seeds])
    nearest = distance.argmin(0)
    base, other = art.vivid(), art.pale()
    same = art.chance(0.25)
    palette = np.array([mix(base, other, 0.2 if same else art.rng.random()) for _ in range(count)])
    sea = np.array(art.pick(((170, 205, 225), (255, 255, 255), (240, 242, 244), (30, 35, 45), (60, 110, 150))))
    values = palette[nearest]
    edges = (
        np.abs(np.diff(nearest, axis=0, prepend=nearest[:1])) + np.abs(np.diff(nearest, axis=1, prepend=nearest[:, :1]))
    ) > 0
    values[edges] = art.pick(((255, 255, 255), (90, 90, 90)))
    values[field < level] = sea
    return to_image(values)


def _relief(art: Art, size: tuple[int, int]) -> Image.Image:
    field = _land(art, size)
    dy, dx = np.gradient(field)
    light = np.clip(1 + (dx + dy) * art.between(20, 80), 0.5, 1.5)[..., None]
    style = art.whole(0, 2)
    if style == 0:
        stops = np.array(
            [(60, 110, 160), (120, 170, 200), (150, 190, 120), (220, 210, 150), (180, 140, 100), (245, 245, 245)],
            dtype=float,
        )
        at = np.clip(field * 5, 0, 4.999)
        low = at.astype(int)
        values = stops[low] + (stops[low + 1] - stops[low]) * (at - low)[..., None]
    elif style == 1:
        values = np.full((*field.shape, 3), 250.0)
    else:
        hue = art.rng.random()
        values = np.array(hsv(hue, 0.5, 0.9))[None, None] * (0.3 + 0.8 * field[..., None])
    values = values * light
    if style == 1 or art.chance(0.5):
        lines = art.whole(8, 24)
        step = (field * lines).astype(int)
        edge = (np.diff(step, axis=0, prepend=step[:1]) != 0) | (np.diff(step, axis=1, prepend=step[:, :1]) != 0)
        values[edge] = values[edge] * 0.4 + np.array(art.pick(((120, 80, 40), (60, 60, 60)))) * 0.6
    return to_image(values)


def _satellite(art: Art, size: tuple[int, int]) -> Image.Image:
    field, fine = _land(art, size), clouds(size, art.grain, 30, 4, 0.7)
    green = np.array(art.pick(((60, 80, 45), (80, 85, 60), (120, 105, 75), (45, 60, 45))))
    values = green[None, None] * (0.6 + 0.8 * fine[..., None])
    values = np.where(
        (field < art.between(0.15, 0.5))[..., None],
        np.array((18, 38, 60))[None, None] * (0.8 + 0.4 * fine[..., None]),
        values,
    )
    image = to_image(values)
    draw = ImageDraw.Draw(image, "RGBA")
    for _ in range(art.whole(0, 40)):
        x, y, w, h = art.whole(0, size[0]), art.whole(0, size[1]), art.whole(10, 60), art.whole(10, 60)
        draw.polygon(
            [(x, y), (x + w, y + 6), (x + w + 4, y + h), (x + 2, y + h)],
            fill=(*art.pick(((120, 130, 70), (150, 130, 90), (70, 90, 50))), 90),
        )
    return image.filter(ImageFilter.GaussianBlur(0.6))


def map_image(art: Art) -> Image.Image:
    """A map of any kind, with labels and pins."""
    size = art.pick(((800, 600), (700, 700), (900, 560), (600, 800)))
    image = art.pick((_streets, _streets, _regions, _regions, _relief, _satellite))(art, size)
    draw = ImageDraw.Draw(image)
    face = art.print_face()
    if art.chance(0.75):
        for _ in range(art.whole(3, 16)):
            x, y = art.whole(10, size[0] - 90), art.whole(10, size[1] - 30)
            text = words.city(art)
            draw.text(
                (x, y),
                text,
                font=face.at(art.between(11, 24)),
                fill=(40, 40, 50),
                stroke_width=art.pick((0, 2)),
                stroke_fill=(255, 255, 255),
            )
            if art.chance(0.5):
                draw.ellipse((x - 10, y + 4, x - 4, y + 10), fill=(40, 40, 50))
    for _ in range(art.whole(0, 6)):
        x, y = art.whole(20, size[0] - 20), art.whole(40, size[1] - 20)
        colour = art.vivid()
        draw.ellipse((x - 11, y - 34, x + 11, y - 12), fill=colour)
        draw.polygon([(x - 9, y - 18), (x + 9, y - 18), (x, y)], fill=colour)
    if art.chance(0.3):
        framed = Image.new(
            "RGB", (size[0] + 80, size[1] + 130), art.pick(((255, 255, 255), (245, 242, 235), (25, 28, 34)))
        )
        framed.paste(image, (40, 90))
        ink: Colour = (240, 240, 240) if sum(framed.getpixel((2, 2))) < 300 else (30, 30, 30)  # type: ignore[arg-type]
        ImageDraw.Draw(framed).text((40, 26), words.title(art, art.whole(2, 5)), font=art.bold().at(34), fill=ink)
        return framed
    return image
