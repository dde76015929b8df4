"""Loads a checkpoint's PyTorch model: what is exported, and the reference that it is held against.

Each side of a checkpoint comes with the module that is traced, the model's own forward pass, and the layers that
SmoothQuant may touch. Imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from torch import Tensor, nn

from router.export import towers
from router.export.checkpoint_files import finite_numbers, read_json_if_there, read_tensors, weight_files
from router.export.errors import ExportError, one_line
from router.export.kinds import Kind, Recognised, fit_head, read_labels
from router.export.multimodal import read_multimodal
from router.export.reference import quiet
from router.packs.manifest import PatchGrid

Feed = Mapping[str, NDArray[Any]]
Smoothable = tuple[tuple[nn.Module, tuple[nn.Module, ...]], ...]

# Longer texts fall into windows: attention over thousands of tokens would miss every deadline.
LONGEST_WINDOW = 512
# The loss of multi-modal-embed is contrastive and leaves no calibrated scale; the usual temperature of 0.07 ranks as
# well as any.
_CONTRASTIVE_SCALE = 1 / 0.07


@dataclass(frozen=True)
class Side:
    """A graph to be: the module to trace, its inputs' names, and the model's own forward from the same inputs."""

    module: nn.Module
    inputs: tuple[str, ...]
    reference: Callable[[Feed], NDArray[np.float32]]
    smoothable: Smoothable = field(default=(), repr=False)


@dataclass(frozen=True)
class ImageSide:
    """An image tower; `logit_scale` is the scale itself, not its logarithm."""

    side: Side
    dimension: int
    image_size: int
    logit_scale: float
    logit_bias: float
    patches: PatchGrid | None = None
    matryoshka: tuple[int, ...] = ()


@dataclass(frozen=True)
class TextSide:
    """A text tower."""

    side: Side
    dimension: int
    max_tokens: int
    fixed_length: bool
    matryoshka: tuple[int, ...] = ()


@dataclass(frozen=True)
class ClassifierSide:
    """A classifier; its reference gives logits."""

    side: Side
    level: Literal["text", "token"]
    labels: tuple[str, ...]
    activation: Literal["softmax", "sigmoid"]
    temperature: float
    max_tokens: int


@dataclass(frozen=True)
class Loaded:
    """What a checkpoint holds."""

    image: ImageSide | None = None
    text: TextSide | None = None
    classifier: ClassifierSide | None = None


def load(recognised: Recognised, folder: Path) -> Loaded:
    """The checkpoint's model in float32, in evaluation mode; raises ExportError."""
    if recognised.config.get("quantization_config"):
        raise ExportError(
            f"{folder / 'config.json'} has a quantization_config: this checkpoint is quantised already. Take the one "
            "that it was made from, and --precision int8"
        )
    read_tensors(folder)
    loader = {
        Kind.SIGLIP: _siglip,
        Kind.SIGLIP2_NAFLEX: _naflex,
        Kind.MULTIMODAL_EMBED: _multimodal,
        Kind.SENTENCE_ENCODER: _sentence,
        Kind.SEQUENCE_CLASSIFIER: _classifier,
        Kind.TOKEN_CLASSIFIER: _classifier,
    }[recognised.kind]
    return loader(recognised, folder)


def _siglip(recognised: Recognised, folder: Path) -> Loaded:
    model = _pretrained(transformers.SiglipModel, folder)
    scale, bias = _scale_and_bias(model)
    vision = _vision_side(model.vision_model, None, scale, bias)
    return Loaded(image=vision, text=_fixed_text_side(model.text_model))


def _naflex(recognised: Recognised, folder: Path) -> Loaded:
    model = _pretrained(transformers.Siglip2Model, folder)
    vision = model.vision_model

    def reference(feed: Feed) -> NDArray[np.float32]:
        out = vision(
            pixel_values=_tensor(feed["pixel_values"]),
            pixel_attention_mask=_tensor(feed["pixel_attention_mask"]),
            spatial_shapes=_tensor(feed["spatial_shapes"]),
        )
        return _unit(out.pooler_output)

    side = Side(
        towers.NaFlexImageTower(vision).eval(),
        ("pixel_values", "pixel_attention_mask", "spatial_shapes"),
        torch.no_grad()(reference),
        _siglip_smoothable(vision, vision.head),
    )
    place = folder / "preprocessor_config.json"
    most = read_json_if_there(place).get("max_num_patches", 256)
    if type(most) is not int or most < 1:
        raise ExportError(f"{place}: max_num_patches {most!r} is no count")
    grid = PatchGrid(patch=vision.config.patch_size, max_patches=most)
    image = ImageSide(
        side,
        vision.config.hidden_size,
        grid.patch * math.isqrt(grid.max_patches),
        *_scale_and_bias(model),
        grid,
    )
    return Loaded(image=image, text=_fixed_text_side(model.text_model))


