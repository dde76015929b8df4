"""What the parts of a manifest are written with: strict models, kinds of values, files, and how near a graph came."""

from __future__ import annotations

from typing import Annotated, Literal, Self

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


class Strict(BaseModel):
    """A part of a manifest: unknown keys are errors, and numbers are finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PackFile(Strict):
    """A file inside the pack's folder."""

    path: Line
    sha256: Sha256


class DistributionFile(Strict):
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


class Parity(Strict):
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


def require_measure(parity: Parity | None, measure: Literal["cosine", "probability difference"]) -> None:
    """Raises ValueError for a parity that was measured by something else than what its part is measured by."""
    if parity is not None and parity.measure != measure:
        raise ValueError(f"parity.measure: a {measure} is what this part is measured by")
