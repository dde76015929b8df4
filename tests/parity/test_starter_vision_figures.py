"""What the served starter towers tell apart on real images that training never saw; figures are in the model card.

`pytest -s tests/parity/test_starter_vision_figures.py` prints them; collected only where POINTSMAN_DATA names a folder.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from models.vision.figures import recall_at, top1, unit
from models.vision.phrases import load
from router.inference.open import open_text_model, open_vision_model
from router.packs.store import open_pack
from router.request.images import ImageLimits

pytestmark = [pytest.mark.data, pytest.mark.slow]

LEAST_TOP1 = 0.80
LEAST_IDENTITY_RECALL = 0.92
"""At 2 % false alarms."""

NOWHERE = Path("/nowhere")


def embedded_images(folder: Path) -> tuple[NDArray[np.float32], list[str]]:
    model = open_vision_model(open_pack("starter", "vision", NOWHERE), ImageLimits())
    files = sorted(folder.glob("*/*.jpg"))
    return np.stack([model.encode(file.read_bytes()) for file in files]), [file.parent.name for file in files]


def embedded_classes(names: list[str]) -> NDArray[np.float32]:
    model = open_text_model(open_pack("starter", "text", NOWHERE))
    phrases = load().classes
    rows = []
    for name in names:
        vectors = [model.forward([model.window(model.tokenise(phrase), 0)])[0] for phrase in phrases[name]]
        rows.append(np.mean(vectors, axis=0))
    return unit(np.stack(rows))


def test_the_served_towers_reach_the_figures_that_the_card_promises() -> None:
    images, labels = embedded_images(Path(os.environ["POINTSMAN_DATA"]) / "images" / "dev")
    names = sorted(set(labels))
    scores = images @ embedded_classes(names).T
    truth = np.array([names.index(label) for label in labels])
    figures = top1(scores, truth, names)
    positive = truth == names.index("passport_or_id")
    recall = recall_at(scores[:, names.index("passport_or_id")], positive, 0.02)
    print(
        f"{len(labels)} images: top-1 {figures['top1']:.3f}, macro {figures['macro']:.3f}, identity recall {recall:.3f}"
    )
    assert len(names) == 23
    assert figures["top1"] >= LEAST_TOP1
    assert recall >= LEAST_IDENTITY_RECALL
