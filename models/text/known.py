"""What the text-level heads know of a window: unit vectors of its mean after layers 6 and 4."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.text.encoder import WIDTH


def known(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n, 768) of pooled features (n, POOLED): first what is the tower's own embedding."""
    return np.concatenate([unit(features[:, WIDTH : 2 * WIDTH]), unit(features[:, :WIDTH])], axis=1)


def unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """Rows of length one, float32."""
    rows = rows.astype(np.float32, copy=False)
    found: NDArray[np.float32] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return found
