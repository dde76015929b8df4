"""Pictures of nothing in particular, for training to leave alone; `unknown` measures with other kinds.

Sums of waves, automata, walks, tiles, dots, ribbons, letters out of any order, crumpled light: what they share is that
they are none of the classes, and that there are endless kinds of them.
"""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from .art import Art, Colour, Floats, clouds, gradient, mix, shade, to_image

SIZE = (420, 360)


def _table(art: Art) -> Floats:
    """256 colours that run into each other."""
    stops = np.array([art.colour((0, 1), (0, 1)) for _ in range(art.whole(2, 6))], dtype=float)
    at = np.linspace(0, len(stops) - 1, 256)
    return np.stack([np.interp(at, np.arange(len(stops)), stops[:, channel]) for channel in range(3)], axis=-1)


def _coloured(art: Art, field: Floats) -> Image.Image:
    low, high = float(field.min()), float(field.max())
    index = ((field - low) / max(1e-9, high - low) * 255).astype(int)
    return to_image(_table(art)[index])


def waves(art: Art) -> Image.Image:
    """A few plane waves added, bent and folded."""
    y, x = np.mgrid[0 : SIZE[1], 0 : SIZE[0]].astype(float)
    total = np.zeros(x.shape)
    for _ in range(art.whole(1, 6)):
        angle, rate = art.between(0, math.tau), math.exp(art.between(-4.5, 0.2))
        total += np.sin(
            (x * math.cos(angle) + y * math.sin(angle)) * rate + 6 * art.chance(0.4) * clouds(SIZE, art.grain, 3, 2)
        )
    return _coloured(art, np.abs(total) if art.chance(0.3) else np.sign(total) if art.chance(0.2) else total)


def polar(art: Art) -> Image.Image:
    """Arms, wedges and spirals around a point."""
    y, x = np.mgrid[0 : SIZE[1], 0 : SIZE[0]].astype(float)
    x, y = x - art.between(0, SIZE[0]), y - art.between(0, SIZE[1])
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    field = np.sin(angle * art.whole(0, 14) + np.log1p(radius) * art.between(-12, 12))
    field += art.between(0, 1.5) * np.sin(radius / art.between(2, 60) + angle * art.whole(0, 3))
    return _coloured(art, np.sign(field) if art.chance(0.35) else field)


def automaton(art: Art) -> Image.Image:
    """Rows of cells, each made from the one above by a rule."""
    wide, tall = art.whole(40, 200), art.whole(40, 160)
    rule = [art.chance(0.5) for _ in range(8)]
    row = art.grain.random(wide) < art.pick((0.5, 0.1, 0.02))
    rows = []
    for _ in range(tall):
        rows.append(row)
        code = 4 * np.roll(row, 1) + 2 * row + np.roll(row, -1)
        row = np.array(rule)[code]
    first, second = np.array(art.colour((0, 1), (0, 1))), np.array(art.colour((0, 1), (0, 1)))
    return to_image(np.where(np.stack(rows)[..., None], first, second)).resize(SIZE, Image.Resampling.NEAREST)


