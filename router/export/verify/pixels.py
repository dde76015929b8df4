"""Finds out why served pixels are not the reference's: prepares the images again with one fault each and compares.

A fault explains a drift as far as it takes the difference away. Needs numpy and Pillow only.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from router.export.verify.images import CorpusImage, Decoding, decoded
from router.export.verify.reference import Feed, Floats, PixelRecipe

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
_FILTERS = (Image.Resampling.NEAREST, Image.Resampling.BILINEAR, Image.Resampling.BICUBIC, Image.Resampling.LANCZOS)

Size = tuple[int, int]
"""Height and width."""


@dataclass(frozen=True, slots=True)
class PixelFault:
    """A way to prepare an image wrongly; `values` gives (h, w, 3) as the graph would take them."""

    cause: str
    detail: str
    values: Callable[[CorpusImage, Size, PixelRecipe], Floats] = field(repr=False)


def picture_of(feed: Feed) -> Floats:
    """The image in a feed as (h, w, 3), put together again from its patches where it was cut."""
    if "spatial_shapes" not in feed:
        (values,) = feed.values()
        whole: Floats = values[0].transpose(1, 2, 0)
        return whole
    rows, columns = (int(each) for each in feed["spatial_shapes"][0])
    squares = feed["pixel_values"][0][: rows * columns]
    side = round((squares.shape[1] / 3) ** 0.5)
    grid = squares.reshape(rows, columns, side, side, 3).transpose(0, 2, 1, 3, 4)
    joined: Floats = grid.reshape(rows * side, columns * side, 3)
    return joined


def pixel_faults(recipe: PixelRecipe) -> list[PixelFault]:
    """Every fault that is tried, most usual first."""
    faults = [PixelFault("colour order", "BGR instead of RGB", _bgr)]
    faults += _normalisations()
    for number in _FILTERS:
        if number != recipe.resample:
            faults.append(
                PixelFault("resize filter", f"{number.name.lower()} instead of {_name(recipe)}", _filter(number))
            )
    for number in (Image.Resampling.BILINEAR, Image.Resampling.BICUBIC):
        faults.append(PixelFault("resize filter", f"{number.name.lower()} without antialias", _aliased(number)))
    faults.append(PixelFault("resolution", "resized to half the size in between", _twice_resized))
    if recipe.size is not None:
        faults.append(PixelFault("aspect ratio", "shortest edge resized, centre cut out", _cropped))
        faults.append(PixelFault("aspect ratio", "padded to a square with black", _padded))
    faults += [
        PixelFault("decoding", "JPEG decoded at a fraction of its size", _decoded(_a_fraction)),
        PixelFault("decoding", "EXIF orientation ignored", _decoded(lambda _: Decoding(turned=False))),
        PixelFault("decoding", "transparency dropped", _decoded(lambda _: Decoding(on_white=False))),
        PixelFault("decoding", "16 bits clipped to 8", _decoded(lambda _: Decoding(scaled=False))),
    ]
    return faults


def explain_pixels(
    cases: Sequence[tuple[CorpusImage, Floats, Floats]], recipe: PixelRecipe
) -> tuple[PixelFault | None, float]:
    """The fault that explains most of the difference between served and reference values, and the share it explains.

    A case is an image, its served values and its reference values, both (h, w, 3) and of one size.
    """
    total = sum(_squared(served, reference) for _, served, reference in cases)
    best: tuple[PixelFault | None, float] = (None, 0.0)
    for fault in pixel_faults(recipe):
        left = sum(
            _squared(served, fault.values(image, (served.shape[0], served.shape[1]), recipe))
            for image, served, _ in cases
        )
        share = 1 - left / total if total else 0.0
        if share > best[1]:
            best = (fault, share)
    return best


def _squared(a: Floats, b: Floats) -> float:
    # Means, so that no image counts for more than another.
    return float(np.square(a.astype(np.float64) - b).mean())


def _name(recipe: PixelRecipe) -> str:
    return recipe.resample.name.lower()


def _resized(image: Image.Image, size: Size, resample: Image.Resampling) -> Image.Image:
    return image.resize((size[1], size[0]), resample)


def _bgr(image: CorpusImage, size: Size, recipe: PixelRecipe) -> Floats:
    return recipe.values(np.asarray(_resized(image.upright, size, recipe.resample))[..., ::-1])


def _normalisations() -> list[PixelFault]:
    nothing = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    tried = [
        ("left out: levels of 0-1 go in", 1 / 255, nothing),
        ("left out: levels of 0-255 go in", 1.0, nothing),
        ("to -1 and 1, as (x - 0.5) / 0.5", 1 / 255, ((0.5,) * 3, (0.5,) * 3)),
        ("ImageNet's mean and deviation", 1 / 255, IMAGENET),
        ("CLIP's mean and deviation", 1 / 255, CLIP),
    ]

    def fault(detail: str, rescale: float, mean: tuple[float, ...], std: tuple[float, ...]) -> PixelFault:
        def values(image: CorpusImage, size: Size, recipe: PixelRecipe) -> Floats:
            levels = np.asarray(_resized(image.upright, size, recipe.resample), dtype=np.float64)
            result: Floats = ((levels * rescale - np.array(mean)) / np.array(std)).astype(np.float32)
            return result

        return PixelFault("normalisation", detail, values)

    return [fault(detail, rescale, *statistics) for detail, rescale, statistics in tried]


def _filter(resample: Image.Resampling) -> Callable[[CorpusImage, Size, PixelRecipe], Floats]:
    return lambda image, size, recipe: recipe.values(np.asarray(_resized(image.upright, size, resample)))


def _aliased(resample: Image.Resampling) -> Callable[[CorpusImage, Size, PixelRecipe], Floats]:
    """Sampled at the output's pixel centres, however much lies between them: what tensors' interpolate does."""

    def values(image: CorpusImage, size: Size, recipe: PixelRecipe) -> Floats:
        return recipe.values(resize_without_antialias(image.upright, size, resample))

    return values


def resize_without_antialias(image: Image.Image, size: Size, resample: Image.Resampling) -> Floats:
    """Levels (h, w, 3) float32, not rounded, of an RGB image; the kernel (bicubic: a = -0.75) never widens."""
    levels = np.asarray(image, dtype=np.float64)
    for axis, length in enumerate(size):
        before = levels.shape[axis]
        centres = (np.arange(length) + 0.5) * before / length - 0.5
        base = np.floor(centres).astype(np.int64)
        taps = range(0, 2) if resample == Image.Resampling.BILINEAR else range(-1, 3)
        shape = [1, 1, 1]
        shape[axis] = length
        total = np.zeros((*levels.shape[:axis], length, *levels.shape[axis + 1 :]))
        for tap in taps:
            distance = np.abs(centres - (base + tap))
            weight = np.clip(1 - distance, 0, None) if resample == Image.Resampling.BILINEAR else _cubic(distance)
            total += weight.reshape(shape) * np.take(levels, np.clip(base + tap, 0, before - 1), axis=axis)
        levels = total
    result: Floats = np.clip(levels, 0, 255).astype(np.float32)
    return result


def _cubic(x: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    a = -0.75
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _twice_resized(image: CorpusImage, size: Size, recipe: PixelRecipe) -> Floats:
    half = _resized(image.upright, (max(1, size[0] // 2), max(1, size[1] // 2)), recipe.resample)
    return recipe.values(np.asarray(_resized(half, size, recipe.resample)))


def _cropped(image: CorpusImage, size: Size, recipe: PixelRecipe) -> Floats:
    width, height = image.upright.size
    factor = max(size[0] / height, size[1] / width)
    grown = (max(size[1], round(width * factor)), max(size[0], round(height * factor)))
    # A thin image would grow beyond any memory; it is left out by giving what explains nothing.
    if grown[0] * grown[1] > 16_000_000:
        return recipe.values(np.zeros((*size, 3)))
    large = image.upright.resize(grown, recipe.resample)
    left, top = (grown[0] - size[1]) // 2, (grown[1] - size[0]) // 2
    return recipe.values(np.asarray(large.crop((left, top, left + size[1], top + size[0]))))


def _padded(image: CorpusImage, size: Size, recipe: PixelRecipe) -> Floats:
    width, height = image.upright.size
    factor = min(size[0] / height, size[1] / width)
    shrunk = (max(1, round(width * factor)), max(1, round(height * factor)))
    ground = Image.new("RGB", (size[1], size[0]))
    ground.paste(
        image.upright.resize(shrunk, recipe.resample), ((size[1] - shrunk[0]) // 2, (size[0] - shrunk[1]) // 2)
    )
    return recipe.values(np.asarray(ground))


def _decoded(how: Callable[[Size], Decoding]) -> Callable[[CorpusImage, Size, PixelRecipe], Floats]:
    def values(image: CorpusImage, size: Size, recipe: PixelRecipe) -> Floats:
        with Image.open(io.BytesIO(image.data)) as opened:
            whole, _ = decoded(opened, how(size))
        return recipe.values(np.asarray(_resized(whole, size, recipe.resample)))

    return values


def _a_fraction(size: Size) -> Decoding:
    """No smaller than four times the tower's size, as it is served."""
    return Decoding(room=(4 * size[1], 4 * size[0]))
