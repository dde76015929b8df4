"""What a reference would give with one fault in its model: another pooling, pixels treated again inside, eight bits.

Each is recomputed with the reference's own weights, so that a served graph's drift can be held
against it. Imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from router.export import towers
from router.export.checkpoints import Side
from router.export.smooth import smooth
from router.export.verify.reference import Feed, Floats, Ids, OutputFault, PixelRecipe


def pixel_faults_inside(forward: Callable[[Feed], Floats], recipe: PixelRecipe) -> Iterator[OutputFault]:
    """Faults of a graph that treats pixels itself: what comes in is right, what its first layer sees is not."""
    mean, std = np.array(recipe.mean), np.array(recipe.std)
    level = 1.0 / 255 if recipe.rescale == 1.0 else 1.0

    def through(change: Callable[[Any], Any]) -> Callable[[Feed], Floats]:
        """`change` takes and gives (..., 3), channels last."""

        def outputs(pixels: Feed) -> Floats:
            name = "pixel_values" if "pixel_values" in pixels else next(iter(pixels))
            values = pixels[name]
            if values.ndim == 4:
                changed = change(values.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
            else:
                changed = change(values.reshape(*values.shape[:2], -1, 3)).reshape(values.shape)
            return forward({**pixels, name: np.ascontiguousarray(changed, dtype=np.float32)})

        return outputs

    yield OutputFault("colour order", "BGR instead of RGB inside the graph", through(lambda v: v[..., ::-1]))
    yield OutputFault("normalisation", "normalised twice, again inside the graph", through(lambda v: (v - mean) / std))
    yield OutputFault(
        "normalisation",
        "taken back inside the graph: its first layer sees 0-1",
        through(lambda v: (v * std + mean) * level),
    )


def pooling_faults(module: towers.ImageTower) -> list[OutputFault]:
    """What an image tower's patches may be pooled by instead of its attention head."""

    def pooled(choose: Callable[[Tensor], Tensor]) -> Callable[[Feed], Floats]:
        @torch.no_grad()
        def outputs(pixels: Feed) -> Floats:
            hidden = module.vision(pixel_values=torch.from_numpy(pixels["pixel_values"])).last_hidden_state
            return _unit(module.projection(choose(hidden)))

        return outputs

    return [
        OutputFault(
            "pooling head", "mean of the patches instead of the attention head", pooled(lambda hidden: hidden.mean(1))
        ),
        OutputFault("pooling head", "first patch instead of the attention head", pooled(lambda hidden: hidden[:, 0])),
        OutputFault(
            "pooling head",
            "greatest of the patches instead of the attention head",
            pooled(lambda hidden: hidden.amax(1)),
        ),
    ]


def text_pooling_faults(module: nn.Module) -> list[OutputFault]:
    """`ids` are (t,): one text, nothing masked."""
    if isinstance(module, towers.FixedTextTower):
        text = module.text

        def hidden_of(ids: Ids) -> Tensor:
            hidden: Tensor = text(input_ids=torch.from_numpy(ids.astype(np.int64))[None]).last_hidden_state
            return hidden

        def after(hidden: Tensor) -> Tensor:
            projected: Tensor = text.head(hidden)
            return projected

        ways = {"mean of all positions": _mean, "first position": _first}
        right = "the last position"
    elif isinstance(module, towers.SentenceTower):
        encoder, projection = module.encoder, module.projection

        def hidden_of(ids: Ids) -> Tensor:
            row = torch.from_numpy(ids.astype(np.int64))[None]
            hidden: Tensor = encoder(row, torch.ones_like(row))
            return hidden

        def after(hidden: Tensor) -> Tensor:
            projected: Tensor = projection(hidden)
            return projected

        every = {"mean": _mean, "cls": _first, "last token": _last, "max": _max}
        ways = {name: choose for name, choose in every.items() if name != module.pooling}
        right = module.pooling
    else:
        return []

    def outputs(choose: Callable[[Tensor], Tensor]) -> Callable[[Ids], Floats]:
        @torch.no_grad()
        def pooled(ids: Ids) -> Floats:
            return _unit(after(choose(hidden_of(ids))))

        return pooled

    return [OutputFault("pooling head", f"{name} instead of {right}", outputs(choose)) for name, choose in ways.items()]


def _mean(hidden: Tensor) -> Tensor:
    return hidden.mean(1)


def _first(hidden: Tensor) -> Tensor:
    return hidden[:, 0]


def _last(hidden: Tensor) -> Tensor:
    return hidden[:, -1]


def _max(hidden: Tensor) -> Tensor:
    return hidden.amax(1)


def quantised_faults(side: Side, sample: Sequence[Feed]) -> list[OutputFault]:
    """Eight bits as a dynamically quantised graph has them, without SmoothQuant and, where it can be had, with it."""

    def plain(feed: Feed) -> Floats:
        with _eight_bits(side.module):
            return side.reference(feed)

    def smoothed(feed: Feed) -> Floats:
        with _unchanged(side.module):
            smooth(side, sample)
            with _eight_bits(side.module):
                return side.reference(feed)

    faults = [OutputFault("quantisation", "int8 without SmoothQuant", plain)]
    if side.smoothable:
        faults.append(OutputFault("quantisation", "int8 after SmoothQuant", smoothed))
    return faults


@contextmanager
def _unchanged(module: nn.Module) -> Iterator[None]:
    kept = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    try:
        yield
    finally:
        module.load_state_dict(kept)


@contextmanager
def _eight_bits(module: nn.Module) -> Iterator[None]:
    """Linear layers on sequences as ONNX Runtime's dynamic quantisation runs them: weights int8 for each output
    channel, activations uint8 over the whole tensor. What is pooled already is left alone, as Gemm is."""
    hooks = []
    with _unchanged(module), torch.no_grad():
        for layer in module.modules():
            if isinstance(layer, nn.Linear) and type(layer) is nn.Linear:
                whole = layer.weight.clone()
                step = (whole.abs().amax(1, keepdim=True) / 127).clamp(min=1e-12)
                rounded = (whole / step).round().clamp(-127, 127) * step
                hooks += [
                    layer.register_forward_pre_hook(_before(rounded)),
                    layer.register_forward_hook(_after(whole)),
                ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


def _before(rounded: Tensor) -> Callable[[nn.Module, tuple[Tensor, ...]], tuple[Tensor, ...] | None]:
    def hook(layer: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        if inputs[0].ndim < 3:
            return None
        assert isinstance(layer.weight, Tensor)
        layer.weight.copy_(rounded)
        return (_uint8(inputs[0]), *inputs[1:])

    return hook


def _after(whole: Tensor) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
    def hook(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        assert isinstance(layer.weight, Tensor)
        layer.weight.copy_(whole)

    return hook


def _uint8(x: Tensor) -> Tensor:
    least, most = x.amin().clamp(max=0), x.amax().clamp(min=0)
    step = ((most - least) / 255).clamp(min=1e-12)
    zero = (-least / step).round().clamp(0, 255)
    return ((x / step).round() + zero).clamp(0, 255).sub(zero) * step


def _unit(rows: Tensor) -> Floats:
    normal: Floats = nn.functional.normalize(rows, dim=-1).numpy()
    return normal
