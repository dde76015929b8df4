"""Puts the two towers of a multi-modal-embed checkpoint together from one file of tensors.

Its config.json tells little, so that sizes are read off the tensors where it says nothing, and what neither can tell is
named in an error: a wrong guess would be a wrong model that agrees with its own reference. Imports torch.

Two layouts are published. The one of multi-modal-embed-small has `text_encoder.encoder.*`,
`image_encoder.vision_encoder.*` and `image_encoder.projection.*`, and pools images by SigLIP's attention head. The one
of multi-modal-embed-large has `text_model.0.auto_model.*` (or `.model.*`), `image_model.vision_model.*`, `image_proj.*`
and maybe `text_proj.*`; its loader pools images by the mean of all patches but the first, and so does this one. Audio
towers and SigLIP's own text tower are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from safetensors.torch import load_file
from torch import Tensor, nn

from router.export.checkpoint_files import weight_files
from router.export.errors import ExportError, one_line
from router.export.kinds import Pooling
from router.export.reference import quiet

State = dict[str, Tensor]
ImagePooling = Literal["attention", "patches"]
TextFamily = Literal["bert", "modernbert"]

# multi-modal-embed-small's config.json does not say how many heads its parts have; by width, those of MiniLM and BERT,
# and of SigLIP's base, large and so400m.
_BERT_HEADS = {384: 12, 768: 12, 1024: 16}
_SIGLIP_HEADS = {768: 12, 1024: 16, 1152: 16}
# A grid of patches of 14 fits several sizes; every published tower with patches of 16 has a multiple of 16.
_PATCH_THAT_TELLS = 16
# The shortest that multi-modal-embed-small's loss was summed over; the longer ones are powers of two as well.
_SHORTEST = 32
# SigLIP and SigLIP2 resize by different filters, and their tensors look alike.
_BESIDE = ("preprocessor_config.json", "tokenizer.json")
# What its tensors do not tell about a ModernBERT, each by any of the names that its config.json has used.
_MODERNBERT_NEEDS = (
    ("num_attention_heads",),
    ("max_position_embeddings",),
    ("local_attention",),
    ("global_attn_every_n_layers", "layer_types"),
    ("global_rope_theta", "rope_parameters"),
)


@dataclass(frozen=True)
class Multimodal:
    """The towers in float32, in evaluation mode. A projection is None where the tower's own width is the common one."""

    text: Any = field(repr=False)
    family: TextFamily
    text_pooling: Pooling
    text_projection: nn.Linear | None = field(repr=False)
    vision: Any = field(repr=False)
    image_pooling: ImagePooling
    image_projection: nn.Linear | None = field(repr=False)
    dimension: int
    matryoshka: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Layout:
    text: tuple[str, ...]
    text_projection: str
    vision: str
    image_projection: str
    image_pooling: ImagePooling
    nested: bool
    """Whether each shorter length was trained for where config.json does not say so."""


_LAYOUTS = (
    _Layout(
        text=("text_encoder.encoder.",),
        text_projection="text_encoder.projection.",
        vision="image_encoder.vision_encoder.",
        image_projection="image_encoder.projection.",
        image_pooling="attention",
        nested=True,
    ),
    _Layout(
        text=("text_model.0.auto_model.", "text_model.0.model."),
        text_projection="text_proj.",
        vision="image_model.vision_model.",
        image_projection="image_proj.",
        image_pooling="patches",
        nested=False,
    ),
)


def read_multimodal(config: Mapping[str, Any], folder: Path) -> Multimodal:
    """The checkpoint in this folder, whose config.json is `config`; raises ExportError.

    `text_config` and `vision_config` in it are the towers' own config.json, `text_pooling` is mean or cls, and
    `matryoshka_dims` the lengths that embeddings may be cut to.
    """
    config = {**config, **_object(config, "model")}
    state = _state(folder)
    layout = next((each for each in _LAYOUTS if _under(state, each.vision)), None)
    if layout is None:
        raise ExportError(f"the checkpoint has no tensors under {' or '.join(each.vision for each in _LAYOUTS)}")
    words = next((found for prefix in layout.text if (found := _under(state, prefix))), None)
    if words is None:
        raise ExportError(f"the checkpoint has no tensors under {' or '.join(layout.text)}")
    family = _family(words, _object(config, "text_config"))
    missing = [name for name in _BESIDE if not (folder / name).is_file()]
    # multi-modal-embed-small, the one with a BERT, means SigLIP's own pixels where it brings no file.
    if family != "bert" and missing:
        raise ExportError(
            f"the checkpoint has no {' and no '.join(missing)}, so that its inputs cannot be known; put those of its "
            "image and text encoders beside its config.json, tokenizer_config.json too"
        )
    text = (_bert if family == "bert" else _modernbert)(words, _object(config, "text_config"))
    text_projection = _linear(state, layout.text_projection)
    vision = _siglip_vision(_under(state, layout.vision), _object(config, "vision_config"))
    image_projection = _linear(state, layout.image_projection)
    dimension = _width(text, text_projection)
    if _width(vision, image_projection) != dimension:
        raise ExportError(
            f"the image side has {_width(vision, image_projection)} dimensions, the text side {dimension}; "
            f"{layout.image_projection}weight is what should bring both together"
        )
    return Multimodal(
        text=text,
        family=family,
        text_pooling=_text_pooling(config),
        text_projection=text_projection,
        vision=vision,
        image_pooling=layout.image_pooling,
        image_projection=image_projection,
        dimension=dimension,
        matryoshka=_lengths(config, dimension, layout.nested),
    )


