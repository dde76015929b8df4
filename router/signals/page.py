"""Lines that were read in an image become one text that patterns and models can go through.

A page is read twice, because nobody knows whether what stands side by side belongs together. Row by row, as forms have
it: readers break a row where a gap is wide. And block by block, as columns, notes and the machine-readable zone of a
card have it, where rows would put other words between their lines. What a terminal or a column cut in two, such as a
key, is joined once more behind that. A text is at most six times as long as its lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from router.inference.reading import ReadLine

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
    rows = _rows(lines)
    alone = {id(row[0]) for row in rows if len(row) == 1}
    for row in rows:
        text.add(row, " ")
    zone = [line for line in sorted(lines, key=_middle) if line.text.count("<") >= _FILLERS]
    for block in (*_blocks(lines), zone):
        if len(block) > 1 and not all(id(line) in alone for line in block):
            text.put("\n")
            for line in block:
                text.add([line], "")
        for some in _cut_in_two(block):
            text.put("\n")
            text.add(some, "")
    return "".join(text.pieces).removesuffix("\n"), tuple(text.boxes)


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
    some: list[ReadLine] = []
    for line in block:
        if some and _GOES_ON.match(line.text):
            some.append(line)
        else:
            if len(some) > 1:
                yield some
            some = [line]
        end = _CUT.search(line.text)
        if end is None or not _MIXED.search(end[0]):
            if len(some) > 1:
                yield some
            some = []
    if len(some) > 1:
        yield some


def _middle(line: ReadLine) -> float:
    return (line.box[1] + line.box[3]) / 2


def _height(line: ReadLine) -> float:
    return line.box[3] - line.box[1]
