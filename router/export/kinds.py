"""Tells what kind of checkpoint a folder holds, from its configuration and the names of its tensors alone.

It loads no weights. What a kind is exported to is `reference.py`'s business.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from router.export.errors import ExportError

Pooling = Literal["mean", "cls"]

TEXT_FAMILIES = ("bert", "deberta-v2", "modernbert")
_MULTIMODAL_MARKS = ("image_encoder.vision_encoder.", "image_model.vision_model.")


class Kind(StrEnum):
    """What can be exported."""

    SIGLIP = "siglip"
    SIGLIP2_NAFLEX = "siglip2-naflex"
    MULTIMODAL_EMBED = "multi-modal-embed"
    SENTENCE_ENCODER = "sentence-encoder"
    SEQUENCE_CLASSIFIER = "sequence-classifier"
    TOKEN_CLASSIFIER = "token-classifier"  # noqa: S105


SUPPORTED = (
    "SigLIP and SigLIP2 of fixed resolution (model_type siglip), SigLIP2 NaFlex (model_type siglip2), "
    "the layouts of multi-modal-embed, sentence encoders (modules.json) and sequence and token classifiers of the "
    f"families {', '.join(TEXT_FAMILIES)}"
)


@dataclass(frozen=True, slots=True)
class Recognised:
    """A checkpoint's kind, its config.json, and how a sentence encoder pools."""

    kind: Kind
    config: dict[str, Any] = field(repr=False)
    pooling: Pooling | None = None


def recognise(folder: Path) -> Recognised:
    """The kind of the checkpoint in this folder; raises ExportError that lists what is supported."""
    config = read_json(folder / "config.json")
    family = str(config.get("model_type", ""))
    if family == "siglip":
        return Recognised(Kind.SIGLIP, config)
    if family == "siglip2":
        return Recognised(Kind.SIGLIP2_NAFLEX, config)
    if any(name.startswith(_MULTIMODAL_MARKS) for name in tensor_names(folder)):
        return Recognised(Kind.MULTIMODAL_EMBED, config)
    architectures = [str(name) for name in config.get("architectures") or []]
    if family in TEXT_FAMILIES:
        if any(name.endswith("ForSequenceClassification") for name in architectures):
            return Recognised(Kind.SEQUENCE_CLASSIFIER, config)
        if any(name.endswith("ForTokenClassification") for name in architectures):
            return Recognised(Kind.TOKEN_CLASSIFIER, config)
        if (folder / "modules.json").is_file():
            return Recognised(Kind.SENTENCE_ENCODER, config, _pooling(folder))
    described = f"model_type {family or 'none'}, architectures {', '.join(architectures) or 'none'}"
    raise ExportError(f"this checkpoint ({described}) is of no kind that can be exported. Supported are {SUPPORTED}")


def read_labels(config: dict[str, Any]) -> tuple[str, ...]:
    """The classifier's labels in the order of its outputs; raises ExportError where config.json is not plain."""
    id2label = config.get("id2label")
    if not isinstance(id2label, dict) or not id2label:
        raise ExportError("config.json has no id2label: what the classifier's outputs mean cannot be known")
    try:
        by_index = {int(index): str(label) for index, label in id2label.items()}
    except ValueError as error:
        raise ExportError("config.json: the keys of id2label are not numbers") from error
    if sorted(by_index) != list(range(len(by_index))):
        raise ExportError(f"config.json: id2label has the indices {sorted(by_index)}, not 0 to {len(by_index) - 1}")
    labels = tuple(by_index[index] for index in range(len(by_index)))
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ExportError(f"config.json: id2label names {', '.join(twice)} twice")
    label2id = config.get("label2id")
    if isinstance(label2id, dict) and label2id and label2id != {label: index for index, label in by_index.items()}:
        raise ExportError("config.json: label2id is not the inverse of id2label; one of them is wrong")
    return labels


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a checkpoint's file; raises ExportError."""
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise ExportError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ExportError(f"{path} is not JSON") from error
    if not isinstance(value, dict):
        raise ExportError(f"{path} is not a JSON object")
    return value


def read_json_if_there(path: Path) -> dict[str, Any]:
    """The same, empty where there is no such file."""
    return read_json(path) if path.is_file() else {}


def weight_files(folder: Path) -> list[Path]:
    """The checkpoint's weights: safetensors, all shards, else torch's own files; raises ExportError."""
    for single, index in (
        ("model.safetensors", "model.safetensors.index.json"),
        ("pytorch_model.bin", "pytorch_model.bin.index.json"),
        ("model.pt", ""),
    ):
        if index and (folder / index).is_file():
            shards = sorted(set(read_json(folder / index).get("weight_map", {}).values()))
            missing = [shard for shard in shards if not (folder / shard).is_file()]
            if missing or not shards:
                raise ExportError(f"{folder / index} names shards that are not there: {', '.join(missing) or 'none'}")
            return [folder / shard for shard in shards]
        if (folder / single).is_file():
            return [folder / single]
    raise ExportError(f"{folder} has no weights: neither model.safetensors, whole or in shards, nor pytorch_model.bin")


def tensor_names(folder: Path) -> list[str]:
    """Names of the tensors in safetensors files, read from their headers; raises ExportError.

    Of torch's own files only `model.pt` is answered for, by the name that multi-modal-embed gives its weights.
    """
    names: list[str] = []
    for path in weight_files(folder):
        if path.suffix == ".safetensors":
            names += _header(path)
        elif path.name == "model.pt":
            names.append(_MULTIMODAL_MARKS[0])
    return names


def _header(path: Path) -> list[str]:
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > 100_000_000:
            raise ExportError(f"{path} is not a safetensors file: its header would have {size} bytes")
        try:
            header = json.loads(file.read(size))
        except ValueError as error:
            raise ExportError(f"{path} is not a safetensors file: its header cannot be read") from error
    return [name for name in header if name != "__metadata__"]


def _pooling(folder: Path) -> Pooling:
    """Mean or CLS, as the checkpoint's own modules say; anything else would be another model."""
    try:
        modules = json.loads((folder / "modules.json").read_bytes())
        steps = [(str(module["type"]).rsplit(".", 1)[-1], str(module["path"])) for module in modules]
    except (ValueError, KeyError, TypeError) as error:
        raise ExportError(f"{folder / 'modules.json'} is not a list of modules") from error
    unknown = [name for name, _ in steps if name not in ("Transformer", "Pooling", "Normalize")]
    paths = [path for name, path in steps if name == "Pooling"]
    if unknown or len(paths) != 1:
        raise ExportError(
            f"a sentence encoder is a Transformer, one Pooling and at most Normalize; this one has "
            f"{', '.join(name for name, _ in steps)}"
        )
    config = read_json(folder / paths[0] / "config.json")
    modes = {key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
             for key, value in config.items() if key.startswith("pooling_mode_") and value is True}  # fmt: skip
    if "pooling_mode" in config:
        modes = {str(config["pooling_mode"])}
    if modes == {"mean"}:
        return "mean"
    if modes == {"cls"}:
        return "cls"
    raise ExportError(f"pooling by {', '.join(sorted(modes)) or 'nothing'} is not supported; mean and cls are")
