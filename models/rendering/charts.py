"""Charts in the manner of plotting libraries and slides: axes, legends, titles, made-up numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

from PIL import Image, ImageDraw

from . import words
from .art import Art, Colour, hsv, mix
from .fonts import Face

Box = tuple[float, float, float, float]


def _palette(art: Art, count: int) -> list[Colour]:
    style = art.whole(0, 3)
    if style == 0:
        start, step = art.rng.random(), 1 / max(count, 1)
        return [hsv(start + index * step, 0.6, 0.8) for index in range(count)]
    if style == 1:
        base, other = art.vivid(), art.pale()
        return [mix(base, other, index / max(count, 1)) for index in range(count)]
    if style == 2:
        stock: list[Colour] = [
            (31, 119, 180),
            (255, 127, 14),
            (44, 160, 44),
            (214, 39, 40),
            (148, 103, 189),
            (140, 86, 75),
            (227, 119, 194),
            (127, 127, 127),
        ]
        return [stock[index % 8] for index in range(count)]
    grey = art.whole(60, 120)
    return [(grey, grey, grey) if index else art.vivid() for index in range(count)]


class Frame:
    """The picture with its margins, title, axes and legend; `box` is the plot's own area."""

    def __init__(self, art: Art, axes: bool = True) -> None:
        self.art = art
        self.size = art.pick(((900, 600), (800, 800), (1000, 500), (700, 560), (640, 480), (760, 900)))
        dark = art.chance(0.1)
        self.ground: Colour = (
            art.pick(((20, 22, 28), (0, 0, 0)))
            if dark
            else art.pick(((255, 255, 255), (255, 255, 255), (250, 248, 243), (240, 240, 240)))
        )
        self.ink: Colour = (225, 225, 230) if dark else art.pick(((30, 30, 30), (70, 70, 70)))
        self.image = Image.new("RGB", self.size, self.ground)
        self.draw = ImageDraw.Draw(self.image)
        self.face: Face = art.print_face() if art.chance(0.3) else art.sans()
        self.point = art.between(11, 19)
        width, height = self.size
        left, right, top, bottom = (
            width * art.between(0.08, 0.14),
            width * art.between(0.03, 0.2),
            height * art.between(0.05, 0.16),
            height * art.between(0.09, 0.17),
        )
        self.box: Box = (left, top, width - right, height - bottom)
        if top > height * 0.07 and art.chance(0.8):
            anchor, x = art.pick((("ma", width / 2), ("la", left)))
            self.draw.text(
                (x, top * 0.22),
                words.title(art, art.whole(2, 6)),
                font=self.face.at(self.point * art.between(1.2, 1.8)),
                fill=self.ink,
                anchor=anchor,
            )
        if axes:
            self._axes()

    def _axes(self) -> None:
        art, draw = self.art, self.draw
        left, top, right, bottom = self.box
        if art.chance(0.3):
            draw.rectangle(self.box, fill=mix(self.ground, (128, 128, 140), 0.14))
        grid = mix(self.ground, self.ink, 0.15) if art.chance(0.7) else None
        ticks = art.whole(4, 8)
        top_value = art.pick((1, 5, 10, 50, 100, 1000))
        for index in range(ticks + 1):
            y = bottom - (bottom - top) * index / ticks
            x = left + (right - left) * index / ticks
            if grid:
                draw.line((left, y, right, y), fill=grid)
                if art.chance(0.6):
                    draw.line((x, top, x, bottom), fill=grid)
            draw.text(
                (left - 6, y),
                f"{top_value * index / ticks:g}"[:5],
                font=self.face.at(self.point * 0.8),
                fill=self.ink,
                anchor="rm",
            )
            draw.text(
                (x, bottom + 6),
                str(2000 + index * 2) if top_value > 50 else f"{index * 2}",
                font=self.face.at(self.point * 0.8),
                fill=self.ink,
                anchor="ma",
            )
        if art.chance(0.7):
            draw.line((left, top, left, bottom), fill=self.ink, width=art.pick((1, 2)))
            draw.line((left, bottom, right, bottom), fill=self.ink, width=art.pick((1, 2)))
        draw.text(
            ((left + right) / 2, bottom + self.point * 2),
            words.title(art, art.whole(1, 3)),
            font=self.face.at(self.point),
            fill=self.ink,
            anchor="ma",
        )

    def legend(self, colours: list[Colour]) -> None:
        """Names beside patches of colour, most of the time."""
        if not self.art.chance(0.6):
            return
        x, y = self.box[2] - 110 if self.size[0] - self.box[2] < 90 else self.box[2] + 8, self.box[1] + 10
        for index, colour in enumerate(colours[:8]):
            top = y + index * self.point * 1.5
            self.draw.rectangle((x, top, x + self.point, top + self.point), fill=colour)
            self.draw.text(
                (x + self.point * 1.4, top),
                self.art.pick(words.GOODS),
                font=self.face.at(self.point * 0.85),
                fill=self.ink,
            )


