"""`pack.yaml`: what a model pack contains and what its outputs mean.

A pack is a folder. Every file it names carries its SHA-256, so that a pack is what its manifest says or is refused.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Sha256 = str


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PackFile(_Strict):
    """A file inside the pack's folder."""

    path: str
    sha256: Sha256 = Field(pattern=r"^[0-9a-f]{64}$")


class DistributionFile(_Strict):
    """Where a file that the pack does not carry is found: inside an installed Python distribution."""

    distribution: str
    path: str
    """Path below the distribution's install root."""
    member: str = ""
    """Member of the zip archive at `path`; empty: `path` is the file itself."""


class WeightFile(PackFile):
    """Tensors that a graph points into; `source` is set when the pack does not carry the file itself."""

    source: DistributionFile | None = None


class TextGolden(_Strict):
    """JSON with `texts`, `token_ids` and `embeddings` (reference outputs, float32)."""

    path: str
    sha256: Sha256 = Field(pattern=r"^[0-9a-f]{64}$")
    min_cosine: float = Field(gt=0, le=1)


class VisionGolden(_Strict):
    """npz with `pixels` uint8 (n, height, width, 3) and `embeddings` float32 (n, d), a row for each of `images`."""

    path: str
    sha256: Sha256 = Field(pattern=r"^[0-9a-f]{64}$")
    images: tuple[str, ...]
    min_cosine: float = Field(gt=0, le=1)


class TextTower(_Strict):
    """A text encoder. The graph takes `input_ids` and `attention_mask` (int64, (n, t)) and pools and normalises itself."""

    graph: PackFile
    weights: tuple[WeightFile, ...] = ()
    tokenizer: WeightFile
    precision: Literal["fp32"]
    output: str
    dimension: int = Field(gt=0)
    max_tokens: int = Field(gt=0)
    """Longest sequence of the model, special tokens included."""
    window_stride: int = Field(gt=0)
    """Tokens from one window's start to the next, for texts longer than `max_tokens`."""
    pad_id: int = Field(ge=0)
    golden: TextGolden


class VisionTower(_Strict):
    """An image encoder of SigLIP's kind. The graph takes pixels float32 (n, 3, h, w) and normalises its output."""

    graph: PackFile
    weights: tuple[WeightFile, ...] = ()
    precision: Literal["fp32"]
    input: str
    output: str
    dimension: int = Field(gt=0)
    size: tuple[int, int]
    """Height and width in pixels."""
    resample: Literal["nearest", "bilinear", "bicubic", "lanczos"]
    mean: tuple[float, float, float]
    """RGB, in units of 0-255."""
    std: tuple[float, float, float]
    """RGB, in units of 0-255."""
    logit_scale: float
    logit_bias: float
    """A pair's probability is sigmoid(logit_scale * cosine + logit_bias)."""
    golden: VisionGolden


class Manifest(_Strict):
    """The whole of `pack.yaml`."""

    format: Literal[1]
    name: str
    licence: str
    description: str
    space: str
    """Name of the embedding space; embeddings are comparable only inside one."""
    text: TextTower | None = None
    vision: VisionTower | None = None
