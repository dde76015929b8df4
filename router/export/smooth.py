"""SmoothQuant: shifts outliers of activations into weights, so that both survive eight bits. Exact in float32.

A LayerNorm's gain and shift are divided, channel by channel, by what the weights of the layers behind it are multiplied
by. Possible only where a norm's output goes into those layers and nowhere else. Imports torch.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from router.export.checkpoints import Feed, Side

# Half of an outlier's magnitude goes over to the weights: the published default, which suits image towers.
ALPHA = 0.5
_LEAST = 1e-5


def smooth(side: Side, calibration: Iterable[Feed]) -> int:
    """Change the side's module in place; gives the number of norms that were smoothed, 0 where none can be.

    `calibration` are inputs like those that will come; the greatest activation of each channel is taken from them.
    """
    if not side.smoothable:
        return 0
    greatest = _greatest_activations(side, calibration)
    with torch.no_grad():
        for norm, layers in side.smoothable:
            _shift(norm, layers, greatest[norm])
    return len(side.smoothable)


def _greatest_activations(side: Side, calibration: Iterable[Feed]) -> dict[nn.Module, Tensor]:
    greatest: dict[nn.Module, Tensor] = {}

    def note(norm: nn.Module, _: tuple[Tensor, ...], out: Tensor) -> None:
        most = out.detach().abs().reshape(-1, out.shape[-1]).amax(0)
        greatest[norm] = torch.maximum(greatest[norm], most) if norm in greatest else most

    hooks = [norm.register_forward_hook(note) for norm, _ in side.smoothable]
    try:
        for feed in calibration:
            side.reference(feed)
    finally:
        for hook in hooks:
            hook.remove()
    return greatest


def _shift(norm: nn.Module, layers: tuple[nn.Module, ...], activations: Tensor) -> None:
    weights = [_parameter(layer, "weight") for layer in layers]
    columns = torch.stack([weight.abs().amax(0) for weight in weights]).amax(0).clamp(min=_LEAST)
    factors = (activations.clamp(min=_LEAST) ** ALPHA / columns ** (1 - ALPHA)).clamp(min=_LEAST)
    for name in ("weight", "bias"):
        if getattr(norm, name, None) is not None:
            _parameter(norm, name).div_(factors)
    for weight in weights:
        weight.mul_(factors)


def _parameter(module: nn.Module, name: str) -> Tensor:
    parameter = getattr(module, name)
    assert isinstance(parameter, Tensor)
    return parameter
