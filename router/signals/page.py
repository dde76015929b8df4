"""Lines that were read in an image become one text that patterns and models can go through.

A page is read twice, because nobody knows whether what stands side by side belongs together. Row by row, as forms have
it: readers break a row where a gap is wide. And block by block, as columns, notes and the machine-readable zone of a
card have it, where rows would put other words between their lines. What a terminal or a column cut in two, such as a
key, is joined once more behind that. A text is at most six times as long as its lines. Letters that a reader of Latin
took for ones of another alphabet are put right, one for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from router.inference.reading import ReadLine
from router.signals.lookalikes import LATIN, LOOKALIKES

Box = tuple[float, float, float, float]
Boxes = tuple[tuple[int, int, Box], ...]

_ASIDE: Final = 1.5
"""Letters by which the beginnings of two lines of a block may differ."""

_FILLERS: Final = 3
"""Of a line of a machine-readable zone; the lines of one are told together, whatever a reader joined to them."""

_GAP: Final = 1.2
"""Lines' heights between two lines of a block, at most."""

_TALLER: Final = 1.8
"""How much higher one line of a block may be than the next: a line without a descender has two thirds of the height."""

# Full-width letters and signs; and what readers take a filler's angle for.
_NARROW: Final = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}
_ANGLES: Final = {**dict.fromkeys(map(ord, "\u3008\u304f\u00ab\u2039"), "<"), **LATIN}
_AMONG_LATIN: Final = re.compile(
    rf"[\w{LOOKALIKES}]*(?:[A-Za-z0-9][{LOOKALIKES}]|[{LOOKALIKES}][A-Za-z0-9])[\w{LOOKALIKES}]*"
)

_CUT: Final = re.compile(r"[\w+/=.:@-]{12,}$")
_GOES_ON: Final = re.compile(r"[\w+/=.:@-]{3,}[\"'`,;)\]}]*(?:\s|$)")
_MIXED: Final = re.compile(r"[A-Za-z].*[0-9]|[0-9].*[A-Za-z]")


@dataclass(slots=True)
class _Text:
    """Text as it grows, with the range and box of each line in it."""

    pieces: list[str] = field(default_factory=list)
    length: int = 0
    boxes: list[tuple[int, int, Box]] = field(default_factory=list)

    def add(self, lines: Sequence[ReadLine], between: str) -> None:
        """Lines as one row."""
        for index, line in enumerate(lines):
            self.put(between if index else "")
            self.boxes.append((self.length, self.length + len(line.text), line.box))
            self.put(line.text)
        self.put("\n")

    def put(self, text: str) -> None:
        """Text that stands nowhere in the image."""
        self.pieces.append(text)
        self.length += len(text)


def lay_out(lines: Sequence[ReadLine]) -> tuple[str, Boxes]:
    """The text, and (start, end, box) of each line in it, as half-open character ranges; a line may come again."""
    text = _Text()
    lines = [replace(line, text=_in_latin(line.text)) for line in lines]
    rows = _rows(lines)
    alone = {id(row[0]) for row in rows if len(row) == 1}
    for row in rows:
        text.add(row, " ")
    blocks = _blocks(lines)
    for block in (*blocks, *_zones(lines)):
        if len(block) > 1 and not all(id(line) in alone for line in block):
            text.put("\n")
            for line in block:
                text.add([line], "")
    for block in blocks:
        for some in _cut_in_two(block):
            text.put("\n")
            text.add(some, "")
    return "".join(text.pieces).removesuffix("\n"), tuple(text.boxes)


def _zones(lines: Sequence[ReadLine]) -> list[list[ReadLine]]:
    """The lines of a machine-readable zone, in each order that they may have: of slanted lines of different lengths the
    boxes lie within each other."""
    some = [line for line in lines if line.text.count("<") >= _FILLERS]
    orders: list[list[ReadLine]] = []
    for key in (_middle, _top, _bottom):
        order = sorted(some, key=key)
        if order not in orders:
            orders.append(order)
    return orders


def _in_latin(text: str) -> str:
    """The text with letters and signs of other scripts as the Latin ones that they look like, where those are meant: in
    a line of a machine-readable zone, and beside Latin letters or digits."""
    if text.isascii():
        return text
    narrow = text.translate(_NARROW)
    if narrow.count("<") >= _FILLERS:
        return narrow.translate(_ANGLES)
    return _AMONG_LATIN.sub(lambda word: word[0].translate(LATIN), narrow)


def _rows(lines: Sequence[ReadLine]) -> list[list[ReadLine]]:
    """Lines beside each other."""
    rows: list[list[ReadLine]] = []
    for line in sorted(lines, key=_middle):
        _, top, _, bottom = rows[-1][-1].box if rows else (0.0, 0.0, 0.0, 0.0)
        # Half a line's height apart is another row; slanted rows move less than that from one line to the next.
        if rows and abs(_middle(line) - (top + bottom) / 2) < min(bottom - top, _height(line)) / 2:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: line.box[0]) for row in rows]


def _blocks(lines: Sequence[ReadLine]) -> list[list[ReadLine]]:
    """Lines below each other: each goes on the block whose last line stands right above it and begins nearest."""
    blocks: list[list[ReadLine]] = []
    growing: list[list[ReadLine]] = []
    for line in sorted(lines, key=_middle):
        # What ended far above never goes on.
        growing = [block for block in growing if _within_reach(block[-1], line)]
        above = [block for block in growing if _is_below(line, block[-1])]
        if above:
            min(above, key=lambda block: abs(block[-1].box[0] - line.box[0])).append(line)
            continue
        blocks.append([line])
        growing.append(blocks[-1])
    return blocks


def _within_reach(upper: ReadLine, lower: ReadLine) -> bool:
    return lower.box[1] - upper.box[3] <= _GAP * _TALLER * _height(upper)


def _is_below(lower: ReadLine, upper: ReadLine) -> bool:
    small, tall = sorted((_height(lower), _height(upper)))
    gap = lower.box[1] - upper.box[3]
    if tall > _TALLER * small or not -small / 2 <= gap <= _GAP * small:
        return False
    letter = max((line.box[2] - line.box[0]) / max(len(line.text), 1) for line in (lower, upper))
    return abs(lower.box[0] - upper.box[0]) <= _ASIDE * letter


def _cut_in_two(block: Sequence[ReadLine]) -> Iterator[list[ReadLine]]:
    """Lines of a block that end in what may be the first half of a key, each with those that it goes on in."""
    some = list(block[:1])
    for upper, lower in pairwise(block):
        if _is_cut(upper.text, lower.text):
            some.append(lower)
            continue
        if len(some) > 1:
            yield some
        some = [lower]
    if len(some) > 1:
        yield some


def _is_cut(upper: str, lower: str) -> bool:
    end, rest = _CUT.search(upper), _GOES_ON.match(lower)
    if end is None or rest is None:
        return False
    # The first half of a key that a name is set to may have no digit yet.
    return bool(_MIXED.search(end[0]) or ("=" in end[0] and _MIXED.search(rest[0])))


def _middle(line: ReadLine) -> float:
    return (line.box[1] + line.box[3]) / 2


def _top(line: ReadLine) -> float:
    return line.box[1]


def _bottom(line: ReadLine) -> float:
    return line.box[3]


def _height(line: ReadLine) -> float:
    return line.box[3] - line.box[1]
