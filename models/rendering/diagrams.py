"""Diagrams: flowcharts, architectures with icons, networks, trees, sequences, timelines."""

from __future__ import annotations

import itertools
import math

from PIL import Image, ImageDraw

from . import words
from .art import Art, Colour, fit, luminance, mix, shade
from .code import NOUNS
from .fonts import Face


class Board:
    """A drawing surface with one style for boxes, arrows and letters."""

    def __init__(self, art: Art, size: tuple[int, int] | None = None) -> None:
        self.art = art
        self.size = size or art.pick(((900, 600), (800, 800), (1100, 520), (600, 900), (760, 560)))
        dark = art.chance(0.12)
        self.ground: Colour = (
            (26, 28, 34)
            if dark
            else art.pick(((255, 255, 255), (255, 255, 255), (255, 255, 255), (248, 249, 252), (250, 246, 235)))
        )
        self.ink: Colour = (225, 228, 235) if dark else art.pick(((20, 20, 20), (60, 64, 72)))
        self.image = Image.new("RGB", self.size, self.ground)
        self.draw = ImageDraw.Draw(self.image)
        self.face: Face = art.hand() if art.chance(0.08) else art.sans()
        self.fills = [art.pick((self.ground, art.pale(), art.colour((0.3, 0.8), (0.6, 0.95)))) for _ in range(3)]
        self.width = art.pick((1, 2, 2, 3))
        self.bent = art.chance(0.4)

    def label(self) -> str:
        """What might stand in a box."""
        art = self.art
        return art.pick(
            (
                f"{art.pick(NOUNS).title()} {art.pick(NOUNS)}",
                art.pick(NOUNS).title(),
                words.title(art, 2),
                f"{art.pick(NOUNS)}()",
                art.pick(("API", "DB", "Start", "End", "Load balancer", "Cache", "Client", "Gateway")),
            )
        )

    def node(
        self, x: float, y: float, w: float, h: float, shape: str, text: str | None = None, fill: Colour | None = None
    ) -> None:
        """A shape with its text, around a centre."""
        fill = fill or self.art.pick(self.fills)
        box = (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
        if shape == "diamond":
            self.draw.polygon(
                [(x, box[1] - h * 0.2), (box[2], y), (x, box[3] + h * 0.2), (box[0], y)],
                fill=fill,
                outline=self.ink,
                width=self.width,
            )
        elif shape == "ellipse":
            self.draw.ellipse(box, fill=fill, outline=self.ink, width=self.width)
        elif shape == "round":
            self.draw.rounded_rectangle(box, h * 0.3, fill=fill, outline=self.ink, width=self.width)
        elif shape == "drum":
            self.draw.rectangle(
                (box[0], box[1] + h * 0.12, box[2], box[3] - h * 0.12), fill=fill, outline=self.ink, width=self.width
            )
            self.draw.ellipse(
                (box[0], box[3] - h * 0.25, box[2], box[3]), fill=fill, outline=self.ink, width=self.width
            )
            self.draw.ellipse(
                (box[0], box[1], box[2], box[1] + h * 0.25), fill=fill, outline=self.ink, width=self.width
            )
        else:
            self.draw.rectangle(box, fill=fill, outline=self.ink, width=self.width)
        text = self.label() if text is None else text
        ink: Colour = (250, 250, 250) if luminance(fill) < 0.45 else (25, 25, 28)
        size = fit(self.draw, text or " ", self.face, min(h * 0.4, 26), w * 0.86)
        self.draw.text((x, y), text, font=self.face.at(size), fill=ink, anchor="mm")

    def arrow(self, a: tuple[float, float], b: tuple[float, float], head: bool = True, text: str = "") -> None:
        """A line with a head, straight or bent once."""
        ink = self.ink
        if self.bent and abs(a[0] - b[0]) > 4 and abs(a[1] - b[1]) > 4:
            middle = (a[1] + b[1]) / 2
            self.draw.line((a, (a[0], middle), (b[0], middle), b), fill=ink, width=self.width)
            a = (b[0], middle)
        else:
            self.draw.line((a, b), fill=ink, width=self.width)
        if head:
            angle = math.atan2(b[1] - a[1], b[0] - a[0])
            points = [b] + [
                (b[0] - 12 * math.cos(angle + side), b[1] - 12 * math.sin(angle + side)) for side in (-0.45, 0.45)
            ]
            self.draw.polygon(points, fill=ink)
        if text:
            self.draw.text(
                ((a[0] + b[0]) / 2 + 4, (a[1] + b[1]) / 2), text, font=self.face.at(14), fill=ink, anchor="lm"
            )


def flowchart(art: Art) -> Image.Image:
    """Boxes and diamonds in rows."""
    board = Board(art)
    width, height = board.size
    rows, columns = art.whole(3, 6), art.whole(1, 4)
    w, h = width / columns * art.between(0.5, 0.72), height / rows * art.between(0.36, 0.5)
    places = {}
    for row in range(rows):
        for column in range(columns):
            if row and art.chance(0.2) and columns > 1:
                continue
            x, y = width * (column + 0.5) / columns, height * (row + 0.5) / rows
            places[(row, column)] = (x, y)
    for (row, column), (x, y) in places.items():
        for other in ((row + 1, column), (row + 1, column + art.pick((-1, 1))), (row, column + 1)):
            if other in places and art.chance(0.75):
                ox, oy = places[other]
                if other[0] == row:
                    board.arrow((x + w / 2, y), (ox - w / 2, oy), text=art.pick(("", "", "yes", "no")))
                else:
                    board.arrow((x, y + h / 2), (ox, oy - h / 2), text=art.pick(("", "", "yes", "no")))
    for (row, _), (x, y) in places.items():
        board.node(x, y, w, h, "round" if row in (0, rows - 1) else art.pick(("box", "box", "diamond", "round")))
    return board.image


def _architecture(art: Art) -> Image.Image:
    board = Board(art)
    width, height = board.size
    for _ in range(art.whole(1, 3)):
        x, y = art.whole(10, width // 2), art.whole(10, height // 2)
        w, h = art.whole(width // 4, width // 2), art.whole(height // 4, height // 2)
        board.draw.rounded_rectangle(
            (x, y, x + w, y + h),
            10,
            fill=mix(board.ground, art.vivid(), 0.1),
            outline=mix(board.ground, board.ink, 0.4),
        )
        board.draw.text((x + 10, y + 6), words.title(art, 2), font=board.face.at(15), fill=board.ink)
    places = []
    columns, rows = art.whole(2, 5), art.whole(2, 4)
    for column in range(columns):
        for row in range(rows):
            if art.chance(0.75):
                places.append(
                    (
                        width * (column + 0.5) / columns + art.whole(-15, 15),
                        height * (row + 0.5) / rows + art.whole(-10, 10),
                    )
                )
    for index in range(len(places) - 1):
        board.arrow(places[index], places[art.whole(index + 1, len(places) - 1)], art.chance(0.8))
    size = min(width / columns, height / rows) * 0.34
    colours = [art.vivid() for _ in range(3)]
    for px, py in places:
        colour = art.pick(colours)
        board.draw.rounded_rectangle(
            (px - size / 2, py - size / 2, px + size / 2, py + size / 2), size * 0.14, fill=colour
        )
        shape = art.whole(0, 2)
        box = (px - size * 0.25, py - size * 0.25, px + size * 0.25, py + size * 0.25)
        if shape == 0:
            board.draw.ellipse(box, outline=(255, 255, 255), width=3)
        elif shape == 1:
            board.draw.rectangle(box, outline=(255, 255, 255), width=3)
        else:
            board.draw.polygon([(px, box[1]), (box[2], box[3]), (box[0], box[3])], outline=(255, 255, 255), width=3)
        board.draw.text((px, py + size * 0.58), board.label(), font=board.face.at(14), fill=board.ink, anchor="ma")
    return board.image


def _network(art: Art) -> Image.Image:
    board = Board(art)
    width, height = board.size
    if art.chance(0.45):
        layers = [art.whole(2, 7) for _ in range(art.whole(3, 5))]
        places = [
            [(width * (i + 0.7) / (len(layers) + 0.4), height * (j + 0.7) / (count + 0.4)) for j in range(count)]
            for i, count in enumerate(layers)
        ]
        for first, second in itertools.pairwise(places):
            for a in first:
                for b in second:
                    board.draw.line((a, b), fill=mix(board.ground, board.ink, 0.5))
        for layer in places:
            fill = art.colour((0.2, 0.7), (0.6, 1.0))
            for x, y in layer:
                board.node(x, y, 44, 44, "ellipse", "", fill)
        return board.image
    count = art.whole(5, 14)
    ring = art.chance(0.4)
    spots = [
        (
            width / 2 + width * 0.38 * math.cos(math.tau * i / count),
            height / 2 + height * 0.38 * math.sin(math.tau * i / count),
        )
        if ring
        else (art.between(0.1, 0.9) * width, art.between(0.1, 0.9) * height)
        for i in range(count)
    ]
    for i in range(count):
        for j in {(i + 1) % count, art.whole(0, count - 1)} - {i}:
            (ax, ay), (bx, by) = spots[i], spots[j]
            length = max(1.0, math.hypot(bx - ax, by - ay))
            board.arrow(
                (ax, ay),
                (bx - (bx - ax) / length * 30, by - (by - ay) / length * 30),
                art.chance(0.6),
                art.pick(("", "", str(art.whole(1, 9)))),
            )
    for index, (x, y) in enumerate(spots):
        board.node(x, y, 60, 60, "ellipse", art.pick((str(index), chr(65 + index))))
    return board.image


def _tree(art: Art) -> Image.Image:
    board = Board(art)
    width, height = board.size
    levels = art.whole(3, 4)
    above: list[tuple[float, float]] = [(width / 2, height * 0.1)]
    everything = [above]
    for level in range(1, levels):
        count = min(9, len(above) * art.whole(2, 3))
        row = [(width * (i + 0.5) / count, height * (0.1 + 0.8 * level / (levels - 1))) for i in range(count)]
        for index, place in enumerate(row):
            board.arrow(above[index * len(above) // count], place, art.chance(0.3))
        everything.append(row)
        above = row
    for row in everything:
        for x, y in row:
            board.node(x, y, min(150, width / len(row) * 0.8), height * 0.1, art.pick(("box", "round")))
    return board.image


def _sequence(art: Art) -> Image.Image:
    board = Board(art)
    width, height = board.size
    count = art.whole(3, 5)
    xs = [width * (i + 0.5) / count for i in range(count)]
    for x in xs:
        for y in range(80, height - 20, 12):
            board.draw.line((x, y, x, y + 6), fill=mix(board.ground, board.ink, 0.5))
        board.node(x, 44, width / count * 0.7, 50, "box")
    for row in range(art.whole(5, 10)):
        level = 110 + row * (height - 160) / 10
        a, b = art.rng.sample(xs, 2)
        board.bent = False
        board.arrow((a, level), (b, level))
        board.draw.text(
            ((a + b) / 2, level - 4), f"{board.label()}", font=board.face.at(14), fill=board.ink, anchor="mb"
        )
    return board.image


def _timeline(art: Art) -> Image.Image:
    board = Board(art, (1000, 480))
    width, height = board.size
    rows = art.whole(4, 10)
    for index in range(9):
        x = 200 + index * (width - 220) / 8
        board.draw.line((x, 40, x, height), fill=mix(board.ground, board.ink, 0.2))
        board.draw.text((x, 14), art.pick(words.MONTHS).title(), font=board.face.at(14), fill=board.ink, anchor="ma")
    for row in range(rows):
        y = 56 + row * (height - 70) / rows
        board.draw.text((12, y), board.label(), font=board.face.at(16), fill=board.ink)
        start = 200 + art.rng.random() * (width - 420)
        board.draw.rounded_rectangle(
            (start, y, start + art.whole(60, 260), y + (height - 70) / rows * 0.6), 5, fill=art.vivid()
        )
    return board.image


def _physics(art: Art) -> Image.Image:
    """Text book sketches: axes, circles, vectors, letters."""
    board = Board(art, art.pick(((700, 600), (600, 600), (900, 500))))
    width, height = board.size
    for _ in range(art.whole(3, 9)):
        x, y = art.between(0.15, 0.85) * width, art.between(0.15, 0.85) * height
        r = art.between(0.04, 0.25) * height
        colour = shade(art.vivid(), 0.8)
        shape = art.whole(0, 4)
        if shape == 0:
            board.draw.ellipse(
                (x - r, y - r, x + r, y + r),
                outline=colour,
                width=3,
                fill=mix(board.ground, colour, 0.25) if art.chance(0.5) else None,
            )
        elif shape == 1:
            board.arrow((x, y), (x + art.between(-1, 1) * r * 2, y - r * 1.5))
        elif shape == 2:
            points = [(x + t * 3 - 90, y + r * 0.5 * math.sin(t / 5)) for t in range(60)]
            board.draw.line(points, fill=colour, width=3)
        elif shape == 3:
            board.draw.polygon([(x - r, y + r), (x + r, y + r), (x, y - r)], outline=colour, width=3)
        else:
            board.draw.arc((x - r, y - r, x + r, y + r), art.whole(0, 180), art.whole(200, 340), fill=colour, width=3)
        board.draw.text(
            (x + r * 0.6, y - r * 0.6),
            art.pick(("x", "y", "θ", "F", "v", "m", "p(x)", "E = mc²", "k", "A", "B", "r")),
            font=art.serif().at(26),
            fill=board.ink,
        )
    if art.chance(0.5):
        board.arrow((width * 0.1, height * 0.9), (width * 0.95, height * 0.9))
        board.arrow((width * 0.1, height * 0.9), (width * 0.1, height * 0.06))
    return board.image


def diagram(art: Art) -> Image.Image:
    """Any diagram but a flowchart."""
    return art.pick((_architecture, _architecture, _network, _tree, _sequence, _timeline, _physics))(art)
