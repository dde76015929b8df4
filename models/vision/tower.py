"""The image tower as PyTorch runs it: the reference that the served graph is held against.

An EfficientNet-Lite0 trunk, the attention pooling head of SigLIP over its map, a projection into the text tower's
space, and a gate that turns what it has not learned away from all texts. Not for serving: the pack's ONNX graph is.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as fn

# (expansion, kernel, stride, channels out, repeats): EfficientNet-B0's stages, which Lite0 keeps without
# squeeze-and-excitation and with ReLU6.
STAGES: tuple[tuple[int, int, int, int, int], ...] = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
STEM = 32
FEATURES = 1280
DIMENSION = 384
HEADS = 6
MLP = 256
GATE = 64
QUIET = 16
# How far a whole stranger is turned: its cosines shrink to 1 / sqrt(1 + TURN ** 2) of what they were.
TURN = 4.0
MEAN = 127.0
STD = 128.0


class ConvNorm(nn.Module):
    """Convolution, BatchNorm with frozen statistics, and ReLU6 unless it projects.

    Padded as TensorFlow pads: with stride 2 the odd pixel goes to the right and the bottom. In training the norm is
    folded into the convolution at every step: the same function and gradients, at half the memory traffic, which is
    what training on a CPU waits for.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int, groups: int = 1, active: bool = True
    ) -> None:
        super().__init__()
        # For even sizes the whole padding is kernel - stride.
        total = max(kernel - stride, 0)
        before, after = total // 2, total - total // 2
        self.uneven = (before, after, before, after) if before != after else None
        self.conv = nn.Conv2d(
            inputs, outputs, kernel, stride, padding=0 if self.uneven else before, groups=groups, bias=False
        )
        self.norm = nn.BatchNorm2d(outputs, eps=1e-3)
        self.active = active

    def forward(self, x: Tensor) -> Tensor:
        """See the class."""
        if self.uneven:
            x = fn.pad(x, self.uneven)
        if not self.training:
            y: Tensor = self.norm(self.conv(x))
            return fn.relu6(y) if self.active else y
        mean, variance = self.norm.running_mean, self.norm.running_var
        assert mean is not None and variance is not None
        gain = self.norm.weight * torch.rsqrt(variance + self.norm.eps)
        y = fn.conv2d(
            x,
            self.conv.weight * gain[:, None, None, None],
            self.norm.bias - mean * gain,
            self.conv.stride,
            self.conv.padding,
            self.conv.dilation,
            self.conv.groups,
        )
        return fn.relu6(y, inplace=True) if self.active else y


class Block(nn.Module):
    """Inverted residual: expand, depthwise, project."""

    def __init__(self, inputs: int, outputs: int, expansion: int, kernel: int, stride: int) -> None:
        super().__init__()
        middle = inputs * expansion
        layers: list[nn.Module] = [ConvNorm(inputs, middle, 1, 1)] if expansion != 1 else []
        layers += [
            ConvNorm(middle, middle, kernel, stride, groups=middle),
            ConvNorm(middle, outputs, 1, 1, active=False),
        ]
        self.layers = nn.Sequential(*layers)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """See the class."""
        y: Tensor = self.layers(x)
        return x + y if self.residual else y


