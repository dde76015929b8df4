"""References that PyTorch runs: a published checkpoint through transformers, and the project's own image tower.

The checkpoint's model is asked through its own forward pass, its own image processor and its own tokenizer. Imports
torch and transformers.
"""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn

from router.export import towers
from router.export.checkpoints import ClassifierSide, ImageSide, Side, TextSide, load
from router.export.errors import ExportError
from router.export.images import Preprocessing, read_preprocessing
from router.export.kinds import Kind, Recognised
from router.export.reference import ReferenceImages, ReferenceTokenizer
from router.export.verify.model_faults import (
    pixel_faults_inside,
    pooling_faults,
    quantised_faults,
    text_pooling_faults,
)
from router.export.verify.reference import Feed, Floats, Ids, OutputFault, PixelRecipe, Reference
from router.inference.preprocess import RESAMPLE
from router.packs.manifest import VisionTower

VERSIONS = f"torch {torch.__version__}, transformers {transformers.__version__}"


def checkpoint_reference(recognised: Recognised, folder: Path, name: str) -> Reference:
    """What a checkpoint's folder holds; raises ExportError."""
    loaded = load(recognised, folder)
    image = text = classifier = None
    if loaded.image is not None:
        image = CheckpointImages(loaded.image, read_preprocessing(folder, loaded.image.image_size))
    if loaded.text is not None:
        side = loaded.text
        tokenizer = ReferenceTokenizer(folder, recognised.kind, side.max_tokens, side.fixed_length)
        text = CheckpointTexts(side, tokenizer)
    if loaded.classifier is not None:
        tokenizer = ReferenceTokenizer(folder, recognised.kind, loaded.classifier.max_tokens, fixed_length=False)
        classifier = CheckpointClassifier(loaded.classifier, tokenizer)
    return Reference(
        f"{name} ({recognised.kind}), {VERSIONS}",
        image,
        text,
        classifier,
        _scale_and_bias(recognised.kind, loaded.image),
    )


def tower_reference(tower: VisionTower, weights: Path, source: Path) -> Reference:
    """The project's own image tower, whose module is in the file `source`; raises ExportError."""
    module = _module_of(source)
    model = module.Tower()
    missing, unexpected = model.load_state_dict(load_file(weights), strict=False)
    # BatchNorm counts its training steps, which mean nothing afterwards.
    if unexpected or any(not each.endswith("num_batches_tracked") for each in missing):
        raise ExportError(f"{weights} does not fit the tower in {source}: {[*missing, *unexpected][:5]}")
    return Reference(
        f"the project's own tower, torch {torch.__version__}", OwnImages(model.eval(), tower, module.MEAN, module.STD)
    )


def _scale_and_bias(kind: Kind, image: ImageSide | None) -> tuple[float, float] | None:
    """What the checkpoint was trained with; multi-modal-embed has no calibrated ones, and the exporter's are a guess
    that its user is told to replace."""
    if image is None or kind is Kind.MULTIMODAL_EMBED:
        return None
    return image.logit_scale, image.logit_bias


@dataclass(frozen=True)
class CheckpointImages:
    """See `ImageReference`."""

    side: ImageSide
    preprocessing: Preprocessing

    @property
    def recipe(self) -> PixelRecipe:
        """What the checkpoint's image processor does."""
        made = self.preprocessing
        size = None if self.side.patches is not None else made.size
        return PixelRecipe(size, RESAMPLE[made.resample], made.rescale, made.mean, made.std)

    def pixels(self, image: Image.Image) -> Feed:
        """The checkpoint's own image processor."""
        return ReferenceImages(self.preprocessing, self.side.patches).feed(image)

    def image_forward(self, pixels: Feed) -> Floats:
        """The model's own forward pass."""
        return self.side.side.reference(pixels)

    def image_faults(self, sample: Sequence[Feed]) -> list[OutputFault]:
        """Pooling, what is done to pixels inside the graph, and eight bits."""
        faults = [*pixel_faults_inside(self.image_forward, self.recipe)]
        module = self.side.side.module
        if isinstance(module, towers.ImageTower):
            faults += pooling_faults(module)
        return faults + quantised_faults(self.side.side, sample)


@dataclass(frozen=True)
class CheckpointTexts:
    """See `TextReference`."""

    side: TextSide
    tokenizer: ReferenceTokenizer

    def token_ids(self, text: str) -> Ids:
        """The checkpoint's own tokenizer."""
        return np.array(self.tokenizer.ids(text), dtype=np.int32)

    def text_forward(self, ids: Ids) -> Floats:
        """The model's own forward pass."""
        return self.side.side.reference(_text_feed(self.side.side, ids))

    def text_faults(self, sample: Sequence[Ids]) -> list[OutputFault]:
        """Pooling, and eight bits."""
        side = self.side.side
        quantised = quantised_faults(side, [_text_feed(side, ids) for ids in sample])
        return text_pooling_faults(side.module) + [_of_ids(fault, side) for fault in quantised]


