"""Renderers: a picture is a function of kind and seed, and what only measures is out of training's reach."""

from __future__ import annotations

import pytest

from models.rendering import BUNDLED_FONT, KINDS, render
from models.rendering.unknown import UNKNOWN, render_unknown
from models.vision.phrases import load

NEWER = ("console", "text_interface", "gadget", "oddment")


@pytest.mark.parametrize("kind", NEWER)
@pytest.mark.parametrize("seed", [0, 7])
def test_the_same_seed_draws_the_same_picture(kind: str, seed: int) -> None:
    first, second = (render(kind, seed, BUNDLED_FONT) for _ in range(2))
    assert first.mode == "RGB"
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("kind", NEWER)
def test_another_seed_draws_another_picture(kind: str) -> None:
    assert len({render(kind, seed, BUNDLED_FONT).tobytes() for seed in range(3)}) == 3


@pytest.mark.parametrize("kind", sorted(UNKNOWN))
def test_unknown_pictures_are_drawn_from_their_seed_alone(kind: str) -> None:
    first, second = (render_unknown(kind, 3, BUNDLED_FONT) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    assert first.tobytes() != render_unknown(kind, 4, BUNDLED_FONT).tobytes()


def test_training_cannot_draw_what_stands_for_the_unknown() -> None:
    assert not set(UNKNOWN) & set(KINDS)
    assert len(UNKNOWN) >= 12


def test_every_kind_belongs_to_a_class_that_has_phrases() -> None:
    phrases = load()
    assert {kind.label for kind in KINDS.values()} <= set(phrases.names)
    assert set(phrases.kinds) <= set(KINDS)
