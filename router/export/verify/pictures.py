"""Small pictures for the page: what the reference saw, what served saw, and where they differ. PNG as data URIs."""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from router.export.verify.reference import Floats, PixelRecipe

EDGE = 160
# A difference of a few levels is invisible; it is drawn so many times as strong.
GAIN = 8


def of(served: Floats, reference: Floats, recipe: PixelRecipe) -> tuple[str, str, str]:
    """The reference's pixels, the served ones, and their difference on black; all (h, w, 3) as the graph takes them.

    The difference is empty where the two are of different sizes.
    """
    right, ours = recipe.levels(reference), recipe.levels(served)
    difference = np.abs(ours - right) * GAIN if ours.shape == right.shape else np.zeros_like(right)
    return _uri(right), _uri(ours), _uri(difference)


def _uri(levels: NDArray[np.float64]) -> str:
    image = Image.fromarray(np.clip(np.rint(levels), 0, 255).astype(np.uint8))
    image.thumbnail((EDGE, EDGE))
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode("ascii")
