"""`pack.yaml`: what a model pack contains and what its outputs mean.

A pack is a folder. Every file it names carries its SHA-256, so that a pack is what its manifest says or is refused.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Sha256 = str
Precision = Literal["fp32", "int8", "bf16"]
"""fp32 and int8 run on ONNX Runtime; bf16 is the fp32 graph on OpenVINO, on processors that have bfloat16."""


Side = Annotated[int, Field(ge=1, le=4096)]
"""Pixels along an edge of an image tower's input; a larger one is a mistake that would cost gigabytes."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PackFile(_Strict):
    """A file inside the pack's folder."""

    path: str
    sha256: Sha256 = Field(pattern=r"^[0-9a-f]{64}$")


class DistributionFile(_Strict):
    """Where a file that the pack does not carry is found: inside an installed Python distribution."""

    distribution: str
    version: str = ""
    """The release that the pack was made for; only for messages, the digest decides."""
    path: str
    """Path below the distribution's install root."""
    member: str = ""
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
    inputs: int = Field(gt=0)
    measure: Literal["cosine", "probability difference"]
    worst: float
    mean: float
    gate: float
    """What `worst` had to reach: at least for cosines, at most for differences."""
    drift_allowed: bool = False
    """The gate was missed, and whoever exported the pack accepted that."""


class TextGolden(_Strict):
    """JSON with `texts`, `token_ids` and `embeddings` (reference outputs, float32)."""

    path: str
    sha256: Sha256 = Field(pattern=r"^[0-9a-f]{64}$")
    min_cosine: float = Field(gt=0, le=1)


class VisionGolden(_Strict):
    """npz with `pixels` uint8 (n, height, width, 3) and `embeddings` float32 (n, d), a row for each of `images`.

    For a tower with `patches` too, all images have one size.
    """

    path: str
    sha256: Sha256 = Field(pattern=r"^[0-9a-f]{64}$")
    images: tuple[str, ...]
    min_cosine: float = Field(gt=0, le=1)


class ClassifierGolden(_Strict):
    """JSON with `texts`, `token_ids` and `probabilities` (the reference's): a row a text, or a row a token."""

    path: str
    sha256: Sha256 = Field(pattern=r"^[0-9a-f]{64}$")
    max_difference: float = Field(gt=0, lt=1)


class TextGraph(_Strict):
    """A graph that reads text: `input_ids` and `attention_mask` (int64, (n, t)) go in."""

    graph: PackFile
    weights: tuple[WeightFile, ...] = ()
    tokenizer: WeightFile
    precision: Precision
    output: str
    max_tokens: int = Field(gt=0)
    """Longest sequence of the model, special tokens included."""
    window_stride: int = Field(gt=0)
    """Tokens from one window's start to the next, for texts longer than `max_tokens`."""
    pad_id: int = Field(ge=0)
    fixed_length: bool = False
    """Every sequence is padded to `max_tokens` and the graph takes no mask, as SigLIP was trained: it reads the last
    position, padding or not."""
    parity: Parity | None = None


class TextTower(TextGraph):
    """A text encoder: pooled unit vectors (n, dimension) come out."""

    dimension: int = Field(gt=0)
    matryoshka: tuple[int, ...] = ()
    """Lesser dimensions that the checkpoint was trained for: the first so many numbers, made a unit vector again."""
    golden: TextGolden


class TextClassifier(TextGraph):
    """A classifier: logits come out, (n, labels) for a text's label, (n, t, labels) for a label of each token."""

    level: Literal["text", "token"]
    labels: tuple[str, ...] = Field(min_length=1)
    activation: Literal["softmax", "sigmoid"]
    """softmax: exactly one label holds; sigmoid: each may hold by itself."""
    temperature: float = Field(1.0, gt=0)
    """Logits are divided by it before the activation."""
    golden: ClassifierGolden


class PatchGrid(_Strict):
    """How a tower for any aspect ratio takes an image: in its own shape, as squares of `patch` pixels, at most
    `max_patches` of them."""

    patch: int = Field(gt=0)
    max_patches: int = Field(gt=0)


class VisionTower(_Strict):
    """An image encoder of SigLIP's kind. The graph takes pixels float32 (n, 3, h, w) and normalises its output.

    With `patches` it takes `pixel_values` float32 (n, max_patches, 3 * patch * patch), `pixel_attention_mask` int64
    (n, max_patches) and `spatial_shapes` int64 (n, 2), rows and columns of the grid.
    """

    graph: PackFile
    weights: tuple[WeightFile, ...] = ()
    precision: Precision
    input: str
    output: str
    dimension: int = Field(gt=0)
    matryoshka: tuple[int, ...] = ()
    """See `TextTower.matryoshka`."""
    size: tuple[Side, Side]
    """Height and width in pixels; with `patches` those of a square image."""
    patches: PatchGrid | None = None
    resample: Literal["nearest", "bilinear", "bicubic", "lanczos"]
    mean: tuple[float, float, float]
    """RGB, in units of 0-255, or of `rescale` where that is set."""
    std: tuple[float, float, float]
    """See `mean`."""
    rescale: float | None = None
    """What levels are multiplied by before `mean` and `std`, rounded to float32 at each step as image processors of
    transformers do, so that pixels come out equal to the bit."""
    logit_scale: float = Field(gt=0)
    logit_bias: float
    """A pair's probability is sigmoid(logit_scale * cosine + logit_bias). Checkpoints of SigLIP store the logarithm of
    the scale; this is the scale."""
    parity: Parity | None = None
    golden: VisionGolden


class Source(_Strict):
    """The checkpoint that a pack was exported from."""

    checkpoint: str
    """Hub id, or the name of a local folder."""
    revision: str
    """The hub's commit; empty for a local folder."""
    kind: str
    exporter: str
    """Versions of what exported it."""


class Manifest(_Strict):
    """The whole of `pack.yaml`."""

    format: Literal[1]
    name: str
    licence: str
    description: str
    space: str = ""
    """Name of the embedding space; embeddings are comparable only inside one. Empty for a classifier."""
    source: Source | None = None
    text: TextTower | None = None
    vision: VisionTower | None = None
    classifier: TextClassifier | None = None