def _family(state: State, said: dict[str, Any]) -> TextFamily:
    """As declared, and by its embeddings' name where it is not; both must agree."""
    found: TextFamily | None = None
    if "embeddings.word_embeddings.weight" in state:
        found = "bert"
    elif "embeddings.tok_embeddings.weight" in state:
        found = "modernbert"
    declared = said.get("model_type", found)
    if found is None or declared != found:
        raise ExportError(
            f"the text side of this checkpoint (declared {declared or 'as nothing'}, by its tensors "
            f"{found or 'none that is known'}) is not supported; BERT and ModernBERT are"
        )
    return found


def _bert(state: State, said: dict[str, Any]) -> Any:
    hidden = _shape(state, "embeddings.word_embeddings.weight", 2)[1]
    sizes = {
        "vocab_size": _shape(state, "embeddings.word_embeddings.weight", 2)[0],
        "hidden_size": hidden,
        "num_hidden_layers": _layers(state, "encoder.layer."),
        "num_attention_heads": _heads(said, "text_config", hidden, _BERT_HEADS),
        "intermediate_size": _shape(state, "encoder.layer.0.intermediate.dense.weight", 2)[0],
        "max_position_embeddings": _shape(state, "embeddings.position_embeddings.weight", 2)[0],
    }
    config = _config(transformers.BertConfig, "text_config", sizes, said)
    return _filled(lambda: transformers.BertModel(config, add_pooling_layer=False), state, without=("pooler.",))


def _modernbert(state: State, said: dict[str, Any]) -> Any:
    missing = [" or ".join(names) for names in _MODERNBERT_NEEDS if not any(name in said for name in names)]
    if missing:
        raise ExportError(
            f"config.json does not say text_config's {', '.join(missing)}, and the tensors of a ModernBERT do not tell "
            "them; put the text encoder's own config.json into it as text_config"
        )
    vocabulary, hidden = _shape(state, "embeddings.tok_embeddings.weight", 2)
    sizes = {
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "num_hidden_layers": _layers(state, "layers."),
        # Gate and value in one.
        "intermediate_size": _shape(state, "layers.0.mlp.Wi.weight", 2)[0] // 2,
        # The tokenizer's business; but ModernBERT's own lie beyond a smaller vocabulary, which is refused.
        **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 0),
    }
    config = _config(transformers.ModernBertConfig, "text_config", sizes, said)
    return _filled(lambda: transformers.ModernBertModel(config), state)


def _siglip_vision(state: State, said: dict[str, Any]) -> Any:
    # Older releases of transformers put the tower one level deeper.
    state = {name.removeprefix("vision_model."): tensor for name, tensor in state.items()}
    patches = state.get("embeddings.patch_embedding.weight")
    if patches is None or patches.ndim != 4:
        raise ExportError("the image side of this checkpoint is no SigLIP or SigLIP2 of fixed resolution")
    hidden, _, patch, _ = patches.shape
    grid = math.isqrt(_shape(state, "embeddings.position_embedding.weight", 2)[0])
    if "image_size" not in said and patch != _PATCH_THAT_TELLS:
        raise ExportError(
            f"config.json does not say vision_config's image_size, and a grid of {grid} x {grid} patches of {patch} "
            f"fits {grid * patch} to {grid * patch + patch - 1}; put the image encoder's own vision_config into it"
        )
    sizes = {
        "hidden_size": hidden,
        "num_hidden_layers": _layers(state, "encoder.layers."),
        "num_attention_heads": _heads(said, "vision_config", hidden, _SIGLIP_HEADS),
        "intermediate_size": _shape(state, "encoder.layers.0.mlp.fc1.weight", 2)[0],
        "image_size": patch * grid,
        "patch_size": patch,
    }
    config = _config(transformers.SiglipVisionConfig, "vision_config", sizes, said)
    return _filled(lambda: transformers.SiglipVisionModel(config), state)


