"""What `preprocessor_config.json` says about pixels, as a manifest says it.

Only what is certain to be served exactly is taken: one fixed size, a filter, one factor, mean and deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from router.export.checkpoint_files import finite_numbers, read_json_if_there
from router.export.errors import ExportError
from router.packs.manifest import PatchGrid

Resample = Literal["nearest", "bilinear", "bicubic", "lanczos"]
# Pillow's numbers, which checkpoints store.
_FILTERS: dict[int, Resample] = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
_LEVEL = 1 / 255
_HALF = (0.5, 0.5, 0.5)


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """See `router.packs.manifest.VisionTower`."""

    size: tuple[int, int]
    resample: Resample
    rescale: float
    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    @property
    def config(self) -> dict[str, Any]:
        """The same as an image processor of transformers takes it."""
        return {
            "do_convert_rgb": True,
            "do_resize": True,
            "size": {"height": self.size[0], "width": self.size[1]},
            "resample": next(number for number, name in _FILTERS.items() if name == self.resample),
            "do_rescale": True,
            "rescale_factor": self.rescale,
            "do_normalize": True,
            "image_mean": list(self.mean),
            "image_std": list(self.std),
        }


def read_preprocessing(folder: Path, image_size: int, patches: PatchGrid | None = None) -> Preprocessing:
    """What the checkpoint's image processor does; `image_size` is what its vision tower takes, or the side of the
    square that fits the patches of one that keeps an image's shape.

    A checkpoint without a file is taken to use SigLIP's. Raises ExportError for what can't be served as it is.
    """
    config = read_json_if_there(folder / "preprocessor_config.json")
    place = folder / "preprocessor_config.json"
    if config.get("do_center_crop") or config.get("do_pad") or config.get("do_resize", True) is not True:
        raise ExportError(f"{place} crops, pads or does not resize; only a resize to one size is supported")
    size = (image_size, image_size) if patches else _size(config.get("size", image_size), place)
    if size != (image_size, image_size):
        raise ExportError(f"{place} resizes to {size}, the vision tower takes {image_size} x {image_size}")
    filter_number = config.get("resample", 2 if patches else 3)
    if not isinstance(filter_number, int) or filter_number not in _FILTERS:
        raise ExportError(f"{place}: resample {filter_number!r} is none of {sorted(_FILTERS)}")
    normalises = config.get("do_normalize", True)
    return Preprocessing(
        size=size,
        resample=_FILTERS[filter_number],
        rescale=_factor(config.get("rescale_factor", _LEVEL), place) if config.get("do_rescale", True) else 1.0,
        mean=_three(config.get("image_mean", _HALF), place) if normalises else (0.0, 0.0, 0.0),
        std=_deviation(config.get("image_std", _HALF), place) if normalises else (1.0, 1.0, 1.0),
    )


def _size(value: Any, place: Path) -> tuple[int, int]:
    if isinstance(value, int):
        return value, value
    if isinstance(value, dict) and isinstance(value.get("height"), int) and isinstance(value.get("width"), int):
        return value["height"], value["width"]
    raise ExportError(f"{place}: size {value!r} is no height and width; resizing by the shortest edge is not supported")


def _three(value: Any, place: Path) -> tuple[float, float, float]:
    try:
        first, second, third = finite_numbers(value if isinstance(value, (list, tuple)) else [value] * 3)
    except ValueError as error:
        raise ExportError(f"{place}: mean and deviation are three finite numbers, not {value!r}") from error
    return first, second, third


def _deviation(value: Any, place: Path) -> tuple[float, float, float]:
    deviation = _three(value, place)
    if min(deviation) <= 0:
        raise ExportError(f"{place}: image_std {value!r} is not above nought; pixels are divided by it")
    return deviation


def _factor(value: Any, place: Path) -> float:
    try:
        (factor,) = finite_numbers([value])
    except ValueError as error:
        raise ExportError(f"{place}: rescale_factor {value!r} is no finite number") from error
    return factor
