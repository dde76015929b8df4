"""`pack.yaml`: what a model pack contains and what its outputs mean.

A pack is a folder. Every file it names carries its SHA-256, so that a pack is what its manifest says or is refused.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from router.packs.heads import Heads
from router.packs.parts import (
    Factor,
    Length,
    Line,
    PackFile,
    Parity,
    Precision,
    Sha256,
    Side,
    Strict,
    TokenId,
    WeightFile,
    require_measure,
)


class TextGolden(Strict):
    """JSON with `texts`, `token_ids` and `embeddings` (reference outputs, float32)."""

    path: Line
    sha256: Sha256
    min_cosine: float = Field(gt=0, le=1)


class GoldenImage(Strict):
    """An image file. Packs of earlier exporters name the path alone: such an image is not held to its bytes, only to
    the pixels that come out of it."""

    path: Line
    sha256: Sha256 | None = None

    @model_validator(mode="before")
    @classmethod
    def _path_alone(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value


class VisionGolden(Strict):
    """npz with `pixels` uint8 (n, height, width, 3) and `embeddings` float32 (n, d), a row for each of `images`.

    For a tower with `patches` too, all images have one size.
    """

    path: Line
    sha256: Sha256
    images: tuple[GoldenImage, ...] = Field(min_length=1)
    min_cosine: float = Field(gt=0, le=1)


class ClassifierGolden(Strict):
    """JSON with `texts`, `token_ids` and `probabilities` (the reference's): a row a text, or a row a token."""

    path: Line
    sha256: Sha256
    max_difference: float = Field(gt=0, lt=1)


class TextGraph(Strict):
    """A graph that reads text: `input_ids` and `attention_mask` (int64, (n, t)) go in."""

    graph: PackFile
    weights: tuple[WeightFile, ...] = ()
    tokenizer: WeightFile
    precision: Precision
    output: Line
    max_tokens: Length
    """Longest sequence of the model, special tokens included."""
    window_stride: Length
    """Tokens from one window's start to the next, for texts longer than `max_tokens`."""
    pad_id: TokenId
    fixed_length: bool = False
    """Every sequence is padded to `max_tokens` and the graph takes no mask, as SigLIP was trained: it reads the last
    position, padding or not."""
    parity: Parity | None = None


class TextTower(TextGraph):
    """A text encoder: pooled unit vectors (n, dimension) come out."""

    dimension: Length
    matryoshka: tuple[Length, ...] = ()
    """Lesser dimensions that the checkpoint was trained for: the first so many numbers, made a unit vector again. Each
    once, in falling or rising order."""
    layers: tuple[Line, ...] = ()
    """Further outputs of the graph, hidden states float32 (n, t, width), which heads may read."""
    golden: TextGolden

    @model_validator(mode="after")
    def _fits(self) -> Self:
        require_measure(self.parity, "cosine")
        _require_nested(self.matryoshka, self.dimension)
        if len({self.output, *self.layers}) != 1 + len(self.layers):
            raise ValueError("layers: each may stand once, and `output` is none of them")
        return self


class TextClassifier(TextGraph):
    """A classifier: logits come out, (n, labels) for a text's label, (n, t, labels) for a label of each token."""

    level: Literal["text", "token"]
    labels: tuple[Line, ...] = Field(min_length=1)
    activation: Literal["softmax", "sigmoid"]
    """softmax: exactly one label holds; sigmoid: each may hold by itself."""
    temperature: Factor = 1.0
    """Logits are divided by it before the activation."""
    golden: ClassifierGolden

    @model_validator(mode="after")
    def _fits(self) -> Self:
        require_measure(self.parity, "probability difference")
        return self


class PatchGrid(Strict):
    """How a tower for any aspect ratio takes an image: in its own shape, as squares of `patch` pixels, at most
    `max_patches` of them."""

    patch: Side
    max_patches: int = Field(ge=1, le=1 << 16)


class VisionTower(Strict):
    """An image encoder of SigLIP's kind. The graph takes pixels float32 (n, 3, h, w) and normalises its output.

    With `patches` it takes `pixel_values` float32 (n, max_patches, 3 * patch * patch), `pixel_attention_mask` int64
    (n, max_patches) and `spatial_shapes` int64 (n, 2), rows and columns of the grid.
    """

    graph: PackFile
    weights: tuple[WeightFile, ...] = ()
    precision: Precision
    input: Line
    output: Line
    dimension: Length
    matryoshka: tuple[Length, ...] = ()
    """See `TextTower.matryoshka`."""
    size: tuple[Side, Side]
    """Height and width in pixels; with `patches` those of a square image."""
    patches: PatchGrid | None = None
    resample: Literal["nearest", "bilinear", "bicubic", "lanczos"]
    mean: tuple[float, float, float]
    """RGB, in units of 0-255, or of `rescale` where that is set."""
    std: tuple[Factor, Factor, Factor]
    """See `mean`."""
    rescale: Factor | None = None
    """What levels are multiplied by before `mean` and `std`, rounded to float32 at each step as image processors of
    transformers do, so that pixels come out equal to the bit."""
    logit_scale: Factor
    logit_bias: float
    """A pair's probability is sigmoid(logit_scale * cosine + logit_bias). Checkpoints of SigLIP store the logarithm of
    the scale; this is the scale."""
    parity: Parity | None = None
    golden: VisionGolden

    @model_validator(mode="after")
    def _fits(self) -> Self:
        require_measure(self.parity, "cosine")
        _require_nested(self.matryoshka, self.dimension)
        return self


class Source(Strict):
    """The checkpoint that a pack was exported from."""

    checkpoint: Line
    """Hub id, or the name of a local folder."""
    revision: Line
    """The hub's commit; empty for a local folder."""
    kind: str
    exporter: str
    """Versions of what exported it."""


class Manifest(Strict):
    """The whole of `pack.yaml`."""

    format: Literal[1]
    name: Line = Field(min_length=1)
    licence: str
    description: str
    space: Line = ""
    """Name of the embedding space; embeddings are comparable only inside one. Empty for a classifier."""
    source: Source | None = None
    text: TextTower | None = None
    heads: Heads | None = None
    """Classifiers over the text tower's layers."""
    vision: VisionTower | None = None
    classifier: TextClassifier | None = None

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if self.text is None and self.vision is None and self.classifier is None:
            raise ValueError("there is nothing to serve in it: one of `text`, `vision` and `classifier` is needed")
        if (self.text is not None or self.vision is not None) and not self.space:
            raise ValueError("`space` is needed: without it nobody can tell which embeddings may be compared")
        if self.heads is not None and (self.text is None or self.text.fixed_length):
            raise ValueError("heads: they read a text tower, one that takes an attention mask")
        if self.text is not None and self.vision is not None and self.text.dimension != self.vision.dimension:
            raise ValueError(
                f"text.dimension is {self.text.dimension} and vision.dimension {self.vision.dimension}: not one space"
            )
        return self


def _require_nested(lengths: tuple[int, ...], dimension: int) -> None:
    if any(length >= dimension for length in lengths):
        raise ValueError(f"matryoshka: each must be less than the dimension, {dimension}")
    if list(lengths) not in (sorted(set(lengths)), sorted(set(lengths), reverse=True)):
        raise ValueError("matryoshka: each may stand once, in falling or rising order")
