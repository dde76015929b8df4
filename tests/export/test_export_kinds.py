from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import checkpoint_makers as make
import pytest
from checkpoint_makers import Make

from router.export.checkpoint_files import TensorFacts
from router.export.errors import ExportError
from router.export.kinds import Kind, fit_head, read_labels, recognise
from router.packs.catalogue import read_catalogue


@pytest.mark.parametrize(
    ("maker", "arguments", "kind", "pooling"),
    [
        ("siglip", {}, Kind.SIGLIP, None),
        ("siglip", {"gemma": True}, Kind.SIGLIP, None),
        ("siglip", {"shard": "100KB"}, Kind.SIGLIP, None),
        ("naflex", {}, Kind.SIGLIP2_NAFLEX, None),
        ("multimodal", {}, Kind.MULTIMODAL_EMBED, None),
        ("sentence_encoder", {"family": "bert", "pooling": "mean"}, Kind.SENTENCE_ENCODER, "mean"),
        ("sentence_encoder", {"family": "modernbert", "pooling": "cls"}, Kind.SENTENCE_ENCODER, "cls"),
        ("classifier", {"family": "deberta-v2"}, Kind.SEQUENCE_CLASSIFIER, None),
        ("classifier", {"family": "bert", "each_token": True}, Kind.TOKEN_CLASSIFIER, None),
    ],
)
def test_every_kind_is_told_by_its_own_files(
    made: Make, maker: str, arguments: dict[str, Any], kind: Kind, pooling: str | None
) -> None:
    found = recognise(made(maker, **arguments))
    assert (found.kind, found.pooling) == (kind, pooling)


@pytest.fixture
def folder(made: Make, tmp_path: Path) -> Path:
    """A sentence encoder of one's own to spoil."""
    copy = tmp_path / "checkpoint"
    shutil.copytree(made("sentence_encoder", "bert", "mean"), copy)
    return copy


def change(path: Path, **entries: Any) -> None:
    make.write_json(path, json.loads(path.read_text()) | entries)


def test_another_kind_is_refused_with_the_list_of_what_is_supported(folder: Path) -> None:
    change(folder / "config.json", model_type="gpt2", architectures=["GPT2LMHeadModel"])
    with pytest.raises(
        ExportError, match=r"model_type gpt2, architectures GPT2LMHeadModel.*Supported are SigLIP.*bert"
    ):
        recognise(folder)


def test_a_bare_encoder_is_refused_because_nobody_says_how_it_pools(folder: Path) -> None:
    (folder / "modules.json").unlink()
    with pytest.raises(ExportError, match="of no kind that can be exported"):
        recognise(folder)


def test_pooling_that_is_not_served_is_refused(folder: Path) -> None:
    change(folder / "1_Pooling" / "config.json", pooling_mode_max_tokens=True)
    with pytest.raises(ExportError, match="pooling by max, mean is not supported"):
        recognise(folder)


def test_pooling_is_read_in_its_newer_spelling_too(folder: Path) -> None:
    make.write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 64, "pooling_mode": "cls"})
    assert recognise(folder).pooling == "cls"


def test_modules_that_would_be_left_out_are_refused(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    modules.append({"idx": 3, "name": "3", "path": "3_Dense", "type": "sentence_transformers.models.Dense"})
    make.write_json(folder / "modules.json", modules)
    with pytest.raises(ExportError, match="this one has Transformer, Pooling, Normalize, Dense"):
        recognise(folder)


def test_labels_are_taken_in_the_order_of_the_outputs() -> None:
    assert read_labels({"id2label": {"1": "BAD", "0": "GOOD"}, "label2id": {"GOOD": 0, "BAD": 1}}) == ("GOOD", "BAD")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "no id2label"),
        ({"id2label": {"0": "A", "2": "B"}}, r"indices \[0, 2\], not 0 to 1"),
        ({"id2label": {"0": "A", "1": "A"}}, "names A twice"),
        ({"id2label": {"a": "A"}}, "not numbers"),
        ({"id2label": {"1" * 5000: "A"}}, "not numbers"),
        ({"id2label": {"0": "A", "00": "B"}}, "names output 0 twice"),
        ({"id2label": {"0": "A", "1": None}}, "output 1 the label None, which is none"),
        ({"id2label": {"0": "A", "1": " "}}, "output 1 the label ' ', which is none"),
        ({"id2label": {"0": "A", "1": "B"}, "num_labels": 3}, "num_labels is 3, id2label names 2"),
        ({"id2label": {"0": "A", "1": "B"}, "label2id": {"A": 1, "B": 0}}, "not the inverse"),
    ],
)
def test_labels_that_could_mean_two_things_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ExportError, match=message):
        read_labels(config)


def test_labels_are_counted_against_the_head() -> None:
    def head(*shape: int) -> dict[str, TensorFacts]:
        return {"classifier.weight": TensorFacts("model.safetensors", "F32", shape)}

    fit_head(("A", "B"), head(2, 64))
    fit_head(("A", "B"), {})
    for shape in ((3, 64), (1, 64), ()):
        with pytest.raises(ExportError, match=r"names 2 labels.*classifier\.weight in model\.safetensors is"):
            fit_head(("A", "B"), head(*shape))


@pytest.mark.parametrize("listed", [5, None, "BertModel", {"a": 1}])
def test_architectures_that_are_no_list_name_none(folder: Path, listed: Any) -> None:
    change(folder / "config.json", architectures=listed)
    assert recognise(folder).kind is Kind.SENTENCE_ENCODER


@pytest.mark.parametrize("modules", [{}, [], 5, ["x"], [{"type": "a.Pooling"}]])
def test_modules_that_are_no_list_of_modules_are_refused(folder: Path, modules: Any) -> None:
    make.write_json(folder / "modules.json", modules)
    with pytest.raises(ExportError, match=r"is not a list of modules|this one has nothing"):
        recognise(folder)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (Kind.SIGLIP, ["siglip-base-224", "siglip-so400m-384", "siglip2-base-224", "siglip2-so400m-384"]),
        (Kind.SIGLIP2_NAFLEX, ["siglip2-base-naflex"]),
        (Kind.MULTIMODAL_EMBED, ["multi-modal-embed-small", "multi-modal-embed-large"]),
        (Kind.SENTENCE_ENCODER, ["all-minilm-l6-v2"]),
        (Kind.SEQUENCE_CLASSIFIER, ["prompt-injection-deberta", "domain-modernbert", "toxic-bert"]),
        (Kind.TOKEN_CLASSIFIER, ["pii-deberta", "pii-modernbert"]),
    ],
)
def test_the_catalogue_names_a_checkpoint_for_every_purpose(kind: Kind, names: list[str]) -> None:
    catalogue = read_catalogue()
    assert [catalogue[name].kind for name in names] == [kind] * len(names)