def _multimodal(recognised: Recognised, folder: Path) -> Loaded:
    parts = read_multimodal(recognised.config, folder)
    vision, projection = parts.vision, parts.image_projection
    if parts.image_pooling == "attention":
        image = _vision_side(vision, projection, _CONTRASTIVE_SCALE, 0.0)
    else:
        image = _patch_mean_side(vision, projection)
    encoder = towers.BertEncoder(parts.text) if parts.family == "bert" else towers.ModernBertEncoder(parts.text)
    text = _sentence_side(parts.text, encoder, parts.text_pooling, folder, parts.text_projection)
    return Loaded(image=replace(image, matryoshka=parts.matryoshka), text=replace(text, matryoshka=parts.matryoshka))


def _sentence(recognised: Recognised, folder: Path) -> Loaded:
    model = _pretrained(transformers.AutoModel, folder)
    assert recognised.pooling is not None
    encoder = {
        "bert": towers.BertEncoder,
        "modernbert": towers.ModernBertEncoder,
        "deberta-v2": towers.DebertaEncoder,
    }[recognised.config["model_type"]](model)
    return Loaded(text=_sentence_side(model, encoder, recognised.pooling, folder))


def _classifier(recognised: Recognised, folder: Path) -> Loaded:
    each_token = recognised.kind is Kind.TOKEN_CLASSIFIER
    auto = (
        transformers.AutoModelForTokenClassification if each_token else transformers.AutoModelForSequenceClassification
    )
    labels = read_labels(recognised.config)
    fit_head(labels, read_tensors(folder))
    if recognised.config.get("problem_type") == "regression":
        raise ExportError("config.json: problem_type is regression, whose outputs are no probabilities of labels")
    temperature = _temperature(recognised.config)
    model = _pretrained(auto, folder)
    outputs = model.classifier.out_features
    if outputs != len(labels):
        raise ExportError(f"config.json names {len(labels)} labels, the classifier has {outputs} outputs")
    family = recognised.config["model_type"]
    smoothable: Smoothable = ()
    if family == "bert":
        module: nn.Module = towers.BertHead(model, each_token)
    elif family == "modernbert":
        module = towers.ModernBertHead(model, each_token)
        smoothable = _modernbert_smoothable(model.model)
    else:
        module = towers.WholeModel(model)

    def reference(feed: Feed) -> NDArray[np.float32]:
        out = model(input_ids=_tensor(feed["input_ids"]), attention_mask=_tensor(feed["attention_mask"]))
        return _array(out.logits)

    multi = recognised.config.get("problem_type") == "multi_label_classification" or len(labels) == 1
    return Loaded(
        classifier=ClassifierSide(
            Side(module.eval(), ("input_ids", "attention_mask"), torch.no_grad()(reference), smoothable),
            "token" if each_token else "text",
            labels,
            "sigmoid" if multi else "softmax",
            temperature,
            _window(model.config, folder),
        )
    )


def _temperature(config: Mapping[str, Any]) -> float:
    said = config.get("temperature")
    try:
        (temperature,) = finite_numbers([1.0 if said is None else said])
    except ValueError as error:
        raise ExportError(f"config.json: temperature {said!r} is no number; logits are divided by it") from error
    if temperature <= 0:
        raise ExportError(f"config.json: temperature {said!r} is not above nought; logits are divided by it")
    return temperature


def _scale_and_bias(model: Any) -> tuple[float, float]:
    """Checkpoints store the scale's logarithm."""
    logarithm, bias = float(model.logit_scale.item()), float(model.logit_bias.item())
    try:
        scale, bias = finite_numbers([math.exp(logarithm), bias])
    except (OverflowError, ValueError) as error:
        raise ExportError(
            f"the checkpoint's logit_scale {logarithm} and logit_bias {bias} give no probabilities; its weights are "
            "damaged: fetch them again"
        ) from error
    return scale, bias


def _vision_side(vision: Any, projection: nn.Linear | None, scale: float, bias: float) -> ImageSide:
    if not getattr(vision.config, "vision_use_head", True):
        raise ExportError("this vision tower has no attention pooling head; without it its embeddings mean nothing")

    def reference(feed: Feed) -> NDArray[np.float32]:
        pooled = vision(pixel_values=_tensor(feed["pixel_values"])).pooler_output
        return _unit(pooled if projection is None else projection(pooled))

    side = Side(
        towers.ImageTower(vision, projection).eval(),
        ("pixel_values",),
        torch.no_grad()(reference),
        _siglip_smoothable(vision, vision.head),
    )
    return ImageSide(side, _width(vision, projection), vision.config.image_size, scale, bias)


def _patch_mean_side(vision: Any, projection: nn.Linear | None) -> ImageSide:
    """A tower that multi-modal-embed-large reads without its attention head."""

    def reference(feed: Feed) -> NDArray[np.float32]:
        hidden = vision(pixel_values=_tensor(feed["pixel_values"])).last_hidden_state
        pooled = hidden[:, 1:].mean(dim=1)
        return _unit(pooled if projection is None else projection(pooled))

    side = Side(
        towers.PatchMeanTower(vision, projection).eval(),
        ("pixel_values",),
        torch.no_grad()(reference),
        _siglip_smoothable(vision, None),
    )
    return ImageSide(side, _width(vision, projection), vision.config.image_size, _CONTRASTIVE_SCALE, 0.0)


