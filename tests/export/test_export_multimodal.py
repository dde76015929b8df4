"""Larger siblings of multi-modal-embed-small, in its layout and in that of multi-modal-embed-large."""

from __future__ import annotations

import json
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any

import checkpoint_makers as make
import numpy as np
import pytest
from checkpoint_makers import Make
from numpy.typing import NDArray
from PIL import Image

from router.export.errors import ExportError
from router.export.golden import draw
from router.export.hub import fetch
from router.export.kinds import Kind, recognise
from router.export.multimodal import Multimodal, read_multimodal
from router.export.pack import export_pack
from router.inference.open import open_text_model, open_vision_model
from router.packs.store import open_pack, read_pack
from router.request.images import ImageLimits

LAYOUTS = ["small's", "large's"]


def read(folder: Path) -> Multimodal:
    return read_multimodal(json.loads((folder / "config.json").read_text()), folder)


@pytest.fixture
def folder(made: Make, tmp_path: Path) -> Path:
    """A checkpoint of one's own to spoil."""
    copy = tmp_path / "checkpoint"
    shutil.copytree(made("multimodal_large"), copy)
    return copy


def change(folder: Path, **entries: Any) -> None:
    path = folder / "config.json"
    make.write_json(path, json.loads(path.read_text()) | entries)


def change_tensors(folder: Path, edit: Any) -> None:
    from safetensors.torch import load_file, save_file

    state = load_file(folder / "model.safetensors")
    edit(state)
    save_file(state, folder / "model.safetensors")


def unit(row: NDArray[np.float32]) -> NDArray[np.float32]:
    result: NDArray[np.float32] = row / np.linalg.norm(row)
    return result


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_larger_sibling_serves_what_transformers_makes_of_its_tensors(
    made: Make, packed: Make, layout: str, precision: str
) -> None:
    import torch
    import transformers
    from safetensors.torch import load_file

    # The same weights in both layouts, read here without the exporter's code.
    state = load_file(made("multimodal_large") / "model.safetensors")

    def below(prefix: str) -> dict[str, Any]:
        return {name.removeprefix(prefix): each for name, each in state.items() if name.startswith(prefix)}

    with make.quiet(), torch.no_grad():
        words = transformers.AutoTokenizer.from_pretrained(made("multimodal_large"))("please read my order again")
        config = make.modernbert_config(
            state["text_encoder.encoder.embeddings.tok_embeddings.weight"].shape[0],
            global_rope_theta=5000.0,
            local_rope_theta=200.0,
        )
        bert = transformers.ModernBertModel(config).eval()
        bert.load_state_dict(below("text_encoder.encoder."))
        text_row = bert(input_ids=torch.tensor([words["input_ids"]])).last_hidden_state[0].mean(0).numpy()
        shape = {"hidden_size": 96, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
        tower = transformers.SiglipVisionModel(
            transformers.SiglipVisionConfig(**shape, image_size=48, patch_size=14)
        ).eval()
        tower.load_state_dict(below("image_encoder.vision_encoder."))
        projection = torch.nn.Linear(96, 64)
        projection.load_state_dict(below("image_encoder.projection."))
        image = draw(3, (160, 90))
        levels = np.asarray(image.resize((48, 48), Image.Resampling.BILINEAR)).astype(np.float32) / 255
        out = tower(pixel_values=torch.from_numpy(((levels - 0.5) / 0.5).transpose(2, 0, 1))[None])
        pooled = out.pooler_output[0] if layout == "small's" else out.last_hidden_state[0, 1:].mean(0)
        image_row = projection(pooled).numpy()

    folder = packed("multimodal_large", layout, precision=precision)
    text = open_text_model(open_pack(str(folder), "text", folder))
    vision = open_vision_model(open_pack(str(folder), "vision", folder), ImageLimits())
    file = BytesIO()
    image.save(file, "PNG")
    least = 0.99999 if precision == "fp32" else 0.998
    served = text.forward([text.window(text.tokenise("please read my order again"), 0)])[0]
    assert served @ unit(text_row) >= least
    assert vision.encode(file.getvalue()) @ unit(image_row) >= least


@pytest.mark.parametrize(("layout", "lengths"), [("small's", (32,)), ("large's", ())])
def test_a_pack_of_a_larger_sibling_says_what_its_checkpoint_says(
    packed: Make, layout: str, lengths: tuple[int, ...]
) -> None:
    manifest = read_pack(packed("multimodal_large", layout)).manifest
    assert manifest.text is not None
    assert manifest.vision is not None
    assert (manifest.text.dimension, manifest.vision.dimension) == (64, 64)
    assert (manifest.text.matryoshka, manifest.vision.matryoshka) == (lengths, lengths)
    assert (manifest.vision.size, manifest.vision.resample) == ((48, 48), "bilinear")
    assert "audio side is left out" in manifest.description


@pytest.mark.parametrize("layout", LAYOUTS)
def test_both_layouts_are_told_by_their_tensors(made: Make, layout: str) -> None:
    assert recognise(made("multimodal_large", layout)).kind is Kind.MULTIMODAL_EMBED


def test_what_config_does_not_say_is_read_off_the_tensors(made: Make) -> None:
    parts = read(made("multimodal_large"))
    assert (parts.text.config.hidden_size, parts.text.config.num_hidden_layers) == (64, 4)
    assert parts.text.config.intermediate_size == 96
    assert (parts.vision.config.hidden_size, parts.vision.config.num_hidden_layers) == (96, 2)
    assert (parts.vision.config.image_size, parts.vision.config.patch_size) == (48, 14)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"text_config": {}}, r"does not say text_config's num_attention_heads, .*local_attention, .*rope_parameters"),
        ({"text_config": {"model_type": "bert"}}, "declared bert, by its tensors modernbert"),
        ({"vision_config": {"num_attention_heads": 2}}, r"image_size, and a grid of 3 x 3 patches of 14 fits 42 to 55"),
        ({"vision_config": {"image_size": 48}}, r"how many attention heads.*96.*vision_config\.num_attention_heads"),
        ({"vision_config": {"image_size": 96, "num_attention_heads": 2}}, "tensors do not make the module"),
        ({"text_pooling": "last_token"}, "text_pooling 'last_token' is not supported"),
        ({"matryoshka_dims": [128, 32]}, "numbers from 1 to 64"),
    ],
)
def test_what_cannot_be_known_is_named(folder: Path, entries: dict[str, Any], message: str) -> None:
    change(folder, **entries)
    with pytest.raises(ExportError, match=message):
        read(folder)


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        (["preprocessor_config.json"], r"has no preprocessor_config\.json, so"),
        (["preprocessor_config.json", "tokenizer.json"], r"no preprocessor_config\.json and no tokenizer\.json"),
    ],
)
def test_pixels_and_tokens_are_never_guessed_for_a_larger_sibling(folder: Path, gone: list[str], message: str) -> None:
    """SigLIP2 resizes by another filter than SigLIP, and the tensors look the same."""
    for name in gone:
        (folder / name).unlink()
    with pytest.raises(ExportError, match=message):
        read(folder)


