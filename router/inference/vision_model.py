"""The vision tower by itself: decode and resize, then forward.

Synchronous and without caches, so that the parity gate and the tests see exactly what serves; `vision.py` puts it
behind the executor.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from router.inference.patches import PatchPreprocessor
from router.inference.preprocess import Preprocessor
from router.inference.sessions import SessionAnywhere, open_session, require_io
from router.packs.files import inside
from router.packs.manifest import VisionTower
from router.request.images import ImageLimits, decode

# `decode` leaves a JPEG at no less than twice the size asked for; asking for twice the tower's keeps four times. Below
# eight times nothing is shortened and pixels are the reference's. Above, EfficientNet-Lite0's features on 4,000-pixel
# files had cosine 0.9998 in the median, as when one level is added to 2 % of the values, in 27 ms instead of 135; at
# twice the size it was 0.9995.
JPEG_ROOM = 2


class VisionModel:
    """Preprocessing and session of one vision tower. Its methods may run in several threads at once."""

    def __init__(
        self, tower: VisionTower, folder: Path, limits: ImageLimits, session: SessionAnywhere | None = None
    ) -> None:
        """Open what `lay_out` gave, the graph unless there is a `session` of it; raises PackError."""
        self.tower = tower
        self._preprocessor = Preprocessor(tower) if tower.patches is None else PatchPreprocessor(tower, tower.patches)
        if session is None:
            graph = inside(folder, tower.graph.path)
            session = open_session(graph, tower.precision)
            require_io(session, graph, self._preprocessor.inputs, tower.output)
        self._session = session
        self._limits = limits

    @property
    def providers(self) -> tuple[str, ...]:
        """Execution providers that the session runs on."""
        return tuple(self._session.get_providers())

    def preprocess(self, data: bytes) -> NDArray[np.uint8]:
        """Stage one: an image file's bytes to (height, width, 3) uint8; raises ImageError."""
        height, width = self.tower.size
        room = (JPEG_ROOM * height, JPEG_ROOM * width)
        return self._preprocessor.resize(decode(data, self._limits, target=room))

    def forward(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Stage two: unit vectors (n, d) float32 of (n, height, width, 3) uint8.

        An int8 graph scales its activations by the greatest in the batch, so there each image runs alone.
        """
        if self.tower.precision == "int8" and len(pixels) > 1:
            alone = np.concatenate([self.forward(image[None]) for image in pixels])
            alone.flags.writeable = False
            return alone
        return self.run(self.feed(pixels))

    def feed(self, pixels: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """What the graph takes for (n, height, width, 3) uint8, by input name: normalised, and cut where it asks so."""
        return self._preprocessor.feed(pixels)

    def run(self, feed: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """The graph alone, on what `feed` or a reference's own preprocessing gives: (n, d) float32."""
        rows: NDArray[np.float32] = self._session.run([self.tower.output], dict(feed))[0]
        rows.flags.writeable = False
        return rows

    def encode(self, data: bytes) -> NDArray[np.float32]:
        """Both stages of one image: a unit vector (d,). Batches gain nothing on a CPU. Raises ImageError."""
        row: NDArray[np.float32] = self.forward(self.preprocess(data)[None])[0]
        return row


def vision_inputs(tower: VisionTower) -> tuple[str, ...]:
    """Names of the graph's inputs."""
    return (tower.input,) if tower.patches is None else PatchPreprocessor.inputs
