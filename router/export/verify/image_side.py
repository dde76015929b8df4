"""An image tower, image by image, beside its reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from router.export.verify import pictures
from router.export.verify.explain import (
    EXPLAINED_INPUTS,
    cosine,
    explain_model,
    finding_of,
    is_unit,
    least_cosine,
    quietly,
)
from router.export.verify.images import CorpusImage, UnreadableError, read_image
from router.export.verify.pixels import explain_pixels, picture_of
from router.export.verify.reference import Feed, Floats, ImageReference, PixelRecipe
from router.export.verify.report import Finding, Row, SideReport
from router.inference.gate import MAX_PIXEL_TOLERANCE, MEAN_PIXEL_TOLERANCE
from router.inference.vision_model import JPEG_ROOM, VisionModel
from router.packs.manifest import VisionTower
from router.request.errors import ImageError

# A JPEG of eight times the tower's size is decoded at a fraction, which is meant: cosine 0.9998 in the median.
REDUCED_COSINE = 0.995
# Below this a difference of values is float32's rounding and none of a level.
LEAST_LEVEL = 1e-3


@dataclass(frozen=True, slots=True)
class _Compared:
    """One image through both sides: feeds, their pictures (h, w, 3), and rows (1, d); None where none could be had."""

    image: CorpusImage
    feed: Feed = field(repr=False)
    ours: Floats = field(repr=False)
    theirs: Floats = field(repr=False)
    expected: Floats = field(repr=False)
    whole: Floats | None = field(repr=False)
    model: Floats | None = field(repr=False)
    through: Floats | None = field(repr=False)
    equal: bool

    @property
    def same_shape(self) -> bool:
        """Whether both sides made pictures of one size."""
        return self.ours.shape == self.theirs.shape


def verify_images(
    model: VisionModel,
    reference: ImageReference,
    files: Sequence[Path],
    progress: Callable[[str], None],
    with_pictures: bool,
) -> SideReport:
    """The image tower over these files."""
    bound = least_cosine(model.tower)
    rows: list[Row] = []
    left_out: list[str] = []
    drifting = _Drifting()
    root = _common(files)
    for number, file in enumerate(files, 1):
        progress(f"image {number} of {len(files)}")
        name = str(file.relative_to(root))
        try:
            image = read_image(file, name)
            compared = _compare(model, reference, image)
        except UnreadableError as error:
            left_out.append(str(error))
            continue
        except ImageError as error:
            left_out.append(f"{name} is refused when serving: {error}")
            continue
        rows.append(_row(compared, model.tower, reference.recipe, bound, with_pictures, drifting))
    progress("image tower: looking for causes")
    findings = drifting.findings(reference, model.tower.precision)
    if not rows:
        findings.append(Finding("image", "whole", "unknown", "no image could be compared"))
    elif not findings and not all(row.held for row in rows):
        findings.append(Finding("image", "whole", "unknown", "each stage holds by itself, both together do not"))
    return SideReport("image", model.tower.precision, "cosine", bound, tuple(rows), tuple(findings), tuple(left_out))


class _Drifting:
    """What drifts: how many images at each stage, and the first few of them to look for causes with."""

    def __init__(self) -> None:
        self._pixels: list[tuple[CorpusImage, Floats, Floats]] = []
        self._model: list[tuple[Feed, Floats, Floats]] = []
        self._counts = {"pixels": 0, "model": 0}
        self._sizes: set[str] = set()
        self._unit = True

    def note(self, compared: _Compared, pixels_held: bool, model_held: bool) -> None:
        """Take in one image."""
        ours, theirs = compared.ours, compared.theirs
        if not compared.same_shape:
            self._sizes.add(
                f"{ours.shape[0]} x {ours.shape[1]} pixels instead of {theirs.shape[0]} x {theirs.shape[1]}"
            )
        elif not pixels_held:
            self._counts["pixels"] += 1
            self._pixels += [(compared.image, ours, theirs)] if len(self._pixels) < EXPLAINED_INPUTS else []
        if not model_held and compared.model is not None:
            self._counts["model"] += 1
            case = (compared.feed, compared.model, compared.expected)
            self._model += [case] if len(self._model) < EXPLAINED_INPUTS else []
        self._unit = self._unit and (compared.whole is None or is_unit(compared.whole))

    def findings(self, reference: ImageReference, precision: str) -> list[Finding]:
        """Each stage that drifts, with its likeliest cause."""
        found: list[Finding] = []
        if self._sizes:
            others = len(self._sizes) - 1
            some = sorted(self._sizes)[0] + (f", and {others} other sizes" if others else "")
            found.append(Finding("image", "preprocessing", "resolution", some))
        if self._pixels:
            fault, share = explain_pixels(self._pixels, reference.recipe)
            how_many = f"{self._counts['pixels']} images"
            found.append(finding_of("image", "preprocessing", fault, share, how_many))
        if self._model:
            faults = reference.image_faults([feed for feed, _, _ in self._model])
            found.append(explain_model("image", self._model, faults, precision, f"{self._counts['model']} images"))
        if not self._unit:
            found.append(Finding("image", "model", "normalisation", "outputs are not of length 1"))
        return found


def _compare(model: VisionModel, reference: ImageReference, image: CorpusImage) -> _Compared:
    """Raises ImageError where the served side refuses the image."""
    served = model.feed(model.preprocess(image.data)[None])
    right = reference.pixels(image.upright)
    ours, theirs = picture_of(served), picture_of(right)
    same_shape = ours.shape == theirs.shape
    return _Compared(
        image,
        right,
        ours,
        theirs,
        expected=reference.image_forward(right),
        whole=quietly(model.run, served),
        model=quietly(model.run, _named(right, served)) if same_shape else None,
        through=reference.image_forward(_named(served, right)) if same_shape else None,
        equal=np.array_equal(ours, theirs),
    )


def _row(
    compared: _Compared,
    tower: VisionTower,
    recipe: PixelRecipe,
    bound: float,
    with_pictures: bool,
    drifting: _Drifting,
) -> Row:
    reduced = _reduced(compared.image, tower)
    least = REDUCED_COSINE if reduced else bound
    whole, by_model, through = (
        None if row is None else cosine(row, compared.expected)
        for row in (compared.whole, compared.model, compared.through)
    )
    apart = _levels_apart(compared.ours, compared.theirs, recipe) if compared.same_shape else None
    pixels_held = through is not None and through >= least and apart is not None and (reduced or _near(apart))
    # A graph that cannot take another size has not drifted for that.
    model_held = not compared.same_shape or (by_model is not None and by_model >= bound)
    drifting.note(compared, pixels_held, model_held)
    return Row(
        compared.image.name,
        whole,
        by_model,
        through,
        apart,
        equal=compared.equal,
        held=pixels_held and model_held and whole is not None and whole >= least,
        note=", ".join(filter(None, [compared.image.note, "decoded at a fraction of its size" if reduced else ""])),
        pictures=pictures.of(compared.ours, compared.theirs, recipe) if with_pictures else (),
    )


def _near(apart: tuple[float, float]) -> bool:
    return apart[0] <= MEAN_PIXEL_TOLERANCE and apart[1] <= MAX_PIXEL_TOLERANCE


def _levels_apart(ours: Floats, theirs: Floats, recipe: PixelRecipe) -> tuple[float, float]:
    """Mean and greatest."""
    difference: NDArray[np.float64] = np.abs(recipe.levels(ours) - recipe.levels(theirs))
    difference[difference < LEAST_LEVEL] = 0
    return float(difference.mean()), float(difference.max())


def _named(feed: Feed, like: Feed) -> Feed:
    """The same values under the names of the other side's inputs; both list them in the graph's order."""
    if set(feed) == set(like):
        return feed
    return dict(zip(like, feed.values(), strict=True))


def _reduced(image: CorpusImage, tower: VisionTower) -> bool:
    """Whether `decode` leaves a JPEG smaller than it is: at twice what it is asked for, or more."""
    if not image.data.startswith(b"\xff\xd8"):
        return False
    height, width = tower.size
    room = 2 * JPEG_ROOM
    return image.upright.height >= 2 * room * height and image.upright.width >= 2 * room * width


def _common(files: Sequence[Path]) -> Path:
    """The folder that names are written relative to."""
    if not files:
        return Path()
    parents = [file.parent for file in files]
    root = parents[0]
    while not all(parent.is_relative_to(root) for parent in parents):
        root = root.parent
    return root