def test_a_side_of_another_width_is_refused(folder: Path) -> None:
    def cut(state: dict[str, Any]) -> None:
        for name in ("weight", "bias"):
            state[f"image_encoder.projection.{name}"] = state[f"image_encoder.projection.{name}"][:48].contiguous()

    change_tensors(folder, cut)
    with pytest.raises(ExportError, match="image side has 48 dimensions, the text side 64"):
        read(folder)


def test_a_text_side_of_no_known_family_is_refused(folder: Path) -> None:
    def rename(state: dict[str, Any]) -> None:
        state["text_encoder.encoder.wte.weight"] = state.pop("text_encoder.encoder.embeddings.tok_embeddings.weight")

    change_tensors(folder, rename)
    with pytest.raises(ExportError, match=r"none that is known.*BERT and ModernBERT are"):
        read(folder)


def test_a_checkpoint_without_one_of_its_sides_is_refused(folder: Path) -> None:
    def drop(state: dict[str, Any]) -> None:
        for name in [name for name in state if name.startswith("text_encoder.")]:
            del state[name]

    change_tensors(folder, drop)
    with pytest.raises(ExportError, match=r"no tensors under text_encoder\.encoder\."):
        read(folder)


def test_a_list_of_lengths_and_a_pooling_of_ones_own_are_taken(folder: Path) -> None:
    change(folder, matryoshka_dims=[16, 64, 48], text_pooling="cls")
    parts = read(folder)
    assert (parts.matryoshka, parts.text_pooling) == ((48, 16), "cls")


def test_a_text_projection_is_part_of_the_text_side(made: Make, tmp_path: Path) -> None:
    import torch

    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(made("multimodal_large", "large's"), checkpoint)
    state = torch.load(checkpoint / "model.pt", weights_only=True)
    torch.manual_seed(3)
    for side, width in (("text", 64), ("image", 96)):
        state |= {f"{side}_proj.weight": torch.randn(40, width), f"{side}_proj.bias": torch.randn(40)}
    torch.save({"state_dict": state}, checkpoint / "model.pt")
    to = tmp_path / "pack"
    source = fetch(str(checkpoint), None, lambda step: None)
    made_pack = export_pack(source, to, "fp32", force=False, allow_drift=False, progress=lambda step: None)
    text = read_pack(to).manifest.text
    assert text is not None
    assert text.dimension == 40
    assert made_pack.parity["text"].worst >= 0.99999
