"""The `heads` of a manifest: small classifiers that read what the text tower has computed, all in one graph.

A head needs no pass of a model of its own. What each output means, and how it is calibrated, stands here.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from router.packs.parts import Factor, Line, PackFile, Sha256, Strict

HEADS_BYTES: Final = 16 << 20
"""The most that a graph of heads may weigh: a larger one is a model of its own, and belongs into a classifier pack."""

ATTENTION_MASK: Final = "attention_mask"
TOKEN_SHAPES: Final = "token_shapes"  # noqa: S105
PATTERNS: Final = "patterns"

OUTSIDE: Final = "O"
"""The label of tokens that are nothing."""

HeadName = Annotated[Line, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Version = Annotated[int, Field(ge=1)]


class HeadsGolden(Strict):
    """JSON with `texts`, `token_ids` of each one's first window, and `probabilities`: of every head by its name the
    reference's, a row a text, or of a token-level head a row a token, special ones included."""

    path: Line
    sha256: Sha256
    max_difference: float = Field(gt=0, lt=1)


class Head(Strict):
    """One output of the graph: logits (n, labels) of a head that judges texts, (n, t, labels) of one that judges
    tokens."""

    name: HeadName
    level: Literal["text", "token"]
    labels: tuple[Annotated[Line, Field(min_length=1)], ...] = Field(min_length=1)
    activation: Literal["softmax", "sigmoid"]
    """softmax: exactly one label holds; sigmoid: each may hold by itself."""
    temperature: Factor = 1.0
    """Of a softmax: logits are divided by it."""
    scale: Factor = 1.0
    """Of a sigmoid: logits are multiplied by it."""
    bias: float = 0.0
    """Of a sigmoid: added to the scaled logits."""
    windows: Literal["max", "mean"] = "max"
    """How the windows of a text make its one answer: the greatest, or the mean, each by its characters."""
    threshold: float = Field(ge=0, le=1)
    """Probability from which on a signal matches whose author says nothing else."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(set(self.labels)) != len(self.labels):
            raise ValueError("labels: each may stand once")
        if self.activation == "softmax" and len(self.labels) == 1:
            raise ValueError("a softmax needs two labels or more: the share of a single one is always 1")
        if self.activation == "softmax" and (self.scale, self.bias) != (1.0, 0.0):
            raise ValueError("scale and bias are a sigmoid's; a softmax has a temperature")
        if self.activation == "sigmoid" and self.temperature != 1.0:
            raise ValueError("temperature is a softmax's; a sigmoid has scale and bias")
        if self.level == "token" and OUTSIDE not in self.labels:
            raise ValueError(f"labels: one has to be {OUTSIDE!r}, of tokens that are nothing")
        return self


class Heads(Strict):
    """The graph, and what its outputs are.

    Of these it takes what it needs: layers of the text tower by their names (float32 (n, t, width)), `attention_mask`
    (int64 (n, t)), `token_shapes` (float32 (n, t, s)) and `patterns` (float32 (n, p)).
    """

    graph: PackFile
    """Carries its weights itself; at most `HEADS_BYTES`."""
    shapes: Version | None = None
    """Which version of the shapes of tokens it was trained on; none where it does not take them."""
    patterns: Version | None = None
    """Which version of the features of patterns it was trained on; none where it does not take them."""
    golden: HeadsGolden
    heads: tuple[Head, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        names = [head.name for head in self.heads]
        if len(set(names)) != len(names):
            raise ValueError("heads: each name may stand once")
        return self

    def named(self, name: str) -> Head | None:
        """The head of this name, if there is one."""
        return next((head for head in self.heads if head.name == name), None)
