"""Heads over a text tower's layers by themselves: what one window's hidden states say, as calibrated probabilities.

Synchronous and without caches, like `text_model.py`, which runs the tower. How a head is asked about a text is
`head.py`'s business, what its answer means for a request a signal's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from router.inference.calibration import Calibration
from router.inference.head_features import PATTERNS as PATTERN_FEATURES
from router.inference.head_features import (
    PATTERNS_VERSION,
    SHAPES,
    SHAPES_VERSION,
    pattern_features,
    token_shapes,
)
from router.inference.sessions import open_carried
from router.inference.tokens import Window
from router.packs.files import PackError, inside, read_checked
from router.packs.heads import ATTENTION_MASK, HEADS_BYTES, PATTERNS, TOKEN_SHAPES, Heads
from router.packs.store import Pack

Probabilities = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Judged:
    """What one pass of the tower gave for a window: its unit vector (d,), and each head's probabilities: (labels,) of
    one that judges texts, (t, labels) of one that judges tokens, special ones included."""

    embedding: NDArray[np.float32] = field(repr=False)
    answers: Mapping[str, Probabilities] = field(default_factory=dict, repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes in memory; an array beside the first weighs about 200 more than its numbers."""
        return self.embedding.nbytes + sum(200 + answer.nbytes for answer in self.answers.values())


class HeadsModel:
    """The graph of a pack's heads. Its methods may run in several threads at once."""

    def __init__(self, pack: Pack, wanted: Collection[str] | None = None) -> None:
        """Open the graph for these heads, by default all of the pack; raises PackError."""
        part = pack.manifest.heads
        if part is None or pack.manifest.text is None:
            raise PackError(f"pack {pack.manifest.name!r} has no heads")
        self.part = part
        if missing := sorted(set(wanted or ()) - {head.name for head in part.heads}):
            raise PackError(f"pack {pack.manifest.name!r} has no head {', '.join(map(repr, missing))}")
        self.heads = tuple(head for head in part.heads if wanted is None or head.name in wanted)
        path = inside(pack.folder, part.graph.path)
        self._session = open_carried(read_checked(pack.folder, part.graph.path, part.graph.sha256, HEADS_BYTES), path)
        inputs = {each.name: each for each in self._session.get_inputs()}
        _require_features(pack.manifest.name, part, inputs)
        known = {*pack.manifest.text.layers, ATTENTION_MASK, TOKEN_SHAPES, PATTERNS}
        gives = [each.name for each in self._session.get_outputs()]
        if not known >= inputs.keys() or not {head.name for head in part.heads} <= set(gives):
            raise PackError(
                f"{path} takes {sorted(inputs)} and gives {sorted(gives)}; the manifest says {sorted(known)} and "
                f"{sorted(head.name for head in part.heads)}"
            )
        self.layers = tuple(name for name in pack.manifest.text.layers if name in inputs)
        """The tower's outputs that the heads read."""
        self._inputs = frozenset(inputs)
        self._names = [head.name for head in self.heads]
        self._calibration = Calibration(self.heads)

    @property
    def providers(self) -> tuple[str, ...]:
        """Execution providers that the session runs on."""
        return tuple(self._session.get_providers())

    def answers(self, states: Mapping[str, NDArray[np.float32]], window: Window) -> dict[str, Probabilities]:
        """Each head's probabilities for one window, from the hidden states (1, t, width) of its tokens.

        One window at a time and without padding: graphs with eight bits scale their activations by the greatest in a
        batch, and no head has to be trusted with padding.
        """
        feed: dict[str, NDArray[Any]] = {name: states[name] for name in self.layers}
        if ATTENTION_MASK in self._inputs:
            feed[ATTENTION_MASK] = np.ones((1, len(window)), np.int64)
        if TOKEN_SHAPES in self._inputs:
            feed[TOKEN_SHAPES] = _shapes(window)
        if PATTERNS in self._inputs:
            feed[PATTERNS] = pattern_features(window.text)[None]
        logits = self._session.run(self._names, feed)
        return self._calibration.probabilities([each[0] for each in logits])


def _shapes(window: Window) -> NDArray[np.float32]:
    shapes = np.zeros((1, len(window), SHAPES), np.float32)
    if window.ranges is not None:
        shapes[0, window.prefix : window.prefix + len(window.ranges)] = token_shapes(window.text, window.ranges)
    return shapes


def _require_features(name: str, part: Heads, inputs: Mapping[str, Any]) -> None:
    """Raises PackError for heads that were trained on other features than these."""
    features = (
        (TOKEN_SHAPES, "shapes", part.shapes, SHAPES_VERSION, SHAPES),
        (PATTERNS, "patterns", part.patterns, PATTERNS_VERSION, PATTERN_FEATURES),
    )
    for given, key, trained, version, width in features:
        if (given in inputs) != (trained is not None):
            said = "takes them" if given in inputs else "does not take them"
            raise PackError(f"pack {name!r}: heads.{key} says {trained or 'nothing'} of {given}, and the graph {said}")
        if trained not in (None, version):
            raise PackError(
                f"pack {name!r}: its heads were trained on version {trained} of {given}, this release computes "
                f"version {version}; take the pack that belongs to this release, or train the heads anew"
            )
        if given in inputs and not _ends_in(inputs[given].shape, width):
            raise PackError(f"pack {name!r}: its heads take {given} of the shape {inputs[given].shape}, not of {width}")


def _ends_in(shape: Sequence[Any], width: int) -> bool:
    """Whether the last axis has this length, or any."""
    return bool(shape) and (shape[-1] == width or not isinstance(shape[-1], int))
