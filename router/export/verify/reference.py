"""What verification asks of a reference: each stage by itself, and what its outputs would be with a fault in it.

Only shapes and protocols; `torch_reference.py` has the references that there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Feed = Mapping[str, NDArray[Any]]
"""What a graph takes, by input name, for one input: the first axis has length 1."""

Floats = NDArray[np.float32]
Ids = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class PixelRecipe:
    """What the reference does to an upright RGB image.

    `size` is height and width, None for a tower that takes any shape. Levels 0-255 become
    `(level * rescale - mean) / std`, by channel in the order RGB.
    """

    size: tuple[int, int] | None
    resample: Image.Resampling
    rescale: float
    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    def values(self, levels: NDArray[Any]) -> Floats:
        """Levels (h, w, 3) as the graph takes them, in the same shape."""
        scaled = np.asarray(levels, dtype=np.float64) * self.rescale
        result: Floats = ((scaled - np.array(self.mean)) / np.array(self.std)).astype(np.float32)
        return result

    def levels(self, values: Floats) -> NDArray[np.float64]:
        """The inverse of `values`; not rounded, and beyond 0-255 where the values are."""
        result: NDArray[np.float64] = (values * np.array(self.std) + np.array(self.mean)) / self.rescale
        return result


@dataclass(frozen=True, slots=True)
class OutputFault:
    """What the reference would give with one thing wrong in it: `outputs` takes what `forward` takes."""

    cause: str
    detail: str
    outputs: Callable[[Any], Floats] = field(repr=False)


class ImageReference(Protocol):
    """An image tower as it was published."""

    @property
    def recipe(self) -> PixelRecipe:
        """What `pixels` does, in words that a fault can be put into."""
        ...

    def pixels(self, image: Image.Image) -> Feed:
        """Preprocess an upright RGB image."""
        ...

    def image_forward(self, pixels: Feed) -> Floats:
        """Unit vectors (1, d) of what `pixels` gives."""
        ...

    def image_faults(self, sample: Sequence[Feed]) -> list[OutputFault]:
        """Faults that a served graph may have; `sample` are inputs like those that will come."""
        ...


class TextReference(Protocol):
    """A text tower or a text classifier as it was published."""

    def token_ids(self, text: str) -> Ids:
        """The ids of the text's first window, special tokens and the padding that the model needs included."""
        ...

    def text_forward(self, ids: Ids) -> Floats:
        """What the graph gives for these ids, as one row (1, ...): a unit vector, or a classifier's probabilities."""
        ...

    def text_faults(self, sample: Sequence[Ids]) -> list[OutputFault]:
        """Faults that a served graph may have."""
        ...


@dataclass(frozen=True, slots=True)
class Reference:
    """The reference of a pack; None for what it has not. `description` says what it is, with versions."""

    description: str
    image: ImageReference | None = None
    text: TextReference | None = None
    classifier: TextReference | None = None
    scale: tuple[float, float] | None = None
    """Logit scale (itself, not its logarithm) and bias; None for a checkpoint that was trained without."""
