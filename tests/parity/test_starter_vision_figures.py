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

LEAST_TOP1 = 0.82
LEAST_MACRO = 0.78
SIGNALS = {
    "identity documents": (("passport_or_id",), 0.01, 0.97),
    "radiographs": (("chest_xray",), 0.01, 0.98),
    "code or terminal": (("code_screenshot", "terminal_screenshot"), 0.02, 0.92),
}
"""Classes, false alarms, and the recall that is promised there."""

NOWHERE = Path("/nowhere")


def embedded_images(folder: Path, *classes: str) -> tuple[NDArray[np.float32], list[str]]:
    """Of these classes, or of all."""
    model = open_vision_model(open_pack("starter", "vision", NOWHERE), ImageLimits())
    files = [file for file in sorted(folder.glob("*/*.jpg")) if not classes or file.parent.name in classes]
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
    recalls = {}
    for signal, (classes, false_alarms, _) in SIGNALS.items():
        columns = [names.index(name) for name in classes]
        recalls[signal] = recall_at(scores[:, columns].max(axis=1), np.isin(truth, columns), false_alarms)
    told = ", ".join(f"{signal} {recall:.3f}" for signal, recall in recalls.items())
    print(f"{len(labels)} images: top-1 {figures['top1']:.3f}, macro {figures['macro']:.3f}; {told}")
    assert len(names) == 23
    assert figures["top1"] >= LEAST_TOP1
    assert figures["macro"] >= LEAST_MACRO
    assert {signal: recall for signal, recall in recalls.items() if recall < SIGNALS[signal][2]} == {}


def test_no_identity_document_is_taken_for_a_radiograph_nor_the_reverse() -> None:
    images, labels = embedded_images(
        Path(os.environ["POINTSMAN_DATA"]) / "images" / "dev", "passport_or_id", "chest_xray"
    )
    names = sorted(load().classes.keys() - {"payment_card"})
    chosen = [names[index] for index in (images @ embedded_classes(names).T).argmax(axis=1)]
    pairs = set(zip(labels, chosen, strict=True))
    assert len(labels) == 84
    assert not pairs & {("passport_or_id", "chest_xray"), ("chest_xray", "passport_or_id")}
