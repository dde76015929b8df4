"""The models that find lines of text in an image and read them, by themselves: what is synchronous about `reading.py`.

The graphs are PP-OCRv6's small ones (Apache-2.0), which RapidOCR carries in its package: nothing is fetched. They run
on ONNX Runtime, opened as all our sessions are; of RapidOCR's code only what turns a heat map into boxes and a box into
an upright strip is used. Images are decoded by `request/images.py` and by nothing else.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from router.inference.reading_glance import may_carry_text
from router.inference.sessions import open_session
from router.packs.files import PackError
from router.request.errors import ImageError
from router.request.images import ImageLimits, decode

Pixels = NDArray[np.uint8]

DETECTED_PIXELS: Final = 640_000
"""Pixels of the image that lines are looked for in. Finding takes time with their number; reading, which needs the
finer image, does not. Of 30 lines on a screen of 1920 x 1080, all were found and read at 10 to 16 pixels a letter."""

READ_PIXELS: Final = 6_000_000
"""Pixels of the image that lines are read from; a larger one is made as small. A page of text in a photo of 24
megapixels has letters of some 20 pixels left."""

LONGEST_SIDE: Final = 10_000
"""Pixels; a longer side, such as a strip's of one pixel's height, is made as short."""

MOST_LINES: Final = 1_500
"""Lines of an image; a page that is set in three columns of small print has 250, a screen full of listings 500 words
that stand by themselves. One with more can't be read, which is another thing than having read nothing."""

MOST_LETTERS: Final = 16_000
"""What all lines of an image may have together, at two letters for each line's height that it is wide: twice what a
densely printed page has. Reading takes time with this, some 1.6 milliseconds a letter."""

_LEAST_SIDE: Final = 64
"""Pixels; narrower images get a margin. The graph works on squares of 32."""

_STRIP: Final = 48
"""Height in pixels of what the second graph reads."""

_WIDEST_STRIP: Final = 3_200
"""Its width at most: 66 times the height, twice as much as a line of 120 letters has."""

_DOUBTFUL: Final = 0.9
"""A line that is read with a lower score is tried upside down as well; lines read rightly are rarely below."""


class ReaderUnavailableError(Exception):
    """No image can be read on this machine; the message says what to install."""


@dataclass(frozen=True, slots=True)
class Strip:
    """One line of an image, upright or upside down: pixels (h, w, 3) uint8, BGR; `box` as `ReadLine` has it."""

    pixels: Pixels = field(repr=False)
    box: tuple[float, float, float, float]