def tiles(art: Art) -> Image.Image:
    """One small shape again and again, turned or coloured by chance."""
    ground, cell = art.colour((0, 0.6), (0, 1)), art.whole(12, 110)
    image = Image.new("RGB", SIZE, ground)
    draw = ImageDraw.Draw(image)
    palette = [art.colour((0, 1), (0, 1)) for _ in range(art.whole(1, 4))]
    kind, fill = art.whole(0, 5), art.between(0.3, 1.0)
    for row, y in enumerate(range(-cell, SIZE[1] + cell, cell)):
        for x in range(-cell, SIZE[0] + cell, cell):
            if not art.chance(fill):
                continue
            cx, cy, r, colour = (
                x + (row % 2) * cell * art.pick((0, 0.5)),
                y,
                cell * art.between(0.25, 0.55),
                art.pick(palette),
            )
            if kind == 0:
                draw.ellipse((cx - r, cy - r, cx + r, cy + r), fill=colour)
            elif kind == 1:
                draw.regular_polygon((cx, cy, max(2, r)), art.whole(3, 6), art.whole(0, 90), fill=colour)
            elif kind == 2:
                draw.arc(
                    (cx - r, cy - r, cx + r, cy + r),
                    art.whole(0, 360),
                    art.whole(360, 600),
                    fill=colour,
                    width=max(1, cell // 8),
                )
            elif kind == 3:
                draw.rectangle((cx - r, cy - r, cx + r, cy + r), fill=colour, outline=shade(colour, 0.6))
            elif kind == 4:
                draw.line((cx - r, cy, cx + r, cy), fill=colour, width=max(1, cell // 5))
                draw.line((cx, cy - r, cx, cy + r), fill=colour, width=max(1, cell // 5))
            else:
                draw.pieslice(
                    (cx - r, cy - r, cx + r, cy + r), art.pick((0, 90, 180, 270)), art.pick((360, 450)), fill=colour
                )
    return image


def walk(art: Art) -> Image.Image:
    """Threads that wander, tangle, branch or flow along a field."""
    image = Image.new("RGB", SIZE, art.colour((0, 0.7), (0, 1)))
    draw = ImageDraw.Draw(image)
    field = clouds(SIZE, art.grain, art.whole(2, 6), 2) * math.tau * art.between(0.5, 3)
    follow, palette = art.chance(0.5), [art.colour((0, 1), (0, 1)) for _ in range(3)]
    for _ in range(art.whole(3, 200)):
        x, y, angle = art.between(0, SIZE[0]), art.between(0, SIZE[1]), art.between(0, math.tau)
        points = [(x, y)]
        for _step in range(art.whole(5, 60)):
            if follow:
                angle = field[int(min(SIZE[1] - 1, max(0, y))), int(min(SIZE[0] - 1, max(0, x)))]
            else:
                angle += art.rng.gauss(0, 0.6)
            x, y = x + 7 * math.cos(angle), y + 7 * math.sin(angle)
            points.append((x, y))
        draw.line(points, fill=art.pick(palette), width=art.whole(1, 5), joint="curve")
    return image


def dots(art: Art) -> Image.Image:
    """Confetti, sand, bubbles, sparks."""
    dark = art.chance(0.5)
    image = gradient(
        SIZE,
        art.colour((0, 1), (0, 0.3) if dark else (0.7, 1)),
        art.colour((0, 1), (0, 0.3) if dark else (0.7, 1)),
        art.between(0, 360),
    )
    draw = ImageDraw.Draw(image)
    largest = math.exp(art.between(0, 4))
    for _ in range(art.whole(20, 900 if largest < 8 else 120)):
        x, y, r = art.between(0, SIZE[0]), art.between(0, SIZE[1]), art.between(0.4, largest)
        colour = art.colour((0, 1), (0.1, 1))
        if art.chance(0.5):
            draw.ellipse((x - r, y - r, x + r, y + r), fill=colour)
        else:
            draw.ellipse((x - r, y - r, x + r, y + r), outline=colour, width=max(1, int(r / 4)))
    return image


def letters(art: Art) -> Image.Image:
    """Characters strewn about, large and small, in no lines."""
    ground = art.colour((0, 0.6), (0, 1))
    image = Image.new("RGB", SIZE, ground)
    draw = ImageDraw.Draw(image)
    for _ in range(art.whole(1, 40)):
        face = art.pick((art.bold, art.serif, art.sans, art.hand))()
        colour: Colour = mix(ground, art.colour((0, 1), (0, 1)), art.between(0.5, 1))
        draw.text(
            (art.whole(-30, SIZE[0]), art.whole(-30, SIZE[1])),
            art.pick("ABGHKQRSWXZ&%$#@?!37"),
            font=face.at(art.between(20, 260)),
            fill=colour,
        )
    return image.rotate(art.between(0, 360), Image.Resampling.BICUBIC, fillcolor=ground)


def rectangles(art: Art) -> Image.Image:
    """A plane divided again and again, each part in one colour."""
    image = Image.new("RGB", SIZE)
    draw = ImageDraw.Draw(image)
    palette = [art.colour((0, 1), (0, 1)) for _ in range(art.whole(2, 7))]
    edge, width = art.pick(((0, 0, 0), (255, 255, 255), None)), art.whole(1, 9)

    def divide(left: float, top: float, right: float, bottom: float, depth: int) -> None:
        if depth == 0 or min(right - left, bottom - top) < 14 or art.chance(0.12):
            draw.rectangle((left, top, right, bottom), fill=art.pick(palette), outline=edge, width=width)
            return
        share = art.between(0.25, 0.75)
        if right - left > bottom - top:
            middle = left + share * (right - left)
            divide(left, top, middle, bottom, depth - 1)
            divide(middle, top, right, bottom, depth - 1)
        else:
            middle = top + share * (bottom - top)
            divide(left, top, right, middle, depth - 1)
            divide(left, middle, right, bottom, depth - 1)

    divide(0, 0, SIZE[0], SIZE[1], art.whole(2, 8))
    return image


def lights(art: Art) -> Image.Image:
    """Discs out of focus, beams, glows, before the dark or the bright."""
    base = np.array(art.colour((0, 1), (0, 0.5)), dtype=float)[None, None] * np.ones((SIZE[1], SIZE[0], 1))
    y, x = np.mgrid[0 : SIZE[1], 0 : SIZE[0]].astype(float)
    hard = art.chance(0.5)
    for _ in range(art.whole(1, 24)):
        r = np.hypot(x - art.between(0, SIZE[0]), (y - art.between(0, SIZE[1])) * art.between(0.5, 2)) / art.between(
            8, 130
        )
        shape = (r < 1) * 0.5 if hard else np.exp(-(r**2))
        base += shape[..., None] * np.array(art.colour((0, 1), (0.3, 1)), dtype=float) * art.between(0.2, 1)
    return to_image(base).filter(ImageFilter.GaussianBlur(art.between(0, 3)))


def emblems(art: Art) -> Image.Image:
    """One or a few signs of a game, a sport or a trade that has no name here: dials without numbers, boards, nets."""
    image = Image.new("RGB", SIZE, art.colour((0, 0.7), (0, 1)))
    draw = ImageDraw.Draw(image)
    first, second = art.colour((0, 1), (0, 1)), art.colour((0, 1), (0, 1))
    kind = art.whole(0, 4)
    if kind == 0:  # a dartboard
        for step in range(9, 0, -1):
            r = step * art.between(14, 18)
            draw.ellipse((210 - r, 180 - r, 210 + r, 180 + r), fill=first if step % 2 else second)
    elif kind == 1:  # a domino or dice
        for _die in range(art.whole(1, 5)):
            cx, cy, s = art.whole(50, 370), art.whole(50, 310), art.whole(30, 80)
            draw.rounded_rectangle((cx - s, cy - s, cx + s, cy + s), s * 0.3, fill=first, outline=second, width=3)
            for spot in range(art.whole(1, 6)):
                px, py, r = cx + (spot % 3 - 1) * s * 0.55, cy + (spot // 3 - 0.5) * s * 0.8, s * 0.13
                draw.ellipse((px - r, py - r, px + r, py + r), fill=second)
    elif kind == 2:  # a net
        step = art.whole(14, 50)
        for offset in range(-400, 900, step):
            draw.line((offset, 0, offset + art.whole(200, 210), SIZE[1]), fill=first, width=art.whole(1, 4))
            draw.line((offset, 0, offset - art.whole(200, 210), SIZE[1]), fill=first, width=art.whole(1, 4))
    elif kind == 3:  # strings over a body
        draw.ellipse((60, 40, 360, 320), fill=first)
        draw.ellipse((150, 120, 270, 240), fill=second)
        for line in range(art.whole(3, 8)):
            draw.line((150 + line * 20, 0, 150 + line * 20, SIZE[1]), fill=(230, 230, 220), width=2)
    else:  # a court
        draw.rectangle((30, 30, 390, 330), outline=first, width=5)
        draw.line((210, 30, 210, 330), fill=first, width=5)
        draw.ellipse((160, 130, 260, 230), outline=first, width=5)
        for x in (30, 330):
            draw.rectangle((x, 110, x + 60, 250), outline=first, width=5)
    return image.rotate(art.rng.gauss(0, 12), Image.Resampling.BICUBIC, fillcolor=shade(first, 0.6))


DRAWN = (waves, polar, automaton, tiles, walk, dots, letters, rectangles, lights, emblems)


def stranger(art: Art) -> Image.Image:
    """One of these, at times one over the other."""
    image = art.pick(DRAWN)(art)
    if art.chance(0.25):
        image = Image.blend(image, art.pick(DRAWN)(art), art.between(0.2, 0.6))
    if art.chance(0.15):
        image = image.convert("L").convert("RGB")
    if art.chance(0.15):
        image = image.filter(ImageFilter.GaussianBlur(art.between(0.5, 5)))
    return image
