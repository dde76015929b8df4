"""Tells what kind of checkpoint a folder holds, from its configuration and the names of its tensors alone.

It loads no weights. What a kind is exported to is `reference.py`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from router.export.checkpoint_files import TensorFacts, read_json, read_json_value, read_tensors, weight_files
from router.export.errors import ExportError

Pooling = Literal["mean", "cls"]

TEXT_FAMILIES = ("bert", "deberta-v2", "modernbert")
_LONGEST_INDEX = 9
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
    if _is_multimodal(folder):
        return Recognised(Kind.MULTIMODAL_EMBED, config)
    listed = config.get("architectures")
    architectures = [str(name) for name in listed] if isinstance(listed, list) else []
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
    by_index: dict[int, str] = {}
    for index, label in id2label.items():
        if not index.isascii() or not index.isdecimal() or len(index) > _LONGEST_INDEX:
            raise ExportError("config.json: the keys of id2label are not numbers")
        if int(index) in by_index:
            raise ExportError(f"config.json: id2label names output {int(index)} twice")
        if isinstance(label, bool) or not isinstance(label, (str, int)) or not str(label).strip():
            raise ExportError(f"config.json: id2label gives output {index} the label {label!r}, which is none")
        by_index[int(index)] = str(label)
    if sorted(by_index) != list(range(len(by_index))):
        raise ExportError(f"config.json: id2label has the indices {sorted(by_index)}, not 0 to {len(by_index) - 1}")
    labels = tuple(by_index[index] for index in range(len(by_index)))
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ExportError(f"config.json: id2label names {', '.join(twice)} twice")
    label2id = config.get("label2id")
    if isinstance(label2id, dict) and label2id and label2id != {label: index for index, label in by_index.items()}:
        raise ExportError("config.json: label2id is not the inverse of id2label; one of them is wrong")
    count = config.get("num_labels")
    if count is not None and count != len(labels):
        raise ExportError(f"config.json: num_labels is {count!r}, id2label names {len(labels)}; one of them is wrong")
    return labels


def fit_head(labels: tuple[str, ...], tensors: Mapping[str, TensorFacts]) -> None:
    """Raises ExportError where the classifier's head has another number of outputs than there are labels."""
    for name in ("classifier.weight", "classifier.bias"):
        facts = tensors.get(name)
        if facts is not None and facts.shape[:1] != (len(labels),):
            shape = " x ".join(str(each) for each in facts.shape)
            raise ExportError(
                f"config.json names {len(labels)} labels, but the head has another number of outputs: {name} in "
                f"{facts.file} is {shape}. Take config.json and weights from one checkpoint"
            )


def _is_multimodal(folder: Path) -> bool:
    # A file by this name is what multi-modal-embed-large is published as.
    if any(path.name == "model.pt" for path in weight_files(folder)):
        return True
    return any(name.startswith(_MULTIMODAL_MARKS) for name in read_tensors(folder))


def _pooling(folder: Path) -> Pooling:
    """Mean or CLS, as the checkpoint's own modules say; anything else would be another model."""
    try:
        modules = read_json_value(folder / "modules.json")
        steps = [(str(module["type"]).rsplit(".", 1)[-1], str(module["path"])) for module in modules]
    except (KeyError, TypeError) as error:
        raise ExportError(f"{folder / 'modules.json'} is not a list of modules") from error
    unknown = [name for name, _ in steps if name not in ("Transformer", "Pooling", "Normalize")]
    paths = [path for name, path in steps if name == "Pooling"]
    if unknown or len(paths) != 1:
        raise ExportError(
            f"a sentence encoder is a Transformer, one Pooling and at most Normalize; this one has "
            f"{', '.join(name for name, _ in steps) or 'nothing'}"
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