def _fixed_text_side(text: Any) -> TextSide:
    def reference(feed: Feed) -> NDArray[np.float32]:
        return _unit(text(input_ids=_tensor(feed["input_ids"])).pooler_output)

    side = Side(
        towers.FixedTextTower(text).eval(), ("input_ids",), torch.no_grad()(reference), _siglip_smoothable(text, None)
    )
    return TextSide(side, text.head.out_features, text.config.max_position_embeddings, fixed_length=True)


def _sentence_side(
    model: Any, encoder: nn.Module, pooling: str, folder: Path, projection: nn.Linear | None = None
) -> TextSide:
    def reference(feed: Feed) -> NDArray[np.float32]:
        mask = _tensor(feed["attention_mask"])
        hidden = model(input_ids=_tensor(feed["input_ids"]), attention_mask=mask).last_hidden_state
        pooled = hidden[:, 0] if pooling == "cls" else (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        return _unit(pooled if projection is None else projection(pooled))

    smoothable = _modernbert_smoothable(model) if isinstance(encoder, towers.ModernBertEncoder) else ()
    side = Side(
        towers.SentenceTower(encoder, pooling, projection).eval(),
        ("input_ids", "attention_mask"),
        torch.no_grad()(reference),
        smoothable,
    )
    return TextSide(side, _width(model, projection), _window(model.config, folder), fixed_length=False)


def _width(tower: Any, projection: nn.Linear | None) -> int:
    return int(tower.config.hidden_size) if projection is None else projection.out_features


def _window(config: Any, folder: Path) -> int:
    """Tokens of a window: what the positions allow, or less where the tokenizer's configuration says so, or that of
    sentence-transformers, which cuts texts there."""
    said = (
        read_json_if_there(folder / "tokenizer_config.json").get("model_max_length"),
        read_json_if_there(folder / "sentence_bert_config.json").get("max_seq_length"),
    )
    most = min(int(config.max_position_embeddings), LONGEST_WINDOW)
    return min([most, *(int(each) for each in said if isinstance(each, (int, float)) and each >= 8)])


def _siglip_smoothable(tower: Any, head: Any) -> Smoothable:
    """SigLIP normalises before each block, so a norm's output goes into these layers and nowhere else."""
    pairs: list[tuple[nn.Module, tuple[nn.Module, ...]]] = []
    for layer in tower.encoder.layers:
        attention = layer.self_attn
        pairs.append((layer.layer_norm1, (attention.q_proj, attention.k_proj, attention.v_proj)))
        pairs.append((layer.layer_norm2, (layer.mlp.fc1,)))
    if head is not None:
        pairs.append((head.layernorm, (head.mlp.fc1,)))
    return tuple(pairs)


def _modernbert_smoothable(model: Any) -> Smoothable:
    pairs: list[tuple[nn.Module, tuple[nn.Module, ...]]] = []
    for layer in model.layers:
        if isinstance(layer.attn_norm, nn.LayerNorm):
            pairs.append((layer.attn_norm, (layer.attn.Wqkv,)))
        pairs.append((layer.mlp_norm, (layer.mlp.Wi,)))
    return tuple(pairs)


def _pretrained(auto: Any, folder: Path) -> Any:
    """The model, every tensor of it from the checkpoint; raises ExportError when one is missing."""
    files = ", ".join(path.name for path in weight_files(folder)[:3])
    try:
        with quiet():
            transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # transformers raises whatever its parts raise
        raise ExportError(
            f"{folder / 'config.json'} is no configuration that transformers takes ({one_line(error)})"
        ) from error
    try:
        with quiet():
            model, report = auto.from_pretrained(
                folder,
                dtype=torch.float32,
                attn_implementation="eager",
                local_files_only=True,
                output_loading_info=True,
                # Reported below with their shapes, instead of an error that names none.
                ignore_mismatched_sizes=True,
            )
    except Exception as error:  # transformers raises whatever its parts raise
        raise ExportError(
            f"the checkpoint cannot be loaded: config.json and {files} in {folder} do not go together, or one of them "
            f"is damaged ({one_line(error)}); fetch both again"
        ) from error
    missing = sorted(str(key) for key in report["missing_keys"] if "position_ids" not in str(key))
    mismatched = sorted(
        f"{name} is {_shape(found)} and should be {_shape(asked)}"
        for name, found, asked in report.get("mismatched_keys") or ()
    )
    # A sentence encoder's checkpoint may leave out BERT's pooler, which nothing here uses.
    missing = [key for key in missing if not key.startswith("pooler.")]
    if missing or mismatched:
        raise ExportError(
            f"{files} in {folder} lacks tensors that config.json asks for, or has them in another shape: "
            f"{', '.join((mismatched + missing)[:5])}. Take config.json and weights from one checkpoint"
        )
    return model.float().eval()


def _shape(sizes: Sequence[int]) -> str:
    return " x ".join(str(each) for each in sizes)


def _tensor(array: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


def _array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().numpy().astype(np.float32)
    return array


def _unit(rows: Tensor) -> NDArray[np.float32]:
    return _array(nn.functional.normalize(rows, dim=-1))