class Trunk(nn.Module):
    """EfficientNet-Lite0 without its classifier: (n, 3, s, s) to (n, 1280, s/32, s/32)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvNorm(3, STEM, 3, 2)
        blocks: list[nn.Module] = []
        channels = STEM
        for expansion, kernel, stride, outputs, repeats in STAGES:
            for repeat in range(repeats):
                blocks.append(Block(channels, outputs, expansion, kernel, stride if repeat == 0 else 1))
                channels = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = ConvNorm(channels, FEATURES, 1, 1)
        # In training, so many blocks and the stem before them stay as they are and cost no backward pass.
        self.frozen_blocks = 0

    def forward(self, pixels: Tensor) -> Tensor:
        """See the class."""
        frozen = self.frozen_blocks if self.training else 0
        with torch.set_grad_enabled(torch.is_grad_enabled() and not frozen):
            x = self.blocks[:frozen](self.stem(pixels))
        features: Tensor = self.head(self.blocks[frozen:](x))
        return features

    def load_imagenet(self, state: Mapping[str, Tensor]) -> None:
        """Take the published weights: the same tensors in the same order under other names."""
        ours = self.state_dict()
        theirs = {name: tensor for name, tensor in state.items() if not name.startswith("_fc.")}
        if len(ours) != len(theirs):
            raise ValueError(f"expected {len(ours)} tensors, the checkpoint has {len(theirs)}")
        pairs = zip(ours.items(), theirs.items(), strict=True)
        renamed: dict[str, Tensor] = {}
        for (name, tensor), (their_name, their_tensor) in pairs:
            if tensor.shape != their_tensor.shape:
                raise ValueError(f"{their_name} {tuple(their_tensor.shape)} does not fit {name} {tuple(tensor.shape)}")
            renamed[name] = their_tensor
        self.load_state_dict(renamed)


class AttentionPool(nn.Module):
    """SigLIP's pooling head: one learned probe attends over the map, then LayerNorm, MLP and a residual."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.probe = nn.Parameter(torch.randn(1, 1, width) * width**-0.5)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, width)
        self.activation = nn.GELU(approximate="tanh")

    def forward(self, tokens: Tensor) -> Tensor:
        """See the class."""
        width = tokens.shape[-1]
        each = width // self.heads
        query = self.query(self.probe).reshape(1, 1, self.heads, each).transpose(1, 2)
        key = self.key(tokens).reshape(-1, tokens.shape[1], self.heads, each).permute(0, 2, 3, 1)
        value = self.value(tokens).reshape(-1, tokens.shape[1], self.heads, each).transpose(1, 2)
        weights = torch.softmax(query @ key * each**-0.5, dim=-1)
        attended = (weights @ value).transpose(1, 2).reshape(-1, width)
        pooled = self.out(attended)
        mixed: Tensor = pooled + self.fc2(self.activation(self.fc1(self.norm(pooled))))
        return mixed


class Gate(nn.Module):
    """How strange an image is, and where strange images are turned to.

    `forward` takes features (n, f) and unit vectors (n, 384) and gives unit vectors. An image of strangeness g, from 0
    to 1, gets `TURN * g` of a unit vector added that lies in the few directions in which no text has anything to speak
    of (`quiet`, rows orthonormal, see `gate.quiet_directions`). So all its cosines with texts shrink by one factor, and
    which text is nearest stays as it is. Where in those directions an image goes follows from its features
    (`place`), so that strange images stay apart from each other.
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))
        self.fc1 = nn.Linear(features, GATE)
        self.fc2 = nn.Linear(GATE, 1)
        self.register_buffer("place", torch.zeros(QUIET, features))
        self.register_buffer("quiet", torch.zeros(QUIET, DIMENSION))

    def standardised(self, features: Tensor) -> Tensor:
        """Each feature around 0, with a spread of 1."""
        mean, scale = self.get_buffer("mean"), self.get_buffer("scale")
        return (features - mean) * scale

    def logit(self, standard: Tensor) -> Tensor:
        """(n, 1); above 0 where an image is rather strange than known."""
        logit: Tensor = self.fc2(fn.relu(self.fc1(standard)))
        return logit

    def forward(self, features: Tensor, unit: Tensor) -> Tensor:
        """See the class."""
        standard = self.standardised(features)
        place = standard @ self.get_buffer("place").T
        away = place / (place.norm(dim=-1, keepdim=True) + 1e-6) @ self.get_buffer("quiet")
        turned = unit + TURN * torch.sigmoid(self.logit(standard)) * away
        unit_again: Tensor = turned / turned.norm(dim=-1, keepdim=True)
        return unit_again


class Tower(nn.Module):
    """Pixels (normalised, 256 x 256 when served) to a unit vector in the text tower's space."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = Trunk()
        self.tokens = nn.Linear(FEATURES, DIMENSION)
        self.token_norm = nn.LayerNorm(DIMENSION, eps=1e-6)
        self.pool = AttentionPool(DIMENSION, HEADS, MLP)
        self.projection = nn.Linear(DIMENSION, DIMENSION)
        self.dropout = nn.Dropout(0.1)
        # With no weights of its own it changes nothing: `quiet` is zero.
        self.gate = Gate(DIMENSION + FEATURES)

    def seen(self, pixel_values: Tensor) -> tuple[Tensor, Tensor]:
        """What the gate judges by, (n, 1664), and unit vectors before it, (n, 384)."""
        features = self.trunk(pixel_values)
        tokens = self.token_norm(self.tokens(self.dropout(features.flatten(2).transpose(1, 2))))
        pooled = self.pool(tokens)
        projected: Tensor = self.projection(pooled)
        unit: Tensor = projected / projected.norm(dim=-1, keepdim=True)
        return torch.cat([pooled, features.mean((2, 3))], dim=-1), unit

    def forward(self, pixel_values: Tensor) -> Tensor:
        """See the class."""
        turned: Tensor = self.gate(*self.seen(pixel_values))
        return turned
