"""`pack.yaml`: what a model pack contains and what its outputs mean.

A pack is a folder. Every file it names carries its SHA-256, so that a pack is what its manifest says or is refused.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator


def _one_line(value: str) -> str:
    """These end up in messages on a terminal and in paths; an escape sequence or a NUL has no business there."""
    if not all(each.isprintable() for each in value):
        raise ValueError("must be printable characters on one line")
    return value


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Line = Annotated[str, AfterValidator(_one_line), Field(max_length=1024)]
Precision = Literal["fp32", "int8", "bf16"]
"""fp32 and int8 run on ONNX Runtime; bf16 is the fp32 graph on OpenVINO, on processors that have bfloat16."""


Side = Annotated[int, Field(ge=1, le=4096)]
"""Pixels along an edge of an image tower's input; a larger one is a mistake that would cost gigabytes."""

Length = Annotated[int, Field(ge=1, le=1 << 20)]
"""Numbers of an embedding, or tokens of a sequence; the largest models have some ten thousands of either."""

TokenId = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""An id as int32 holds it."""

Factor = Annotated[float, Field(gt=0)]

# Figures are rounded when they are written, and a cosine of float32 rows may come out above 1.
_ROUNDING = 1e-5


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PackFile(_Strict):
    """A file inside the pack's folder."""

    path: Line
    sha256: Sha256


class DistributionFile(_Strict):
    """Where a file that the pack does not carry is found: inside an installed Python distribution."""

    distribution: Line = Field(min_length=1)
    version: Line = ""
    """The release that the pack was made for; only for messages, the digest decides."""
    path: Line
    """Path below the distribution's install root."""
    member: Line = ""
    """Member of the zip archive at `path`; empty: `path` is the file itself."""


class WeightFile(PackFile):
    """Tensors that a graph points into; `source` is set when the pack does not carry the file itself."""

    source: DistributionFile | None = None


class Parity(_Strict):
    """How near a graph came to its PyTorch reference when it was exported; figures are over the golden inputs.

    For embeddings, cosines; for a classifier, the greatest and the mean difference of a probability.
    """

    reference: str
    """What it was held against, with versions."""
    inputs: Length
    measure: Literal["cosine", "probability difference"]
    worst: float
    mean: float
    gate: float
    """What `worst` had to reach: at least for cosines, at most for differences."""
    drift_allowed: bool = False
    """The gate was missed, and whoever exported the pack accepted that."""

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if self.measure == "cosine":
            in_range = 0 < self.gate <= 1 and -1 - _ROUNDING <= self.worst <= self.mean + _ROUNDING <= 1 + 2 * _ROUNDING
            held = self.worst >= self.gate
        else:
            in_range = 0 < self.gate < 1 and 0 <= self.mean <= self.worst + _ROUNDING <= 1 + _ROUNDING
            held = self.worst <= self.gate
        if not in_range:
            raise ValueError(f"gate, worst and mean are no figures that a {self.measure} can have")
        if not held and not self.drift_allowed:
            raise ValueError("worst misses the gate, and drift_allowed is not set; export the pack anew")
        return self


class TextGolden(_Strict):
    """JSON with `texts`, `token_ids` and `embeddings` (reference outputs, float32)."""

    path: Line
    sha256: Sha256
    min_cosine: float = Field(gt=0, le=1)


class GoldenImage(_Strict):
    """An image file. Packs of earlier exporters name the path alone: such an image is not held to its bytes, only to
    the pixels that come out of it."""

    path: Line
    sha256: Sha256 | None = None

    @model_validator(mode="before")
    @classmethod
    def _path_alone(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value


class VisionGolden(_Strict):
    """npz with `pixels` uint8 (n, height, width, 3) and `embeddings` float32 (n, d), a row for each of `images`.

    For a tower with `patches` too, all images have one size.
    """

    path: Line
    sha256: Sha256
    images: tuple[GoldenImage, ...] = Field(min_length=1)
    min_cosine: float = Field(gt=0, le=1)


class ClassifierGolden(_Strict):
    """JSON with `texts`, `token_ids` and `probabilities` (the reference's): a row a text, or a row a token."""

    path: Line
    sha256: Sha256
    max_difference: float = Field(gt=0, lt=1)


class TextGraph(_Strict):
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
    golden: TextGolden

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _require_measure(self.parity, "cosine")
        _require_nested(self.matryoshka, self.dimension)
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
        _require_measure(self.parity, "probability difference")
        return self


class PatchGrid(_Strict):
    """How a tower for any aspect ratio takes an image: in its own shape, as squares of `patch` pixels, at most
    `max_patches` of them."""

    patch: Side
    max_patches: int = Field(ge=1, le=1 << 16)


class VisionTower(_Strict):
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
        _require_measure(self.parity, "cosine")
        _require_nested(self.matryoshka, self.dimension)
        return self


class Source(_Strict):
    """The checkpoint that a pack was exported from."""

    checkpoint: Line
    """Hub id, or the name of a local folder."""
    revision: Line
    """The hub's commit; empty for a local folder."""
    kind: str
    exporter: str
    """Versions of what exported it."""


class Manifest(_Strict):
    """The whole of `pack.yaml`."""

    format: Literal[1]
    name: Line = Field(min_length=1)
    licence: str
    description: str
    space: Line = ""
    """Name of the embedding space; embeddings are comparable only inside one. Empty for a classifier."""
    source: Source | None = None
    text: TextTower | None = None
    vision: VisionTower | None = None
    classifier: TextClassifier | None = None

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if self.text is None and self.vision is None and self.classifier is None:
            raise ValueError("there is nothing to serve in it: one of `text`, `vision` and `classifier` is needed")
        if (self.text is not None or self.vision is not None) and not self.space:
            raise ValueError("`space` is needed: without it nobody can tell which embeddings may be compared")
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


def _require_measure(parity: Parity | None, measure: Literal["cosine", "probability difference"]) -> None:
    if parity is not None and parity.measure != measure:
        raise ValueError(f"parity.measure: a {measure} is what this part is measured by")
