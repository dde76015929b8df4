"""The locked text tower, all-MiniLM-L6-v2, in plain numpy.

Training and measuring embed a few thousand short phrases; that needs neither torch nor a graph. Mean pooling, unit
vectors. Not for serving.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from .sources import text_file

Floats = NDArray[np.float32]

LAYERS = 6
HEADS = 12
EPSILON = 1e-12
_ERF = np.vectorize(math.erf, otypes=[np.float32])


def read_safetensors(data: bytes) -> dict[str, Floats]:
    """A header of JSON behind its length, then raw little-endian tensors; float32 ones only."""
    size = int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8 : 8 + size])
    start = 8 + size
    tensors: dict[str, Floats] = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        first, last = entry["data_offsets"]
        flat = np.frombuffer(data[start + first : start + last], dtype="<f4")
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


# The exact GELU needs erf, which numpy lacks: a table over [-8, 8] is exact to 1e-7 after linear interpolation.
_GRID = np.linspace(-8, 8, 65537, dtype=np.float32)
_PHI = (0.5 * (1 + _ERF(_GRID / np.float32(math.sqrt(2))))).astype(np.float32)


def _gelu(x: Floats) -> Floats:
    activated: Floats = (x * np.interp(x, _GRID, _PHI)).astype(np.float32)
    return activated


class TextTower:
    """Sentences to unit vectors of 384 numbers."""

    def __init__(self) -> None:
        self._weights = read_safetensors(text_file("model.safetensors"))
        self._tokenizer = Tokenizer.from_str(text_file("tokenizer.json").decode("utf-8"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(256)

    def vocabulary(self) -> list[str]:
        """The word pieces that the tokenizer knows."""
        return list(self._tokenizer.get_vocab(with_added_tokens=False))

    def embed(self, texts: Sequence[str]) -> Floats:
        """In batches of equal length, so that nothing is padded and no mask is needed."""
        encoded = [self._tokenizer.encode(text).ids for text in texts]
        by_length: dict[int, list[int]] = {}
        for index, ids in enumerate(encoded):
            by_length.setdefault(len(ids), []).append(index)
        result = np.empty((len(texts), 384), dtype=np.float32)
        for indices in by_length.values():
            for start in range(0, len(indices), 64):
                chunk = indices[start : start + 64]
                result[chunk] = self._forward(np.array([encoded[index] for index in chunk]))
        return result

    def _linear(self, x: Floats, name: str) -> Floats:
        return x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _norm(self, x: Floats, name: str) -> Floats:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(EPSILON))
        shifted: Floats = scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return shifted

    def _forward(self, ids: NDArray[np.int64]) -> Floats:
        n, length = ids.shape
        weights = self._weights
        x = weights["embeddings.word_embeddings.weight"][ids]
        x = x + weights["embeddings.position_embeddings.weight"][:length]
        x = x + weights["embeddings.token_type_embeddings.weight"][0]
        x = self._norm(x, "embeddings.LayerNorm")
        for layer in range(LAYERS):
            base = f"encoder.layer.{layer}"

            def heads(name: str, x: Floats = x, base: str = base) -> Floats:
                projected = self._linear(x, f"{base}.attention.self.{name}")
                return projected.reshape(n, length, HEADS, -1).transpose(0, 2, 1, 3)

            query, key, value = heads("query"), heads("key"), heads("value")
            scores = query @ key.transpose(0, 1, 3, 2) / np.float32(math.sqrt(query.shape[-1]))
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            mixed = (scores @ value).transpose(0, 2, 1, 3).reshape(n, length, -1)
            x = self._norm(
                x + self._linear(mixed, f"{base}.attention.output.dense"), f"{base}.attention.output.LayerNorm"
            )
            inner = _gelu(self._linear(x, f"{base}.intermediate.dense"))
            x = self._norm(x + self._linear(inner, f"{base}.output.dense"), f"{base}.output.LayerNorm")
        pooled = x.mean(1)
        unit: Floats = pooled / np.linalg.norm(pooled, axis=-1, keepdims=True)
        return unit