@dataclass(frozen=True)
class CheckpointClassifier:
    """See `TextReference`."""

    side: ClassifierSide
    tokenizer: ReferenceTokenizer

    def token_ids(self, text: str) -> Ids:
        """The checkpoint's own tokenizer."""
        return np.array(self.tokenizer.ids(text), dtype=np.int32)

    def text_forward(self, ids: Ids) -> Floats:
        """Probabilities of the model's own logits."""
        return self._probabilities(self.side.side.reference(_text_feed(self.side.side, ids)))

    def text_faults(self, sample: Sequence[Ids]) -> list[OutputFault]:
        """What may be done to logits, and eight bits."""
        side = self.side.side

        def other(ids: Ids) -> Floats:
            logits = side.reference(_text_feed(side, ids))
            return _softmax(logits) if self.side.activation == "sigmoid" else _sigmoid(logits)

        faults = quantised_faults(side, [_text_feed(side, ids) for ids in sample])
        return [
            OutputFault("activation", f"not {self.side.activation}", other),
            *(self._in_probabilities(_of_ids(fault, side)) for fault in faults),
        ]

    def _in_probabilities(self, fault: OutputFault) -> OutputFault:
        return OutputFault(fault.cause, fault.detail, lambda ids: self._probabilities(fault.outputs(ids)))

    def _probabilities(self, logits: Floats) -> Floats:
        scaled = logits / self.side.temperature
        return _softmax(scaled) if self.side.activation == "softmax" else _sigmoid(scaled)


@dataclass(frozen=True)
class OwnImages:
    """The project's image tower; see `ImageReference`. `mean` and `std` are in levels."""

    model: nn.Module = field(repr=False)
    tower: VisionTower = field(repr=False)
    mean: float
    std: float

    @property
    def recipe(self) -> PixelRecipe:
        """Bicubic to the size that it was trained at."""
        return PixelRecipe(self.tower.size, Image.Resampling.BICUBIC, 1.0, (self.mean,) * 3, (self.std,) * 3)

    def pixels(self, image: Image.Image) -> Feed:
        """Resized with Pillow, then by the module's own constants."""
        height, width = self.tower.size
        levels = torch.from_numpy(np.array(image.resize((width, height), Image.Resampling.BICUBIC)))
        values = (levels.permute(2, 0, 1).float() - self.mean) / self.std
        return {self.tower.input: values[None].numpy()}

    def image_forward(self, pixels: Feed) -> Floats:
        """The module."""
        with torch.no_grad():
            rows: Floats = self.model(torch.from_numpy(np.ascontiguousarray(pixels[self.tower.input]))).numpy()
        return rows

    def image_faults(self, sample: Sequence[Feed]) -> list[OutputFault]:
        """What is done to pixels inside the graph, and a pooling head left out."""

        def mean_pooled(pixels: Feed) -> Floats:
            wrong = copy.copy(self.model)
            wrong._modules = {**self.model._modules, "pool": _Mean()}
            with torch.no_grad():
                rows: Floats = wrong(torch.from_numpy(np.ascontiguousarray(pixels[self.tower.input]))).numpy()
            return rows

        mean = OutputFault("pooling head", "mean of the tokens instead of the attention head", mean_pooled)
        return [mean, *pixel_faults_inside(self.image_forward, self.recipe)]


class _Mean(nn.Module):
    def forward(self, tokens: Tensor) -> Tensor:
        """(n, t, d) to (n, d)."""
        return tokens.mean(1)


def _text_feed(side: Side, ids: Ids) -> Feed:
    row = ids.astype(np.int64)[None]
    feed = {"input_ids": row, "attention_mask": np.ones_like(row)}
    return {name: feed[name] for name in side.inputs}


def _of_ids(fault: OutputFault, side: Side) -> OutputFault:
    """A fault that takes a feed as one that takes ids."""
    return OutputFault(fault.cause, fault.detail, lambda ids: fault.outputs(_text_feed(side, ids)))


def _sigmoid(logits: Floats) -> Floats:
    each: Floats = np.reciprocal(1 + np.exp(-logits), dtype=np.float32)
    return each


def _softmax(logits: Floats) -> Floats:
    exponents = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Floats = exponents / exponents.sum(axis=-1, keepdims=True)
    return shares


def _module_of(source: Path) -> ModuleType:
    """The module in a file that is in no package of this one."""
    name = f"_pointsman_reference_{source.stem}"
    spec = importlib.util.spec_from_file_location(name, source)
    if spec is None or spec.loader is None:
        raise ExportError(f"{source} is no Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