def _series(art: Art, count: int) -> list[float]:
    level, values = art.between(0.2, 0.7), []
    drift, jitter = art.between(-0.5, 0.5) / count, art.between(0.01, 0.12)
    for index in range(count):
        level += drift + art.rng.gauss(0, jitter)
        values.append(min(0.97, max(0.03, level + 0.1 * math.sin(index / 3))))
    return values


def _bars(art: Art, draw: ImageDraw.ImageDraw, box: Box, colours: list[Colour], groups: int) -> None:
    left, top, right, bottom = box
    flat, stacked = art.chance(0.25), art.chance(0.25)
    span = (bottom - top) if flat else (right - left)
    slot = span / groups
    width = slot * art.between(0.5, 0.9)
    for group in range(groups):
        base = 0.0
        for index, colour in enumerate(colours):
            value = art.between(0.05, 0.95) / (len(colours) if stacked else 1)
            if stacked:
                low, high, offset, thick = base, base + value, (slot - width) / 2, width
                base += value
            else:
                low, high, offset, thick = (
                    0.0,
                    value,
                    (slot - width) / 2 + width * index / len(colours),
                    width / len(colours),
                )
            if flat:
                y = top + group * slot + offset
                draw.rectangle(
                    (left + (right - left) * low, y, left + (right - left) * high, y + thick - 1), fill=colour
                )
            else:
                x = left + group * slot + offset
                draw.rectangle(
                    (x, bottom - (bottom - top) * high, x + thick - 1, bottom - (bottom - top) * low), fill=colour
                )


def bar_chart(art: Art) -> Image.Image:
    """Bars, grouped, stacked or lying."""
    frame = Frame(art)
    colours = _palette(art, art.pick((1, 1, 2, 3, 4)))
    _bars(art, frame.draw, frame.box, colours, art.whole(3, 14))
    frame.legend(colours)
    return frame.image


def _line(art: Art, draw: ImageDraw.ImageDraw, box: Box, colour: Colour, area: bool = False) -> None:
    left, top, right, bottom = box
    values = _series(art, art.pick((8, 12, 30, 80)))
    points = [
        (left + (right - left) * i / (len(values) - 1), bottom - (bottom - top) * v) for i, v in enumerate(values)
    ]
    if area:
        draw.polygon([(left, bottom), *points, (right, bottom)], fill=mix(colour, (255, 255, 255), 0.5))
    draw.line(points, fill=colour, width=art.pick((1, 2, 3, 5)))
    if len(values) < 20 and art.chance(0.6):
        for x, y in points:
            draw.ellipse((x - 4, y - 4, x + 4, y + 4), fill=colour)


def line_chart(art: Art) -> Image.Image:
    """One to six series over one axis."""
    frame = Frame(art)
    colours = _palette(art, art.whole(1, 6))
    area = art.chance(0.25)
    for colour in colours:
        _line(art, frame.draw, frame.box, colour, area)
    frame.legend(colours)
    return frame.image


def scatter_plot(art: Art) -> Image.Image:
    """Clouds of points."""
    frame = Frame(art)
    left, top, right, bottom = frame.box
    colours = _palette(art, art.whole(1, 5))
    for colour in colours:
        cx, cy, sx, sy = (
            art.between(0.25, 0.75),
            art.between(0.25, 0.75),
            art.between(0.05, 0.2),
            art.between(0.05, 0.2),
        )
        tilt = art.between(-0.9, 0.9)
        radius = art.between(2, 9)
        for _ in range(art.whole(15, 160)):
            a, b = art.rng.gauss(0, 1), art.rng.gauss(0, 1)
            x, y = cx + sx * a, cy + sy * (tilt * a + b * 0.6)
            if 0.01 < x < 0.99 and 0.01 < y < 0.99:
                r = radius * (art.between(0.6, 2.2) if art.chance(0.2) else 1)
                px, py = left + (right - left) * x, bottom - (bottom - top) * y
                frame.draw.ellipse((px - r, py - r, px + r, py + r), fill=colour, outline=frame.ground)
    if art.chance(0.3):
        frame.draw.line(
            (left, bottom - (bottom - top) * art.rng.random(), right, bottom - (bottom - top) * art.rng.random()),
            fill=frame.ink,
            width=2,
        )
    frame.legend(colours)
    return frame.image