class LineModel:
    """Finds and reads lines. Its methods may run in several threads at once."""

    def __init__(self, limits: ImageLimits) -> None:
        """Raises ReaderUnavailableError where RapidOCR or its graphs are missing."""
        try:
            folder = Path(str(importlib.import_module("rapidocr").__file__)).parent / "models"
            self._cv2: Any = importlib.import_module("cv2")
            found = importlib.import_module("rapidocr.ch_ppocr_det.utils")
            cut = importlib.import_module("rapidocr.utils.process_img")
            self.version = f"rapidocr {importlib.metadata.version('rapidocr')}"
            self._finder = open_session(folder / "PP-OCRv6_det_small.onnx")
            self._reader = open_session(folder / "PP-OCRv6_rec_small.onnx")
        except ImportError as error:
            raise ReaderUnavailableError(
                "text in images needs an extra that is not installed: pip install 'pointsman[ocr]'"
            ) from error
        except PackError as error:
            raise ReaderUnavailableError(f"the graphs that rapidocr carries can't be used: {error}") from error
        # As for every model here: a job has one thread.
        self._cv2.setNumThreads(1)
        # Far more than may be, so that too many are noticed; the other numbers are RapidOCR's own for these graphs.
        self._boxes: Any = found.DBPostProcess(
            thresh=0.3, box_thresh=0.5, unclip_ratio=1.6, use_dilation=True, max_candidates=10 * MOST_LINES
        )
        self._upright: Any = cut.get_rotate_crop_image
        told: Any = self._reader
        # Number 0 says that there is no letter, the last one is a blank.
        self._letters = ["", *told.get_modelmeta().custom_metadata_map["character"].splitlines(), " "]
        self._limits = limits

    def find(self, data: bytes) -> tuple[Strip, ...]:
        """The lines of an image file, from top to bottom and, where they stand side by side, from left to right.

        Raises ImageError for what can't be decoded, and `too much text`.
        """
        image, (left, top), (width, height) = _framed(_shrunk(decode(data, self._limits), READ_PIXELS))
        pixels = np.ascontiguousarray(np.asarray(image)[:, :, ::-1])
        boxes = _in_reading_order(self._detect(pixels))
        if len(boxes) > MOST_LINES:
            raise ImageError("too much text")
        shift, size = np.array([left, top]), np.array([width, height])
        strips: list[Strip] = []
        letters = 0.0
        for box in boxes:
            shares = np.clip((box - shift) / size, 0.0, 1.0)
            (x0, y0), (x1, y1) = shares.min(axis=0).tolist(), shares.max(axis=0).tolist()
            upright = self._upright(pixels, box.astype(np.float32))
            letters += 2 * max(upright.shape[1] / max(upright.shape[0], 1), 1.0)
            if letters > MOST_LETTERS:
                raise ImageError("too much text")
            strips.append(Strip(upright, (x0, y0, x1, y1)))
        return tuple(strips)

    def read(self, strip: Strip) -> tuple[str, float]:
        """The line's text and how sure it is, 0-1; a text of no letter where there is none."""
        text, score = self._recognise(strip.pixels)
        if score >= _DOUBTFUL:
            return text, score
        turned = self._recognise(np.ascontiguousarray(strip.pixels[::-1, ::-1]))
        return turned if turned[1] > score else (text, score)

    def _detect(self, pixels: Pixels) -> NDArray[np.float64]:
        """Corners (n, 4, 2) of lines in an image (h, w, 3) BGR, clockwise from the top left one."""
        height, width = pixels.shape[:2]
        scale = min(1.0, math.sqrt(DETECTED_PIXELS / (height * width)))
        size = (max(32, round(width * scale / 32) * 32), max(32, round(height * scale / 32) * 32))
        # Averaged, so that thin letters do not fall between the pixels that are kept.
        small = (
            pixels if size == (width, height) else self._cv2.resize(pixels, size, interpolation=self._cv2.INTER_AREA)
        )
        if not may_carry_text(small, self._cv2):
            return np.zeros((0, 4, 2))
        values = _normalised(small)[None]
        (heat,) = self._finder.run([_only(self._finder.get_outputs())], {_only(self._finder.get_inputs()): values})
        boxes, _ = self._boxes(heat, (height, width))
        return np.asarray(boxes, dtype=np.float64).reshape(-1, 4, 2)

    def _recognise(self, pixels: Pixels) -> tuple[str, float]:
        height, width = pixels.shape[:2]
        wide = min(max(math.ceil(_STRIP * width / height), _STRIP), _WIDEST_STRIP)
        values = _normalised(self._cv2.resize(pixels, (wide, _STRIP)))[None]
        (chances,) = self._reader.run([_only(self._reader.get_outputs())], {_only(self._reader.get_inputs()): values})
        indices, scores = chances[0].argmax(axis=1), chances[0].max(axis=1)
        # One letter over several columns is one; the same letter twice has a column of none in between.
        kept = (indices != 0) & np.diff(indices, prepend=-1).astype(bool)
        if not kept.any():
            return "", 0.0
        return "".join(self._letters[index] for index in indices[kept].tolist()), float(scores[kept].mean())


def _normalised(pixels: Pixels) -> NDArray[np.float32]:
    values: NDArray[np.float32] = (pixels.astype(np.float32).transpose(2, 0, 1) / 255.0 - 0.5) / 0.5
    return values


def _only(ports: Sequence[Any]) -> str:
    return str(ports[0].name)


def _shrunk(image: Image.Image, most: int) -> Image.Image:
    scale = min(1.0, math.sqrt(most / (image.width * image.height)), LONGEST_SIDE / max(image.size))
    if scale == 1.0:
        return image
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, Image.Resampling.LANCZOS)


def _framed(image: Image.Image) -> tuple[Image.Image, tuple[int, int], tuple[int, int]]:
    """The image with a margin where it is narrow, as text that touches an edge is not found; where the image begins
    in it, and the image's own width and height."""
    width, height = image.size
    wide, high = max(width, _LEAST_SIDE), max(height, _LEAST_SIDE)
    if (wide, high) == (width, height):
        return image, (0, 0), (width, height)
    left, top = (wide - width) // 2, (high - height) // 2
    framed = Image.new("RGB", (wide, high), image.getpixel((0, 0)))
    framed.paste(image, (left, top))
    return framed, (left, top), (width, height)


def _in_reading_order(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lines whose middles lie within half a line's height of each other stand side by side."""
    if not len(boxes):
        return boxes
    middles, heights = boxes[:, :, 1].mean(axis=1), np.ptp(boxes[:, :, 1], axis=1)
    rows: list[list[int]] = []
    for index in np.argsort(middles, kind="stable").tolist():
        if rows and middles[index] - middles[rows[-1][0]] <= min(heights[index], heights[rows[-1][0]]) / 2:
            rows[-1].append(index)
        else:
            rows.append([index])
    lefts = boxes[:, :, 0].min(axis=1)
    return boxes[[index for row in rows for index in sorted(row, key=lambda each: float(lefts[each]))]]
