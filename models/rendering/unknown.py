"""Pictures of nothing that any class or phrase of the recipe names: only measured with, never trained on.

Games, music, skies, mazes, mosaics, fractals, cloth, noise. A tower that knows two dozen kinds of images should match
none of them here. `KINDS` does not list these, so the recipe's rendering cannot reach them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from .art import Art, Colour, Floats, hsv, shade, to_image
from .fonts import Fonts

SIZE = (480, 400)


def noise(art: Art) -> Image.Image:
    """White or coloured noise, coarse or fine."""
    cell = art.pick((1, 1, 2, 4, 8))
    grid = (SIZE[1] // cell, SIZE[0] // cell, art.pick((1, 3)))
    values = art.grain.random(grid) if art.chance(0.6) else art.grain.normal(0.5, 0.2, grid)
    image = to_image(np.repeat(values, 3 // grid[2], axis=2) * 255)
    return image.resize(SIZE, Image.Resampling.NEAREST)


def mosaic(art: Art) -> Image.Image:
    """Cells around random points, as stained glass."""
    count = art.whole(15, 160)
    points = art.grain.random((count, 2)) * SIZE
    y, x = np.mgrid[0 : SIZE[1], 0 : SIZE[0]]
    away = (x[..., None] - points[:, 0]) ** 2 + (y[..., None] - points[:, 1]) ** 2
    colours = np.array([art.colour((0.1, 1), (0.2, 1)) for _ in range(count)], dtype=float)
    image = colours[away.argmin(-1)]
    if art.chance(0.6):
        near = np.sqrt(np.partition(away, 1, axis=-1)[..., :2])
        image[near[..., 1] - near[..., 0] < art.between(1, 5)] = art.pick((0, 20, 240))
    return to_image(image)


def fractal(art: Art) -> Image.Image:
    """A Julia set."""
    turn = art.between(0, math.tau)
    c = 0.7885 * complex(math.cos(turn), math.sin(turn))
    x = np.linspace(-1.6, 1.6, SIZE[0])
    z = x[None] + 1j * np.linspace(-1.3, 1.3, SIZE[1])[:, None]
    steps = np.zeros(z.shape)
    for _ in range(60):
        inside = np.abs(z) < 4
        z[inside] = z[inside] ** 2 + c
        steps += inside
    hue = art.rng.random()
    table = np.array([hsv(hue + step / 50, 0.8, (step % 40) / 40) for step in range(61)], dtype=float)
    return to_image(table[steps.astype(int)])


def maze(art: Art) -> Image.Image:
    """Walls of diagonal strokes or corridors."""
    cell = art.whole(10, 34)
    ink, ground = art.pick((((0, 0, 0), (255, 255, 255)), (art.dark(), art.pale()), (art.pale(), art.dark())))
    image = Image.new("RGB", SIZE, ground)
    draw = ImageDraw.Draw(image)
    round_ = art.chance(0.5)
    for x in range(0, SIZE[0], cell):
        for y in range(0, SIZE[1], cell):
            first = art.chance(0.5)
            if round_:
                half = cell / 2
                for cx, cy in ((x, y), (x + cell, y + cell)) if first else ((x + cell, y), (x, y + cell)):
                    draw.ellipse((cx - half, cy - half, cx + half, cy + half), outline=ink, width=max(2, cell // 6))
            else:
                draw.line(
                    (x, y, x + cell, y + cell) if first else (x + cell, y, x, y + cell),
                    fill=ink,
                    width=max(2, cell // 6),
                )
    return image


def chess(art: Art) -> Image.Image:
    """A board with round and pointed pieces."""
    light, dark = art.pick(
        (((240, 217, 181), (181, 136, 99)), ((235, 236, 208), (115, 149, 82)), (art.pale(), art.dark()))
    )
    image = Image.new("RGB", (400, 400), light)
    draw = ImageDraw.Draw(image)
    for row in range(8):
        for column in range(8):
            x, y = column * 50, row * 50
            if (row + column) % 2:
                draw.rectangle((x, y, x + 49, y + 49), fill=dark)
            if art.chance(0.35):
                fill: Colour = art.pick(((250, 250, 250), (25, 25, 25)))
                edge = (25, 25, 25) if fill[0] > 100 else (220, 220, 220)
                draw.ellipse((x + 17, y + 8, x + 33, y + 24), fill=fill, outline=edge)
                draw.polygon([(x + 25, y + 18), (x + 38, y + 42), (x + 12, y + 42)], fill=fill, outline=edge)
    return image


def sheet_music(art: Art) -> Image.Image:
    """Staves with notes."""
    image = Image.new("RGB", SIZE, art.pick(((255, 255, 255), (250, 246, 232))))
    draw = ImageDraw.Draw(image)
    gap = art.whole(6, 10)
    for top in range(30, SIZE[1] - 5 * gap, gap * 10):
        for line in range(5):
            draw.line((15, top + line * gap, SIZE[0] - 15, top + line * gap), fill=(40, 40, 40))
        x = 50.0
        while x < SIZE[0] - 30:
            y = top + art.whole(-1, 9) * gap / 2
            draw.ellipse(
                (x, y - gap * 0.45, x + gap * 1.3, y + gap * 0.45),
                fill=(10, 10, 10) if art.chance(0.8) else None,
                outline=(10, 10, 10),
            )
            draw.line((x + gap * 1.25, y, x + gap * 1.25, y - gap * 3.2), fill=(10, 10, 10), width=2)
            x += art.between(18, 50)
            if art.chance(0.15):
                draw.line((x - 6, top, x - 6, top + 4 * gap), fill=(10, 10, 10))
    return image


def night_sky(art: Art) -> Image.Image:
    """Stars and a haze of light."""
    y, x = np.mgrid[0 : SIZE[1], 0 : SIZE[0]]
    band = np.exp(-((((y - 200) * math.cos(0.5) + (x - 240) * art.between(-0.8, 0.8)) / art.between(40, 120)) ** 2))
    tint = np.array(hsv(art.between(0.5, 0.9), 0.5, 1), dtype=float)
    image = to_image(12 + band[..., None] * tint * art.between(0.1, 0.5))
    draw = ImageDraw.Draw(image)
    for _ in range(art.whole(150, 900)):
        sx, sy, r = art.between(0, SIZE[0]), art.between(0, SIZE[1]), abs(art.rng.gauss(0, 0.8))
        light = art.whole(120, 255)
        draw.ellipse((sx - r, sy - r, sx + r, sy + r), fill=(light, light, min(255, light + 20)))
    return image


def rings(art: Art) -> Image.Image:
    """Waves from two or three centres that cross."""
    y, x = np.mgrid[0 : SIZE[1], 0 : SIZE[0]].astype(float)
    total = np.zeros((SIZE[1], SIZE[0]))
    for _ in range(art.whole(1, 3)):
        total += np.sin(np.hypot(x - art.between(0, 480), y - art.between(0, 400)) / art.between(1.5, 14))
    hue = art.rng.random()
    a, b = (np.array(hsv(hue + shift, 0.7, 1), dtype=float) for shift in (0, art.between(0.1, 0.5)))
    share = (0.5 + 0.5 * np.sin(total * art.between(0.7, 2)))[..., None]
    return to_image(a * share + b * (1 - share))


def tartan(art: Art) -> Image.Image:
    """Stripes of cloth, crossed."""

    def stripes(length: int) -> Floats:
        out: list[Colour] = []
        palette = [art.colour() for _ in range(4)]
        while len(out) < length:
            out += [art.pick(palette)] * art.whole(3, 40)
        return np.array(out[:length], dtype=float)

    return to_image((stripes(SIZE[0])[None] + stripes(SIZE[1])[:, None]) / 2)


def spirograph(art: Art) -> Image.Image:
    """One long line that turns about itself."""
    image = Image.new("RGB", SIZE, art.pick(((255, 255, 255), (0, 0, 0), art.dark())))
    draw = ImageDraw.Draw(image)
    big, small, pen = art.between(90, 150), art.between(20, 80), art.between(20, 90)
    points = []
    for step in range(3000):
        t = step / 20
        points.append(
            (
                240 + (big - small) * math.cos(t) + pen * math.cos((big - small) / small * t),
                200 + (big - small) * math.sin(t) - pen * math.sin((big - small) / small * t),
            )
        )
    draw.line(points, fill=art.vivid(), width=art.whole(1, 3))
    return image


def fireworks(art: Art) -> Image.Image:
    """Bursts of sparks before the dark."""
    image = Image.new("RGB", SIZE, (8, 8, 20))
    draw = ImageDraw.Draw(image)
    for _ in range(art.whole(1, 6)):
        x, y, r, colour = art.between(60, 420), art.between(40, 300), art.between(30, 150), art.vivid()
        for _spark in range(art.whole(30, 90)):
            angle, reach = art.between(0, math.tau), r * art.between(0.5, 1)
            end = (x + reach * math.cos(angle), y + reach * math.sin(angle))
            draw.line(
                (x + (end[0] - x) * 0.4, y + (end[1] - y) * 0.4, *end),
                fill=shade(colour, art.between(0.5, 1.3)),
                width=2,
            )
    return image.filter(ImageFilter.GaussianBlur(art.between(0.3, 2)))


def playing_cards(art: Art) -> Image.Image:
    """A hand of cards on cloth."""
    image = Image.new("RGB", SIZE, art.pick(((20, 110, 60), (120, 20, 30), (30, 50, 110))))
    for index in range(art.whole(2, 6)):
        card = Image.new("RGBA", (110, 160), (252, 252, 250, 255))
        draw = ImageDraw.Draw(card)
        red = art.chance(0.5)
        ink: Colour = (200, 20, 30) if red else (15, 15, 15)
        draw.text((8, 6), art.pick("A23456789JQK"), font=art.bold().at(26), fill=ink)
        for spot in range(art.whole(1, 6)):
            x, y = 40 + spot % 2 * 34, 45 + spot // 2 * 36
            if red:
                draw.polygon([(x, y - 14), (x + 11, y), (x, y + 14), (x - 11, y)], fill=ink)
            else:
                draw.ellipse((x - 10, y - 6, x, y + 4), fill=ink)
                draw.ellipse((x, y - 6, x + 10, y + 4), fill=ink)
                draw.polygon([(x, y - 15), (x + 8, y - 3), (x - 8, y - 3)], fill=ink)
        card = card.rotate(art.between(-40, 40), Image.Resampling.BICUBIC, expand=True)
        image.paste(card, (20 + index * 62, art.whole(30, 180)), card)
    return image


def clock(art: Art) -> Image.Image:
    """A dial with hands."""
    image = Image.new("RGB", (400, 400), art.pale())
    draw = ImageDraw.Draw(image)
    face, ink = art.pick((((255, 255, 255), (20, 20, 20)), ((30, 30, 34), (235, 235, 235)), (art.pale(), art.dark())))
    draw.ellipse((40, 40, 360, 360), fill=face, outline=art.dark(), width=art.whole(4, 16))
    for hour in range(12):
        angle = math.tau * hour / 12
        x, y = 200 + 130 * math.sin(angle), 200 - 130 * math.cos(angle)
        draw.text((x, y), str(hour or 12), font=art.bold().at(28), fill=ink, anchor="mm")
    for reach, width in ((70, 9), (110, 6), (120, 2)):
        angle = art.between(0, math.tau)
        draw.line((200, 200, 200 + reach * math.sin(angle), 200 - reach * math.cos(angle)), fill=ink, width=width)
    return image


def piano(art: Art) -> Image.Image:
    """Black and white keys."""
    wide = art.whole(24, 60)
    image = Image.new("RGB", SIZE, (250, 250, 248))
    draw = ImageDraw.Draw(image)
    for index in range(SIZE[0] // wide + 1):
        draw.line((index * wide, 0, index * wide, SIZE[1]), fill=(60, 60, 60), width=2)
        if index % 7 not in (0, 3):
            draw.rectangle((index * wide - wide * 0.3, 0, index * wide + wide * 0.3, SIZE[1] * 0.6), fill=(15, 15, 17))
    return image.rotate(art.rng.gauss(0, 6), Image.Resampling.BICUBIC, fillcolor=(90, 60, 40))


def crossword(art: Art) -> Image.Image:
    """A grid of empty and black squares with small numbers."""
    cells = art.whole(9, 15)
    cell = 400 // cells
    image = Image.new("RGB", (cells * cell + 1, cells * cell + 1), (255, 255, 255))
    draw = ImageDraw.Draw(image)
    number = 1
    for row in range(cells):
        for column in range(cells):
            x, y = column * cell, row * cell
            black = art.chance(0.22)
            draw.rectangle((x, y, x + cell, y + cell), outline=(0, 0, 0), fill=(0, 0, 0) if black else (255, 255, 255))
            if not black and art.chance(0.3):
                draw.text((x + 2, y + 1), str(number), font=art.sans().at(cell * 0.35), fill=(0, 0, 0))
                number += 1
    return image


def flag(art: Art) -> Image.Image:
    """Stripes and a sign, waving or flat."""
    count = art.pick((2, 3, 3, 5, 9))
    image = Image.new("RGB", SIZE)
    draw = ImageDraw.Draw(image)
    upright = art.chance(0.5)
    for index in range(count):
        a, b = index / count, (index + 1) / count
        box = (a * SIZE[0], 0, b * SIZE[0], SIZE[1]) if upright else (0, a * SIZE[1], SIZE[0], b * SIZE[1])
        draw.rectangle(box, fill=art.pick(((250, 250, 250), art.vivid(), art.vivid())))
    if art.chance(0.5):
        draw.polygon([(0, 0), (SIZE[0] * 0.4, SIZE[1] / 2), (0, SIZE[1])], fill=art.vivid())
    if art.chance(0.5):
        y, x = np.mgrid[0 : SIZE[1], 0 : SIZE[0]]
        bent = np.clip(y + 14 * np.sin(x / art.between(30, 60)), 0, SIZE[1] - 1).astype(int)
        values = np.asarray(image)[bent, x] * (0.85 + 0.15 * np.sin(x / 40))[..., None]
        image = to_image(values)
    return image


UNKNOWN: Mapping[str, Callable[[Art], Image.Image]] = {
    draw.__name__: draw
    for draw in (
        noise, mosaic, fractal, maze, chess, sheet_music, night_sky, rings,
        tartan, spirograph, fireworks, playing_cards, clock, piano, crossword, flag,
    )
}  # fmt: skip


def render_unknown(kind: str, seed: int, fonts: Fonts) -> Image.Image:
    """Draw one; the same for the same seed and fonts."""
    return UNKNOWN[kind](Art(random.Random(f"unknown {kind}:{seed}"), fonts)).convert("RGB")
