"""The image tower's gate: what it does to cosines, what it leaves alone, and what it learns from."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from models.rendering import BUNDLED_FONT, KINDS
from models.rendering.art import Art
from models.rendering.nowhere import NOWHERE
from models.rendering.unknown import UNKNOWN
from models.vision.gate import UNRECOGNISABLE
from models.vision.pack import VisionPack
from models.vision.text import TextTower
from models.vision.tower import DIMENSION, QUIET, TURN, Gate, Tower
from models.vision.weights import take

FEATURES = 12


def a_gate(strangeness: float) -> Gate:
    """Finds every image equally strange; the first axes are the quiet ones."""
    torch.manual_seed(0)
    gate = Gate(FEATURES)
    gate.get_buffer("place").copy_(torch.randn(QUIET, FEATURES))
    gate.get_buffer("quiet").copy_(torch.eye(QUIET, DIMENSION))
    with torch.no_grad():
        gate.fc2.weight.zero_()
        gate.fc2.bias.fill_(float(np.log(strangeness / (1 - strangeness))))
    return gate


def vectors(seed: int, count: int) -> torch.Tensor:
    """Unit vectors with nothing along the quiet axes, as texts are."""
    drawn = torch.randn(count, DIMENSION, generator=torch.Generator().manual_seed(seed))
    drawn[:, :QUIET] = 0
    unit: torch.Tensor = drawn / drawn.norm(dim=-1, keepdim=True)
    return unit


@given(st.integers(0, 1_000), st.floats(0.001, 0.999))
def test_all_cosines_of_an_image_shrink_by_one_factor(seed: int, strangeness: float) -> None:
    images, texts = vectors(seed, 4), vectors(seed + 1, 9)
    with torch.no_grad():
        turned = a_gate(strangeness)(torch.randn(4, FEATURES), images)
    factor = 1 / np.sqrt(1 + (TURN * strangeness) ** 2)
    assert turned.norm(dim=-1).numpy() == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose((turned @ texts.T).numpy(), factor * (images @ texts.T).numpy(), atol=1e-5)


def test_a_gate_that_was_never_fitted_changes_nothing() -> None:
    images = vectors(3, 5)
    with torch.no_grad():
        assert torch.allclose(Gate(FEATURES)(torch.randn(5, FEATURES), images), images, atol=1e-6)


def test_strange_images_of_unlike_features_stay_apart() -> None:
    image = vectors(5, 1).repeat(2, 1)
    features = torch.randn(2, FEATURES, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        apart = a_gate(0.999)(features, image)
        alike = a_gate(0.999)(features[:1].repeat(2, 1), image)
    assert float(apart[0] @ apart[1]) < 0.8
    assert float(alike[0] @ alike[1]) > 0.999


def test_weights_from_before_the_gate_fit_and_half_a_gate_does_not() -> None:
    whole = Tower().state_dict()
    take(Tower(), {name: tensor for name, tensor in whole.items() if not name.startswith("gate.")})
    with pytest.raises(SystemExit, match="do not fit"):
        take(Tower(), {name: tensor for name, tensor in whole.items() if name != "gate.fc1.weight"})


def test_training_draws_nothing_that_stands_for_the_unknown() -> None:
    assert not set(NOWHERE) & (set(UNKNOWN) | set(KINDS))
    assert len(NOWHERE) >= 20


@pytest.mark.parametrize("kind", sorted(NOWHERE))
def test_a_picture_of_nothing_is_a_function_of_its_seed(kind: str) -> None:
    drawn = [NOWHERE[kind](Art(random.Random(seed), BUNDLED_FONT)).convert("RGB") for seed in (1, 1, 2)]
    assert drawn[0].tobytes() == drawn[1].tobytes()
    assert drawn[0].tobytes() != drawn[2].tobytes()


@pytest.mark.parametrize("change", sorted(UNRECOGNISABLE))
def test_a_photo_is_made_unrecognisable_the_same_way_for_the_same_seed(change: str) -> None:
    photo = Image.fromarray(np.random.default_rng(0).integers(0, 255, (90, 120, 3), dtype=np.uint8))
    changed = [UNRECOGNISABLE[change](photo, random.Random(seed)) for seed in (1, 1, 2)]
    assert changed[0].tobytes() == changed[1].tobytes()
    assert changed[0].tobytes() != changed[2].tobytes()


def test_texts_have_next_to_nothing_where_the_pack_turns_strange_images() -> None:
    from safetensors.numpy import load_file

    pack = VisionPack()
    quiet = load_file(str(Path(pack.folder) / pack.manifest["weights"][0]["path"]))["gate.quiet"]
    texts = ["a passport", "my neighbour's old dog", "a maze", "photo of the moon", "receipt for two coffees", "a flag"]
    np.testing.assert_allclose(quiet @ quiet.T, np.eye(len(quiet)), atol=1e-5)
    assert np.linalg.norm(TextTower().embed(texts) @ quiet.T, axis=1).max() < 0.12
