"""More pictures of nothing in particular, beside `strangers`: growths, plants, blots, lumps, rosettes, flames, signs.

`models.vision.gate` learns from these and from `strangers` what to say nothing about. None is of `unknown`'s kinds,
which only measure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from . import strangers
from .art import Art, Colour, Floats, clouds, gradient, mix, shade, to_image

SIZE = (420, 360)


def _grid() -> tuple[Floats, Floats]:
    y, x = np.mgrid[0 : SIZE[1], 0 : SIZE[0]].astype(float)
    return x / SIZE[0] * 2 - 1, y / SIZE[1] * 2 - 1


def _ramp(art: Art, field: Floats) -> Image.Image:
    """A field between 0 and 1 in colours that run into each other."""
    stops = np.array([art.colour((0, 1), (0, 1)) for _ in range(art.whole(2, 5))], dtype=float)
    at = np.clip(field, 0, 1) * (len(stops) - 1)
    return to_image(np.stack([np.interp(at, np.arange(len(stops)), stops[:, c]) for c in range(3)], axis=-1))


def _scaled(field: Floats) -> Floats:
    low, high = float(field.min()), float(field.max())
    scaled: Floats = (field - low) / max(1e-9, high - low)
    return scaled


def network(art: Art) -> Image.Image:
    """A small random network from place to colour."""
    x, y = _grid()
    values = np.stack([x, y, np.hypot(x, y), np.ones_like(x)], axis=-1) * art.between(0.5, 4)
    bends: tuple[Callable[[Floats], Floats], ...] = (np.tanh, np.sin, np.abs, lambda v: np.exp(-(v**2)))
    for _ in range(art.whole(2, 5)):
        weights = art.grain.normal(0, 1.2, (values.shape[-1], art.pick((6, 10, 16))))
        values = art.pick(bends)(values @ weights)
    colours = values @ art.grain.normal(0, 1.2, (values.shape[-1], 3))
    return to_image(255 / (1 + np.exp(-art.between(0.7, 4) * colours)))


def growth(art: Art) -> Image.Image:
    """Spots and worms as reaction and diffusion leave them, by sharpening noise again and again."""
    wide, tall = SIZE[0] // 2, SIZE[1] // 2
    field = art.grain.normal(0, 1, (tall, wide))
    near, far = art.between(1.2, 3), art.between(1.5, 2.2)
    rates = np.hypot(*np.meshgrid(np.fft.fftfreq(wide), np.fft.fftfreq(tall)))
    band = np.exp(-((rates * near * 6) ** 2)) - np.exp(-((rates * near * far * 6) ** 2))
    for _ in range(art.whole(3, 9)):
        field = np.fft.ifft2(np.fft.fft2(field) * band).real
        field = np.tanh(3 * (field - art.between(-0.2, 0.2) * field.std()) / field.std())
    return _ramp(art, _scaled(field)).resize(SIZE, Image.Resampling.BICUBIC)


def branches(art: Art) -> Image.Image:
    """What forks again and again: twigs, corals, lightning, roots."""
    ground = gradient(SIZE, art.colour((0, 0.6), (0, 1)), art.colour((0, 0.6), (0, 1)), art.between(0, 360))
    draw = ImageDraw.Draw(ground)
    ink, end = art.colour((0, 1), (0, 1)), art.colour((0, 1), (0, 1))
    spread, shrink, crooked = art.between(0.25, 1.0), art.between(0.68, 0.86), art.between(0, 0.3)
    budget = [900]

    def fork(x: float, y: float, angle: float, length: float, depth: int) -> None:
        budget[0] -= 1
        if depth == 0 or length < 3 or budget[0] < 0:
            return
        tip = (x + length * math.cos(angle), y + length * math.sin(angle))
        colour = mix(end, ink, min(1.0, length / 80))
        draw.line((x, y, *tip), fill=colour, width=max(1, int(length / 9)))
        for side in art.pick(((-1, 1), (-1, 1), (-1, 0, 1))):
            turn = side * spread + art.rng.gauss(0, crooked)
            fork(*tip, angle + turn, length * shrink * art.between(0.8, 1.1), depth - 1)

    for _ in range(art.whole(1, 4)):
        edge = art.pick(((art.between(0, 420), 360.0, -math.pi / 2), (0.0, art.between(0, 360), 0.0), (210, 0, 1.57)))
        fork(*edge, art.between(40, 100), art.whole(6, 9))
    return ground


def blot(art: Art) -> Image.Image:
    """Ink that was folded or splashed."""
    field = clouds(SIZE, art.grain, art.whole(3, 9), art.whole(2, 5))
    x, y = _grid()
    field = field - np.hypot(x, y) * art.between(0.1, 0.6)
    if art.chance(0.6):
        field = (field + field[:, ::-1]) / 2
    level = float(np.quantile(field, art.between(0.4, 0.85)))
    soft = art.pick((0.004, 0.02, 0.08))
    share = 1 / (1 + np.exp(np.clip(-(field - level) / soft, -50, 50)))
    ink, paper = np.array(art.colour((0, 1), (0, 0.6)), float), np.array(art.colour((0, 0.3), (0.7, 1)), float)
    if art.chance(0.3):
        ink, paper = paper, ink
    return to_image(paper + (ink - paper) * share[..., None])


def lumps(art: Art) -> Image.Image:
    """Balls lit from one side, before a wall."""
    x, y = _grid()
    image = np.array(art.colour((0, 0.7), (0, 1)), float) * (0.7 + 0.3 * y)[..., None]
    light = np.array([art.between(-1, 1), art.between(-1, 0.2), 0.8])
    light /= np.linalg.norm(light)
    palette = [np.array(art.colour((0, 1), (0.2, 1)), float) for _ in range(3)]
    shine = art.whole(3, 60)
    for _ in range(art.whole(1, 22)):
        r = art.between(0.06, 0.45)
        dx, dy = (x - art.between(-1, 1)) / r, (y - art.between(-1, 1)) / r * 0.86
        inside = dx**2 + dy**2 < 1
        z = np.sqrt(np.clip(1 - dx**2 - dy**2, 0, 1))
        lit = np.clip(dx * light[0] + dy * light[1] + z * light[2], 0, 1)
        body = art.pick(palette) * (0.15 + 0.85 * lit)[..., None] + 200 * (lit**shine)[..., None]
        image = np.where(inside[..., None], body, image)
    return to_image(image)


def rosette(art: Art) -> Image.Image:
    """One wedge of scrawl, turned and mirrored about the middle as a kaleidoscope does."""
    x, y = _grid()
    count = art.whole(3, 12)
    turn = np.abs((np.arctan2(y, x) / math.tau * count) % 1 - 0.5) * 2
    radius = np.hypot(x, y)
    source = np.asarray(art.pick((strangers.walk, strangers.dots, strangers.rectangles, strangers.waves))(art))
    tall, wide = source.shape[:2]
    rows = (radius / 1.45 * (tall - 1)).astype(int)
    columns = (turn * art.between(0.2, 0.9) * (wide - 1)).astype(int)
    return Image.fromarray(source[np.clip(rows, 0, tall - 1), np.clip(columns, 0, wide - 1)])


def flames(art: Art) -> Image.Image:
    """Fire, smoke, water or northern lights: noise drawn out and bent."""
    field = clouds(SIZE, art.grain, art.whole(2, 7), 5, art.between(0.4, 0.7))
    bend = clouds(SIZE, art.grain, art.whole(2, 4), 3) - 0.5
    y, x = np.mgrid[0 : SIZE[1], 0 : SIZE[0]]
    reach, flat = art.between(20, 160), art.between(0.1, 1)
    rows = np.clip(y * flat + bend * reach, 0, SIZE[1] - 1).astype(int)
    columns = np.clip(x + bend.T[0, 0] + bend * reach * art.between(-1, 1), 0, SIZE[0] - 1).astype(int)
    field = field[rows, columns]
    if art.chance(0.5):
        field = 1 - np.abs(field * 2 - 1) ** art.between(0.3, 2)
    if art.chance(0.5):
        field = field * (y / SIZE[1]) ** art.between(0.3, 2)
    return _ramp(art, _scaled(field))


def signs(art: Art) -> Image.Image:
    """Large made-up signs of strokes and dots, alone or a few of them in a grid."""
    ground = art.colour((0, 0.7), (0, 1))
    image = Image.new("RGB", SIZE, ground)
    draw = ImageDraw.Draw(image)
    ink = mix(ground, art.colour((0, 1), (0, 1)), art.between(0.6, 1))
    across, down = art.whole(1, 6), art.whole(1, 5)
    cell = min(SIZE[0] / across, SIZE[1] / down)
    width = max(2, int(cell * art.between(0.04, 0.14)))
    for row in range(down):
        for column in range(across):
            points = [
                ((column + px) * SIZE[0] / across, (row + py) * SIZE[1] / down)
                for px in (0.2, 0.5, 0.8)
                for py in (0.2, 0.5, 0.8)
            ]
            for _ in range(art.whole(2, 6)):
                (ax, ay), (bx, by) = art.rng.sample(points, 2)
                if art.chance(0.7):
                    draw.line((ax, ay, bx, by), fill=ink, width=width)
                else:
                    r = cell * art.between(0.05, 0.25)
                    draw.ellipse((ax - r, ay - r, ax + r, ay + r), outline=ink, width=width)
    return image


def sprites(art: Art) -> Image.Image:
    """Little figures of square dots, mirrored, as old games had them."""
    ground = art.colour((0, 1), (0, 0.4)) if art.chance(0.6) else art.colour((0, 0.4), (0.7, 1))
    cells, across = art.whole(5, 16), art.whole(1, 5)
    canvas = np.ones((cells * across, cells * across, 3)) * np.array(ground, float)
    for row in range(across):
        for column in range(across):
            half = art.grain.random((cells - 2, (cells - 1) // 2)) < art.between(0.35, 0.6)
            body = np.concatenate([half, half[:, ::-1]], axis=1)
            colour = np.array(art.colour((0, 1), (0.2, 1)), float)
            top, left = row * cells + 1, column * cells + 1
            part = canvas[top : top + body.shape[0], left : left + body.shape[1]]
            part[body] = colour
    return to_image(canvas).resize((360, 360), Image.Resampling.NEAREST)


def petals(art: Art) -> Image.Image:
    """Blossoms or propellers: leaves around a middle, one or many."""
    image = gradient(SIZE, art.colour((0, 0.8), (0, 1)), art.colour((0, 0.8), (0, 1)), art.between(0, 360))
    draw = ImageDraw.Draw(image)
    for _ in range(art.whole(1, 14)):
        cx, cy, r, count = art.between(0, 420), art.between(0, 360), art.between(18, 170), art.whole(3, 14)
        first, second = art.colour((0, 1), (0.2, 1)), art.colour((0, 1), (0.2, 1))
        phase, slim = art.between(0, 1), art.between(0.12, 0.5)
        for leaf in range(count):
            angle = math.tau * leaf / count + phase
            outline = []
            for step in range(25):
                along = step / 24
                side = math.sin(math.pi * along) * slim * r * (1 if step < 13 else -1)
                reach = r * (along if step < 13 else 1 - along) * 2
                outline.append(
                    (
                        cx + reach * math.cos(angle) - side * math.sin(angle),
                        cy + reach * math.sin(angle) + side * math.cos(angle),
                    )
                )
            draw.polygon(outline, fill=mix(first, second, leaf % 2 * 0.4), outline=shade(first, 0.6))
        draw.ellipse((cx - r / 4, cy - r / 4, cx + r / 4, cy + r / 4), fill=second)
    return image


def blocks(art: Art) -> Image.Image:
    """Cubes stacked in a slanting view, as toy bricks."""
    image = gradient(SIZE, art.colour((0, 0.5), (0.3, 1)), art.colour((0, 0.5), (0.3, 1)))
    draw = ImageDraw.Draw(image)
    palette = [art.colour((0.1, 1), (0.3, 1)) for _ in range(art.whole(1, 4))]
    side, count = art.between(14, 60), art.whole(3, 12)
    heights = art.grain.integers(0, art.whole(2, 6), (count, count))
    for row in range(count):
        for column in range(count):
            for level in range(int(heights[row, column])):
                x = 210 + (column - row) * side * 0.87
                y = 150 + (column + row - count) * side * 0.5 - level * side
                colour: Colour = art.pick(palette)
                up, right, down = (x, y - side / 2), (x + side * 0.87, y), (x, y + side / 2)
                left = (x - side * 0.87, y)
                draw.polygon((up, right, down, left), fill=shade(colour, 1.2))
                draw.polygon((left, down, (x, y + side * 1.5), (left[0], y + side)), fill=shade(colour, 0.75))
                draw.polygon((right, down, (x, y + side * 1.5), (right[0], y + side)), fill=shade(colour, 0.5))
    return image


def ropes(art: Art) -> Image.Image:
    """Thick bands that loop over each other, edged or shaded."""
    image = Image.new("RGB", SIZE, art.colour((0, 0.7), (0, 1)))
    draw = ImageDraw.Draw(image)
    for _ in range(art.whole(1, 6)):
        colour, width = art.colour((0, 1), (0.2, 1)), art.whole(8, 44)
        waves = [(art.whole(1, 4), art.between(20, 110), art.between(0, math.tau)) for _ in range(4)]
        cx, cy = art.between(120, 300), art.between(100, 260)
        points = []
        for step in range(160):
            t = math.tau * step / 159
            x = cx + sum(size * math.sin(rate * t + phase) for rate, size, phase in waves[:2])
            y = cy + sum(size * math.cos(rate * t + phase) for rate, size, phase in waves[2:])
            points.append((x, y))
        for start in range(0, 156, 4):
            part = points[start : start + 6]
            draw.line(part, fill=shade(colour, 0.4), width=width, joint="curve")
            draw.line(part, fill=colour, width=max(2, int(width * 0.75)), joint="curve")
            draw.line(part, fill=shade(colour, 1.4), width=max(1, width // 5), joint="curve")
    return image


def scales(art: Art) -> Image.Image:
    """Rows of overlapping scales, feathers, shingles or bricks, each a shade of its own."""
    image = Image.new("RGB", SIZE, art.colour((0, 0.8), (0, 1)))
    draw = ImageDraw.Draw(image)
    wide, tall = art.between(14, 90), art.between(10, 60)
    first, second = art.colour((0, 1), (0.1, 1)), art.colour((0, 1), (0.1, 1))
    edge = shade(first, art.pick((0.4, 0.7, 1.3)))
    squared = art.chance(0.4)
    for row in range(int(SIZE[1] / tall) + 2, -2, -1):
        for column in range(-1, int(SIZE[0] / wide) + 2):
            x, y = (column + row % 2 / 2) * wide, row * tall
            fill = shade(mix(first, second, art.rng.random() ** 2), art.between(0.8, 1.2))
            if squared:
                draw.rectangle((x, y, x + wide, y + tall), fill=fill, outline=edge, width=max(1, int(wide / 14)))
            else:
                draw.ellipse((x, y - tall, x + wide, y + tall), fill=fill, outline=edge, width=max(1, int(wide / 20)))
    return image.rotate(art.pick((0, 0, 180, art.between(0, 360))), Image.Resampling.BICUBIC)


def camouflage(art: Art) -> Image.Image:
    """A few flat colours in patches without meaning."""
    field = clouds(SIZE, art.grain, art.whole(2, 10), art.whole(1, 4))
    count = art.whole(3, 6)
    levels = np.searchsorted(np.quantile(field, np.linspace(0, 1, count + 1)[1:-1]), field)
    palette = np.array([art.colour((0, 1), (0.1, 1)) for _ in range(count)], float)
    image = to_image(palette[levels])
    if art.chance(0.4):
        small = image.resize((art.whole(20, 70), art.whole(18, 60)), Image.Resampling.NEAREST)
        return small.resize(SIZE, Image.Resampling.NEAREST)
    return image


def scraps(art: Art) -> Image.Image:
    """Torn pieces of other pictures of nothing, laid over each other."""
    image = art.pick(strangers.DRAWN)(art).resize(SIZE)
    for _ in range(art.whole(2, 8)):
        piece = art.pick((*strangers.DRAWN, network, growth, blot, flames, camouflage))(art).resize(SIZE)
        mask = Image.new("L", SIZE, 0)
        cx, cy, r = art.between(0, 420), art.between(0, 360), art.between(40, 190)
        corners = art.whole(3, 12)
        outline = []
        for corner in range(corners):
            angle, reach = math.tau * corner / corners, r * art.between(0.6, 1.1)
            outline.append((cx + reach * math.cos(angle), cy + reach * math.sin(angle)))
        ImageDraw.Draw(mask).polygon(outline, fill=255)
        image.paste(piece, (0, 0), mask.filter(ImageFilter.GaussianBlur(art.pick((0, 0, 2, 12)))))
    return image


NOWHERE: Mapping[str, Callable[[Art], Image.Image]] = {
    draw.__name__: draw
    for draw in (
        *strangers.DRAWN,
        network, growth, branches, blot, lumps, rosette, flames, signs,
        sprites, petals, blocks, ropes, scales, camouflage, scraps,
    )
}  # fmt: skip
"""All kinds of pictures of nothing that training may see, by name."""
