"""What a verification found, as plain values that become a table, JSON or a page. No model is asked here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Measure = Literal["cosine", "probability difference"]
Stage = Literal["preprocessing", "model", "whole", "tokens", "golden", "scale and bias"]
Side = Literal["image", "text", "heads", "classifier"]


@dataclass(frozen=True, slots=True)
class Spread:
    """Least, mean and greatest of a figure."""

    least: float
    mean: float
    greatest: float


@dataclass(frozen=True, slots=True)
class Row:
    """One input through the three comparisons; None where a stage could not be run.

    `whole` compares both pipelines, `model` the served graph with the reference on the reference's own input,
    `preprocessing` both inputs through the reference. `input_difference` is the mean and the greatest difference of
    pixels in levels, or how many token ids differ, in the first place. `equal` is whether both inputs are the same to
    the bit, `note` what is special about the input.
    """

    name: str
    whole: float | None
    model: float | None
    preprocessing: float | None
    input_difference: tuple[float, float] | None
    equal: bool
    held: bool
    note: str = ""
    pictures: tuple[str, ...] = field(default=(), repr=False)
    """Data URIs: the reference's pixels, the served ones, their difference. Only where a page is wanted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A stage that drifts. `explained` is the share of the drift that the cause accounts for, None where untested."""

    side: Side
    stage: Stage
    cause: str
    detail: str
    explained: float | None = None

    def __str__(self) -> str:
        share = "" if self.explained is None else f" (explains {self.explained:.0%} of the drift)"
        return f"{self.side}, {self.stage}: {self.cause}, {self.detail}{share}"


@dataclass(frozen=True, slots=True)
class SideReport:
    """One tower or classifier. `bound` is what `whole`, `model` and `preprocessing` are held to."""

    side: Side
    precision: str
    measure: Measure
    bound: float
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    left_out: tuple[str, ...] = ()
    """Inputs that one side refused, and why."""

    def spread(self, stage: Literal["whole", "model", "preprocessing"]) -> Spread | None:
        """Over all rows that have the figure."""
        return spread_of(value for row in self.rows if (value := getattr(row, stage)) is not None)

    @property
    def equal_inputs(self) -> int:
        """Rows whose pixels or ids are the reference's to the bit."""
        return sum(row.equal for row in self.rows)


@dataclass(frozen=True, slots=True)
class Report:
    """The whole. `reference` is None where only golden vectors were at hand, and `why_not` says why."""

    pack: str
    digest: str
    reference: str | None
    why_not: str
    golden: tuple[str, ...]
    """What the parity gate missed."""
    sides: tuple[SideReport, ...]
    declared: tuple[str, ...] = ()
    """What the manifest says of its graphs and bounds, and does not hold."""
    notes: tuple[str, ...] = ()
    """What an operator should know and is no fault."""
    not_compared: tuple[Side, ...] = ()
    """Parts of the pack that no reference was at hand for: for these golden vectors are all there is."""

    @property
    def golden_vectors_only(self) -> bool:
        """Whether PyTorch was asked about nothing at all."""
        return not self.sides

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of every side."""
        return tuple(finding for side in self.sides for finding in side.findings)

    @property
    def holds(self) -> bool:
        """Whether nothing drifts."""
        return not self.golden and not self.findings and not self.declared

    def as_json(self) -> dict[str, Any]:
        """Plain values, pictures left out."""
        sides = []
        for side in self.sides:
            rows = [{key: value for key, value in asdict(row).items() if key != "pictures"} for row in side.rows]
            stages: tuple[Literal["whole", "model", "preprocessing"], ...] = ("whole", "model", "preprocessing")
            spreads = {stage: asdict(found) for stage in stages if (found := side.spread(stage)) is not None}
            sides.append(
                {
                    "side": side.side,
                    "precision": side.precision,
                    "measure": side.measure,
                    "bound": side.bound,
                    "inputs": len(side.rows),
                    "equal_inputs": side.equal_inputs,
                    "spread": spreads,
                    "findings": [asdict(finding) for finding in side.findings],
                    "left_out": list(side.left_out),
                    "rows": rows,
                }
            )
        return {
            "pack": self.pack,
            "digest": self.digest,
            "holds": self.holds,
            "reference": self.reference,
            "why_no_reference": self.why_not,
            "golden_vectors_only": self.golden_vectors_only,
            "not_compared": list(self.not_compared),
            "golden": list(self.golden),
            "declared": list(self.declared),
            "notes": list(self.notes),
            "sides": sides,
        }


def spread_of(values: Iterable[float]) -> Spread | None:
    """None for no values."""
    listed = list(values)
    return Spread(min(listed), sum(listed) / len(listed), max(listed)) if listed else None
