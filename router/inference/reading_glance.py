"""A glance at an image that costs milliseconds: can there be text in it at all?

Letters are strokes side by side, so that where there is text, colours jump to and fro many times within a few dozen
pixels, at the image's own size or at a fraction of it. Blank pages, gradients and blurred grounds have no such place,
and no model looks for text in them. Photos have some and are looked at: a glance must not overlook anything that a
model would find.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_JUMP: Final = 6
"""Levels of 256 between neighbours. Type that stands 10 levels off its ground, which people do not see and the models
read without a fault, has these; an attack that is meant for models alone is written so."""

_SHARE: Final = 0.15
"""Of the pixels of a window. Black type on white has 0.35 and more, faint type of 9 pixels 0.16."""

_WINDOW: Final = (48, 12)
"""Width and height in pixels: a few letters of running text."""

_SCALES: Final = (1, 2, 4, 8)
"""How many times smaller the image is looked at. At the last, letters of 150 pixels are as large as running text's."""


def may_carry_text(pixels: NDArray[np.uint8], cv2: Any) -> bool:
    """Whether any place of an image (h, w, 3) has as many jumps as type; `cv2` is OpenCV's module."""
    return any(_busiest(pixels, scale, cv2) >= _SHARE for scale in _SCALES)


def _busiest(pixels: NDArray[np.uint8], scale: int, cv2: Any) -> float:
    """The greatest share of jumps in any window; an image that is smaller than a window is one."""
    height, width = pixels.shape[0] // scale, pixels.shape[1] // scale
    if height < 4 or width < 4:
        return 0.0
    small = pixels if scale == 1 else cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)
    jumps = (cv2.absdiff(small[:, 1:], small[:, :-1]).max(axis=2) >= _JUMP).astype(np.float32)
    window = (min(_WINDOW[0], width - 1), min(_WINDOW[1], height))
    return float(cv2.blur(jumps, window, borderType=cv2.BORDER_REFLECT).max())
