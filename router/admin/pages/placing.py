"""Places a layered graph: layers from left to right, boxes near what they are tied to, no two upon each other.

Decisions keep the order in which they rank. From them outwards each layer follows the neighbours that are placed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from router.admin.pages.graph import COLUMNS, Box, Column, Graph, Line

WIDTHS: Final[Mapping[Column, int]] = {"signal": 266, "projection": 190, "decision": 220, "end": 214}
HEIGHTS: Final[Mapping[Column, int]] = {"signal": 30, "projection": 42, "decision": 42, "end": 42}
TITLES: Final[Mapping[Column, str]] = {
    "signal": "Signals",
    "projection": "Projections",
    "decision": "Decisions",
    "end": "Where requests end",
}
GAPS_X: Final = {3: 150, 4: 80}
"""Between layers, by how many there are."""

NARROWEST_GAP: Final = 56
GAP_Y: Final = 12
TOP: Final = 34
MARGIN: Final = 8
UNITS: Final[Mapping[Column, float]] = {"signal": 7.0, "projection": 7.0, "decision": 7.5, "end": 7.5}
"""Width of a character of the titles."""

BADGE_UNITS: Final = 7.0
Layer = tuple[int, int]


@dataclass(frozen=True, slots=True)
class PlacedBox:
    """A box with its corner and size; `room` is how many characters of its title fit."""

    box: Box
    ident: str
    x: float
    y: float
    width: int
    height: int
    room: int


@dataclass(frozen=True, slots=True)
class PlacedLine:
    """A line as an SVG path. `start` and `end` are the idents of boxes."""

    start: str
    end: str
    path: str
    negated: bool
    width: float


@dataclass(frozen=True, slots=True)
class Heading:
    """A column's title and where it begins."""

    title: str
    x: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """Everything that is drawn."""

    width: float
    height: float
    headings: tuple[Heading, ...]
    boxes: tuple[PlacedBox, ...]
    lines: tuple[PlacedLine, ...]


def place(graph: Graph) -> Drawing:
    """The graph, placed; layers without a box are left out."""
    layers = _layers(graph)
    centres = _centres(graph, layers)
    gap = GAPS_X.get(len(layers), NARROWEST_GAP if len(layers) > 4 else 150)
    boxes: dict[str, PlacedBox] = {}
    headings: dict[str, float] = {}
    x = float(MARGIN)
    for (column, _), keys in layers.items():
        name = COLUMNS[column]
        headings.setdefault(TITLES[name], x)
        for key in sorted(keys, key=centres.__getitem__):
            boxes[key] = _placed(graph.boxes[key], f"n{len(boxes)}", x, centres[key])
        x += WIDTHS[name] + gap
    bottom = max((one.y + one.height for one in boxes.values()), default=TOP)
    return Drawing(
        width=max(x - gap + MARGIN, 2.0 * MARGIN),
        height=bottom + MARGIN,
        headings=tuple(Heading(title, x) for title, x in headings.items()),
        boxes=tuple(boxes.values()),
        lines=tuple(_line(line, boxes[line.start], boxes[line.end]) for line in graph.lines.values()),
    )


def apart(wanted: Sequence[float], step: float) -> list[float]:
    """Numbers nearest to the wanted ones, which ascend, of which each is at least `step` past the one before.

    Nearest by least squares: numbers that are too close are spread around their mean (pool adjacent violators).
    """
    pools: list[tuple[float, int]] = []
    for index, number in enumerate(wanted):
        mean, size = number - index * step, 1
        while pools and pools[-1][0] > mean:
            before, count = pools.pop()
            mean = (mean * size + before * count) / (size + count)
            size += count
        pools.append((mean, size))
    level = [mean for mean, size in pools for _ in range(size)]
    return [mean + index * step for index, mean in enumerate(level)]


def _layers(graph: Graph) -> dict[Layer, list[str]]:
    found: dict[Layer, list[str]] = {}
    for box in graph.boxes.values():
        found.setdefault((COLUMNS.index(box.column), box.depth), []).append(box.key)
    return dict(sorted(found.items()))


def _centres(graph: Graph, layers: Mapping[Layer, list[str]]) -> dict[str, float]:
    """Each box's vertical centre."""
    near: dict[str, list[str]] = {key: [] for key in graph.boxes}
    for start, end in graph.lines:
        near[start].append(end)
        near[end].append(start)
    first = (COLUMNS.index("decision"), 0)
    centres: dict[str, float] = {}
    if first in layers:
        # As far apart as the boxes of the longest layer need, and no farther than twice their own height.
        longest = max(len(keys) * _step(layer) for layer, keys in layers.items())
        step = max(_step(first), min(longest / len(layers[first]), 1.5 * _step(first)))
        centres.update({key: step * index for index, key in enumerate(layers[first])})
    left = [layer for layer in layers if layer < first]
    right = [layer for layer in layers if layer > first]
    for layer in (*reversed(left), *right):
        centres.update(_following(layers[layer], near, centres, _step(layer)))
    highest = min((centres[key] - HEIGHTS[box.column] / 2 for key, box in graph.boxes.items()), default=0.0)
    return {key: centre + TOP - highest for key, centre in centres.items()}


def _following(
    keys: Iterable[str], near: Mapping[str, list[str]], centres: Mapping[str, float], step: float
) -> dict[str, float]:
    """A layer's boxes in the middle of those of their neighbours that are placed; who has none comes last."""
    last = max(centres.values(), default=0.0)
    wanted = {}
    for key in keys:
        placed = [centres[other] for other in near[key] if other in centres]
        wanted[key] = sum(placed) / len(placed) if placed else last
    order = sorted(wanted, key=lambda key: (wanted[key], not near[key]))
    return dict(zip(order, apart([wanted[key] for key in order], step), strict=True))


def _step(layer: Layer) -> float:
    return HEIGHTS[COLUMNS[layer[0]]] + GAP_Y


def _placed(box: Box, ident: str, x: float, centre: float) -> PlacedBox:
    width, height = WIDTHS[box.column], HEIGHTS[box.column]
    taken = 24 + (BADGE_UNITS * len(box.badge) + 8 if box.badge else 0)
    room = max(8, int((width - taken) / UNITS[box.column]))
    return PlacedBox(box, ident, x, centre - height / 2, width, height, room)


def _line(line: Line, start: PlacedBox, end: PlacedBox) -> PlacedLine:
    x1, y1 = start.x + start.width, start.y + start.height / 2
    x2, y2 = end.x, end.y + end.height / 2
    bend = min((x2 - x1) / 2, 90.0)
    path = f"M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    return PlacedLine(start.ident, end.ident, path, line.negated, round(1.25 + 5 * line.share, 2))
