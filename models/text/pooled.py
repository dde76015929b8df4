"""Pooled hidden states of many texts' first windows, kept on disk: what the text-level heads learn from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.text.encoder import WIDTH, Encoder, Hidden

POOLED = 3 * WIDTH
"""Mean of hidden_4, mean of hidden_6, greatest of hidden_6; each without [CLS] and [SEP] left out."""


def pool(hidden: Hidden) -> NDArray[np.float32]:
    """(POOLED,) of one window."""
    return np.concatenate([hidden[4].mean(0), hidden[6].mean(0), hidden[6].max(0)])


def pooled(encoder: Encoder, texts: Sequence[str], work: Path) -> NDArray[np.float32]:
    """(n, POOLED); each text's first window. Texts that were asked for before are read from disk."""
    store = work / "pooled"
    store.mkdir(parents=True, exist_ok=True)
    keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24] for text in texts]
    _load(store)
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in _KNOWN}
    if missing:
        found = np.zeros((len(missing), POOLED), np.float16)
        for index, hidden in encoder.hidden([encoder.windows(text)[0] for text in missing.values()]):
            found[index] = pool(hidden)
        name = hashlib.sha256("".join(missing).encode()).hexdigest()[:24]
        part = store / f"{name}.part"
        with part.open("wb") as file:
            np.savez(file, keys=np.array(list(missing)), rows=found)
        part.replace(store / f"{name}.npz")
        _load(store)
    return np.stack([_KNOWN[key] for key in keys]).astype(np.float32)


_KNOWN: dict[str, NDArray[np.float16]] = {}
_READ: set[Path] = set()


def _load(store: Path) -> None:
    for path in sorted(store.glob("*.npz")):
        if path not in _READ:
            with np.load(path) as file:
                _KNOWN.update(zip(file["keys"].tolist(), file["rows"], strict=True))
            _READ.add(path)


def embeddings(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """The texts' unit vectors, as the tower gives them, from pooled features (n, POOLED)."""
    mean = features[:, WIDTH : 2 * WIDTH]
    unit: NDArray[np.float32] = mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-9)
    return unit
