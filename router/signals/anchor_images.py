"""Example images that a policy names: found, read and checked when a signal is built.

Paths start from the policy's folder. What can't be used is told to the policy's author, before any request comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.inference.vision import VisionEncoder
from router.request.errors import ImageError
from router.request.images import ImageLimits, decode
from router.request.view import ImagePart
from router.signals.base import SignalName
from router.signals.resources import SignalSetupError

_LIMITS: Final = ImageLimits()


def read_images(name: SignalName, base: Path, paths: Sequence[str]) -> tuple[ImagePart, ...]:
    """The images, each decoded once as a check; raises SignalSetupError that names the file and what is wrong."""
    return tuple(_read(name, base, path) for path in paths)


def _read(name: SignalName, base: Path, path: str) -> ImagePart:
    try:
        with (base / path).open("rb") as file:
            data = file.read(_LIMITS.bytes + 1)
        decode(data, _LIMITS)
    except OSError as error:
        raise SignalSetupError(f"{name}: image {path}: {error.strerror or error}") from error
    except ImageError as error:
        raise SignalSetupError(f"{name}: image {path}: {error.reason}") from error
    return ImagePart(path, "inline", data)


async def embed_images(name: SignalName, vision: VisionEncoder, images: Sequence[ImagePart]) -> NDArray[np.float32]:
    """Unit vectors (n, d); raises SignalSetupError where the encoder refuses one after all, by the policy's limits."""
    rows = [np.zeros((0, vision.dimension), np.float32)]
    for image in images:
        try:
            rows.append((await vision.embed(image))[None])
        except ImageError as error:
            raise SignalSetupError(f"{name}: image {image.pointer}: {error.reason}") from error
    return np.concatenate(rows)