def pie_chart(art: Art) -> Image.Image:
    """A pie or a ring."""
    frame = Frame(art, axes=False)
    left, top, right, bottom = frame.box
    shares = [art.between(0.1, 1) for _ in range(art.whole(2, 8))]
    colours = _palette(art, len(shares))
    radius = min(right - left, bottom - top) / 2
    cx, cy = (left + right) / 2, (top + bottom) / 2
    angle = art.between(0, 360)
    for share, colour in zip(shares, colours, strict=True):
        sweep = 360 * share / sum(shares)
        frame.draw.pieslice(
            (cx - radius, cy - radius, cx + radius, cy + radius),
            angle,
            angle + sweep,
            fill=colour,
            outline=frame.ground,
        )
        middle = math.radians(angle + sweep / 2)
        frame.draw.text(
            (cx + radius * 0.7 * math.cos(middle), cy + radius * 0.7 * math.sin(middle)),
            f"{100 * share / sum(shares):.0f}%",
            font=frame.face.at(frame.point),
            fill=frame.ground,
            anchor="mm",
        )
        angle += sweep
    if art.chance(0.4):
        inner = radius * art.between(0.4, 0.65)
        frame.draw.ellipse((cx - inner, cy - inner, cx + inner, cy + inner), fill=frame.ground)
    frame.legend(colours)
    return frame.image


def _heat(art: Art) -> Image.Image:
    frame = Frame(art)
    left, top, right, bottom = frame.box
    columns, rows = art.whole(4, 24), art.whole(4, 20)
    first, second = art.vivid(), art.pale()
    for column in range(columns):
        for row in range(rows):
            share = min(1.0, max(0.0, 0.5 + 0.5 * math.sin(column / 3 + row / 4) + art.rng.gauss(0, 0.2)))
            x, y = left + (right - left) * column / columns, top + (bottom - top) * row / rows
            frame.draw.rectangle(
                (x, y, x + (right - left) / columns, y + (bottom - top) / rows), fill=mix(first, second, share)
            )
    return frame.image


def _boxes(art: Art) -> Image.Image:
    frame = Frame(art)
    left, top, right, bottom = frame.box
    count = art.whole(3, 9)
    colours = _palette(art, count)
    for index in range(count):
        x = left + (right - left) * (index + 0.5) / count
        half = (right - left) / count * 0.28
        low, q1, middle, q3, high = sorted(art.between(0.05, 0.95) for _ in range(5))
        at = [bottom - (bottom - top) * value for value in (low, q1, middle, q3, high)]
        frame.draw.line((x, at[0], x, at[4]), fill=frame.ink)
        if art.chance(0.25):
            frame.draw.ellipse((x - half, at[4], x + half, at[0]), fill=colours[index])
        frame.draw.rectangle((x - half, at[3], x + half, at[1]), fill=colours[index], outline=frame.ink)
        frame.draw.line((x - half, at[2], x + half, at[2]), fill=frame.ink, width=2)
    return frame.image


def _radar(art: Art) -> Image.Image:
    frame = Frame(art, axes=False)
    left, top, right, bottom = frame.box
    cx, cy, radius = (left + right) / 2, (top + bottom) / 2, min(right - left, bottom - top) / 2
    spokes = art.whole(4, 9)
    angles = [math.tau * index / spokes for index in range(spokes)]
    for ring in range(1, 6):
        points = [(cx + radius * ring / 5 * math.cos(a), cy + radius * ring / 5 * math.sin(a)) for a in angles]
        frame.draw.polygon(points, outline=mix(frame.ground, frame.ink, 0.3))
    colours = _palette(art, art.whole(1, 3))
    for colour in colours:
        points = [
            (cx + radius * (r := art.between(0.3, 1)) * math.cos(a), cy + radius * r * math.sin(a)) for a in angles
        ]
        frame.draw.polygon(points, outline=colour, width=4)
    frame.legend(colours)
    return frame.image


def mini_chart(art: Art, image: Image.Image, box: Box, colour: Colour) -> None:
    """A small chart inside something else, such as a dashboard."""
    draw = ImageDraw.Draw(image)
    if art.chance(0.5):
        _bars(art, draw, box, [colour], art.whole(5, 12))
    else:
        _line(art, draw, box, colour, art.chance(0.5))


PLOTS: tuple[Callable[[Art], Image.Image], ...] = (
    bar_chart,
    line_chart,
    scatter_plot,
    pie_chart,
    _heat,
    _boxes,
    _radar,
)


def chart(art: Art) -> Image.Image:
    """Any chart, or several side by side as papers print them."""
    if not art.chance(0.3):
        return art.pick(PLOTS)(art)
    columns, rows = art.pick(((2, 1), (2, 2), (3, 1), (1, 2), (3, 2)))
    cell = (380, 300)
    sheet = Image.new("RGB", (columns * cell[0], rows * cell[1]), (255, 255, 255))
    plot = art.pick(PLOTS)
    for index in range(columns * rows):
        sheet.paste(plot(art).resize(cell), (index % columns * cell[0], index // columns * cell[1]))
    return sheet