def _config(kind: Any, key: str, sizes: dict[str, Any], said: dict[str, Any]) -> Any:
    """What config.json says goes before what the tensors tell; where they differ, filling in the tensors fails."""
    try:
        with quiet():
            config = kind(**{**sizes, **said})
    except Exception as error:  # transformers checks types with errors of its own
        raise ExportError(f"config.json: {key} is no {kind.__name__} ({one_line(error)})") from error
    config._attn_implementation = "eager"
    return config


def _heads(said: dict[str, Any], key: str, hidden: int, known: dict[int, int]) -> int:
    heads = said.get("num_attention_heads", known.get(hidden))
    if not isinstance(heads, int):
        raise ExportError(
            f"config.json does not say how many attention heads a side of width {hidden} has "
            f"({key}.num_attention_heads)"
        )
    return heads


def _text_pooling(config: Mapping[str, Any]) -> Pooling:
    """Both published layouts take the mean; later relatives say in `text_pooling` what they take."""
    pooling = config.get("text_pooling", "mean")
    if pooling == "mean":
        return "mean"
    if pooling == "cls":
        return "cls"
    raise ExportError(f"config.json: text_pooling {pooling!r} is not supported; mean and cls are")


def _lengths(config: Mapping[str, Any], dimension: int, nested: bool) -> tuple[int, ...]:
    listed = config.get("matryoshka_dims")
    if listed is None:
        powers = (2**power for power in range(dimension.bit_length(), 0, -1)) if nested else ()
        return tuple(length for length in powers if _SHORTEST <= length < dimension)
    if not isinstance(listed, list) or not all(type(each) is int and 0 < each <= dimension for each in listed):
        raise ExportError(f"config.json: matryoshka_dims are numbers from 1 to {dimension}, not {listed!r}")
    return tuple(sorted({each for each in listed if each < dimension}, reverse=True))


def _object(config: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = config.get(key)
    return value if isinstance(value, dict) else {}


def _linear(state: State, prefix: str) -> nn.Linear | None:
    tensors = _under(state, prefix)
    if not tensors:
        return None
    outputs, inputs = _shape(state, f"{prefix}weight", 2)
    linear: nn.Linear = _filled(lambda: nn.Linear(inputs, outputs, bias="bias" in tensors), tensors)
    return linear


def _width(tower: Any, projection: nn.Linear | None) -> int:
    return int(tower.config.hidden_size) if projection is None else projection.out_features


def _shape(state: State, name: str, axes: int) -> tuple[int, ...]:
    tensor = state.get(name)
    if tensor is None or tensor.ndim != axes:
        raise ExportError(f"the checkpoint has no tensor {name} of {axes} axes, which tells a size")
    return tuple(tensor.shape)


def _layers(state: State, prefix: str) -> int:
    numbers = [name.removeprefix(prefix).split(".")[0] for name in state if name.startswith(prefix)]
    return 1 + max((int(number) for number in numbers if number.isdecimal()), default=-1)


def _filled(build: Any, state: State, without: tuple[str, ...] = ()) -> Any:
    """The module with every one of its tensors from the checkpoint."""
    unwanted = (*without, "embeddings.position_ids")
    try:
        with quiet():
            model = build()
        model.load_state_dict({name: each for name, each in state.items() if not name.startswith(unwanted)})
    except Exception as error:  # transformers and torch raise whatever their parts raise
        raise ExportError(
            f"the checkpoint's tensors do not make the module that its config.json says ({one_line(error)}); take both "
            "from one checkpoint"
        ) from error
    return model.float().eval()


def _under(state: State, prefix: str) -> State:
    return {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}


def _state(folder: Path) -> State:
    state: State = {}
    for path in weight_files(folder):
        if path.suffix == ".safetensors":
            state |= load_file(path)
            continue
        try:
            # weights_only: nothing that is pickled in the file is run.
            tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except Exception as error:
            raise ExportError(
                f"{path} is not a plain file of tensors ({type(error).__name__}); fetch it again"
            ) from error
        if isinstance(tensors, dict):
            tensors = tensors.get("state_dict", tensors)
        if not isinstance(tensors, dict):
            raise ExportError(f"{path} is not a file of tensors by name; fetch it again")
        # Trainers leave counters and optimisers beside the tensors.
        state |= {name: each for name, each in tensors.items() if isinstance(name, str) and isinstance(each, Tensor)}
    return state
