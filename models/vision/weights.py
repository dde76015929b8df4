"""Weights wherever they lie: a run's folder, one of its averages, a pack's file; and the mean of several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from .tower import Tower


def read_weights(place: Path) -> dict[str, Tensor]:
    """The running average of a run's last checkpoint, an `average-N.pt`, or a `.safetensors` file."""
    if place.suffix == ".safetensors":
        return load_file(str(place))
    if place.is_dir():
        checkpoint: dict[str, Tensor] = torch.load(place / "checkpoint.pt", weights_only=True)["ema"]
        return checkpoint
    state: dict[str, Tensor] = torch.load(place, weights_only=True)
    return state


def take(tower: Tower, state: dict[str, Tensor]) -> None:
    """Put them into the tower; only BatchNorm's counters of training steps, which nothing reads, and the gate's whole
    may be absent."""
    missing, unexpected = tower.load_state_dict(state, strict=False)
    gate = [name for name in missing if name.startswith("gate.")]
    counters = [name for name in missing if name.endswith("num_batches_tracked")]
    if unexpected or len(missing) > len(gate) + len(counters) or len(gate) not in (0, len(tower.gate.state_dict())):
        raise SystemExit(f"the weights do not fit the tower: {missing} {unexpected}")


def averaged(places: Sequence[Path]) -> Tower:
    """A tower with the mean of these weights.

    What is fine-tuned longest fits the collection best and the rest of the world a little worse; the mean of points
    along one path keeps more of both.
    """
    states = [read_weights(place) for place in places]
    names = [
        name
        for name, tensor in states[0].items()
        if tensor.dtype.is_floating_point and all(name in state for state in states)
    ]
    tower = Tower()
    take(tower, {name: torch.stack([state[name] for state in states]).mean(0) for name in names})
    return tower.eval()
