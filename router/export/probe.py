"""The concept probe: do images of a few fields rank the words of their own field first?

A check of meaning and not of numbers: an encoder may equal its reference and still be of no use for a field, or be
paired with the text tower of another space. It compares unit vectors by cosine and knows no thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from router.inference.text_model import TextModel
from router.inference.vision_model import VisionModel
from router.packs.documents import problems_of, read_small, yaml_tree
from router.packs.files import PackError, open_regular
from router.packs.manifest import Manifest
from router.packs.parts import Line
from router.request.errors import ImageError

SHIPPED = Path(__file__).parent / "corpus" / "probe.yaml"


class ProbeError(Exception):
    """A probe file that cannot be used; the message is for its author."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ProbeImage(_Strict):
    """An image file, relative to the probe file, and the field that it belongs to."""

    file: Line
    field: str


class Probe(_Strict):
    """Labels by field, and images."""

    fields: dict[str, tuple[str, ...]] = Field(min_length=2)
    images: tuple[ProbeImage, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A label's place for an image, from 1, with its cosine."""

    rank: int
    field: str
    label: str
    cosine: float


@dataclass(frozen=True, slots=True)
class ProbedImage:
    """One image with all labels, best first. `inversions` are labels of other fields above the best of its own."""

    file: str
    field: str
    ranking: tuple[Ranked, ...]
    inversions: int
    foreign: int
    """How many labels of other fields there are."""

    @property
    def right(self) -> bool:
        """Whether the top label is of the image's own field."""
        return self.ranking[0].field == self.field

    @property
    def best_own(self) -> Ranked:
        """The best label of its own field."""
        return next(each for each in self.ranking if each.field == self.field)


@dataclass(frozen=True, slots=True)
class Probed:
    """All images."""

    images: tuple[ProbedImage, ...]

    @property
    def inversion_rate(self) -> float:
        """Share of pairs of an image and a label of another field in which that label is above the best of its own."""
        return sum(image.inversions for image in self.images) / sum(image.foreign for image in self.images)

    @property
    def right(self) -> bool:
        """Whether every image's top label is of its own field."""
        return all(image.right for image in self.images)


def read_probe(path: Path) -> Probe:
    """The probe file; raises ProbeError."""
    try:
        probe = Probe.model_validate(yaml_tree(read_small(path, ""), path))
    except PackError as error:
        raise ProbeError(str(error)) from error
    except ValidationError as error:
        raise ProbeError(f"{path}: {problems_of(error)}") from error
    labels = [label for group in probe.fields.values() for label in group]
    if not all(probe.fields.values()) or len(set(labels)) != len(labels):
        raise ProbeError(f"{path}: every field needs labels, and no label may stand twice")
    for image in probe.images:
        if image.field not in probe.fields:
            raise ProbeError(f"{path}: {image.file} is of the field {image.field!r}, which has no labels")
    return probe


def require_one_space(vision: Manifest, text: Manifest) -> None:
    """Raises ProbeError unless both packs embed into one space: a cosine between two spaces means nothing."""
    if vision.space != text.space:
        raise ProbeError(
            f"pack {vision.name!r} embeds into the space {vision.space!r}, pack {text.name!r} into {text.space!r}; "
            f"name a text pack of the space {vision.space!r} with --text"
        )


def run_probe(probe: Probe, folder: Path, vision: VisionModel, text: TextModel) -> Probed:
    """Rank all labels for every image; `folder` is where its files lie. Raises ProbeError."""
    labels = [(field, label) for field, group in probe.fields.items() for label in group]
    try:
        rows = np.concatenate([text.forward([text.window(text.tokenise(label), 0)]) for _, label in labels])
    except Exception as error:  # what ONNX Runtime raises depends on what it stumbles over
        raise ProbeError(f"the text tower cannot be run: {type(error).__name__}; see `packs verify`") from error
    if rows.shape != (len(labels), vision.tower.dimension):
        raise ProbeError(f"labels have {rows.shape[-1]} dimensions, images {vision.tower.dimension}: not one space")
    images = []
    for image in probe.images:
        cosines = rows @ _embedding(folder / image.file, vision)
        if not np.isfinite(cosines).all():
            raise ProbeError(f"{folder / image.file}: its cosines are no numbers; see `packs verify`")
        images.append(rank(image, labels, cosines))
    return Probed(tuple(images))


def _embedding(path: Path, vision: VisionModel) -> NDArray[np.float32]:
    try:
        with open_regular(path) as file:
            return vision.encode(file.read())
    except OSError as error:
        raise ProbeError(f"{path} cannot be read: {error.strerror}") from error
    except ImageError as error:
        raise ProbeError(f"{path} cannot be decoded: {error}") from error
    except Exception as error:  # what ONNX Runtime raises depends on what it stumbles over
        raise ProbeError(f"the image tower cannot be run on {path}: {type(error).__name__}") from error


def rank(image: ProbeImage, labels: Sequence[tuple[str, str]], cosines: NDArray[np.float32]) -> ProbedImage:
    """The labels (field and text) by their cosines (n,), best first."""
    order = np.argsort(-cosines, kind="stable")
    ranking = tuple(
        Ranked(place, labels[index][0], labels[index][1], float(cosines[index]))
        for place, index in enumerate(order.tolist(), 1)
    )
    own = next(each.rank for each in ranking if each.field == image.field)
    foreign = sum(each.field != image.field for each in ranking)
    return ProbedImage(image.file, image.field, ranking, own - 1, foreign)
