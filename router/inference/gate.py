"""The parity gate: before a worker is ready, each tower shows that it still means what its reference meant.

Golden vectors, made once with the reference model, are run through the very objects that serve. Digests of graph,
weights and tokenizer need no place here: a tower whose files differ does not open (`packs.layout`, `packs.store`).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import numpy as np
import PIL

from router.inference.comparing import TOGETHER, Miss, golden_tokens_miss, near, providers_miss
from router.inference.encoders import Encoders
from router.inference.executor import Overloaded
from router.inference.gate_probabilities import check_classifier, check_golden_class, check_golden_heads, check_heads
from router.inference.golden import (
    GoldenError,
    GoldenImages,
    GoldenTexts,
    read_golden_images,
    read_golden_texts,
)
from router.inference.ledger import Ledger, Saw, Tower, unseen
from router.inference.remote.errors import RemoteAnswerError, RemoteNoAnswerError
from router.inference.text_model import TextModel
from router.inference.vision_model import VisionModel
from router.packs.files import undigested_images
from router.packs.store import Pack
from router.request.errors import ImageError

# The worker knows the gate alone, and this is what the gate's readers raise.
__all__ = [
    "GoldenError",
    "Miss",
    "check_classifier",
    "check_encoders",
    "check_golden_class",
    "check_golden_heads",
    "check_golden_image",
    "check_golden_text",
    "check_heads",
    "check_text",
    "check_vision",
    "golden_pixels_miss",
    "golden_tokens_miss",
    "misses_of",
]

logger = logging.getLogger(__name__)

Model = TypeVar("Model")
# Releases of Pillow and libjpeg round differently by a level or two; another resampling filter is off by far more.
MEAN_PIXEL_TOLERANCE = 0.25
MAX_PIXEL_TOLERANCE = 8


def check_encoders(encoders: Encoders, ledger: Ledger | None = None) -> list[Miss]:
    """Every miss of every tower and classifier; empty means ready. Blocks: run it before the loop serves.

    How near they came is entered into the `ledger`. Raises RemoteNoAnswerError and Overloaded, see `misses_of`.
    """
    ledger = ledger or Ledger()
    misses: list[Miss] = []
    if encoders.text is not None:
        with _entered(ledger, encoders.text.source, "text") as saw:
            misses += misses_of(encoders.text.source, partial(check_text, saw=saw), encoders.text.model)
        if encoders.heads:
            with _entered(ledger, encoders.text.source, "heads") as saw:
                misses += misses_of(encoders.text.source, partial(check_heads, saw=saw), encoders.text.model)
    if encoders.vision is not None:
        with _entered(ledger, encoders.vision.source, "vision") as saw:
            misses += misses_of(encoders.vision.source, partial(check_vision, saw=saw), encoders.vision.model)
    for classifier in encoders.distinct_classifiers:
        with _entered(ledger, classifier.source, "classifier") as saw:
            misses += misses_of(classifier.source, partial(check_classifier, saw=saw), classifier.model)
    return misses


@contextlib.contextmanager
def _entered(ledger: Ledger, pack: Pack, tower: Tower) -> Iterator[Saw]:
    seen: list[float] = []
    yield seen.append
    ledger.enter(pack.manifest.name, tower, seen)


def misses_of(pack: Pack, check: Callable[[Pack, Model], list[Miss]], model: Model) -> list[Miss]:
    """What the check finds; golden vectors that it stumbles over are a miss as well, and not the end of the worker.

    Raises RemoteNoAnswerError and Overloaded for a model at a server that has not answered.
    """
    try:
        return check(pack, model)
    except RemoteAnswerError as error:
        return [Miss(pack.manifest.name, "embeddings", str(error))]
    except (RemoteNoAnswerError, Overloaded):
        # A server that does not answer has shown nothing of its model.
        raise
    except Exception as error:
        return [Miss(pack.manifest.name, "golden", f"the golden vectors cannot be run: {type(error).__name__}")]


def check_text(pack: Pack, model: TextModel, saw: Saw = unseen) -> list[Miss]:
    """Misses of a text tower: token ids must be equal, embeddings near, alone and beside neighbours.

    `saw` is told how near the reference each came, here and in the other checks.
    """
    name = pack.manifest.name
    try:
        golden = read_golden_texts(pack, model.tower)
    except GoldenError as error:
        return [Miss(name, "golden", str(error))]
    misses = providers_miss(name, model.providers, model.tower.precision)
    for index in range(len(golden.texts)):
        misses += golden_tokens_miss(name, model, golden, index)
    single = np.concatenate([model.forward([row]) for row in golden.ids])
    least = model.tower.golden.min_cosine
    misses += near(name, "embeddings", single, golden.embeddings, least, saw=saw)
    short = sorted(range(len(golden.ids)), key=lambda index: len(golden.ids[index]))[:TOGETHER]
    together = model.forward([golden.ids[index] for index in short])
    return misses + near(name, "batch", together, single[short], least, short)


def check_golden_text(name: str, model: TextModel, golden: GoldenTexts, index: int, saw: Saw = unseen) -> list[Miss]:
    """Misses over one golden text of the pack of this name; takes as long as one text's forward pass."""
    row = model.forward([golden.ids[index]])
    misses = golden_tokens_miss(name, model, golden, index)
    reference, least = golden.embeddings[index : index + 1], model.tower.golden.min_cosine
    return misses + near(name, "embeddings", row, reference, least, [index], saw)


def check_vision(pack: Pack, model: VisionModel, saw: Saw = unseen) -> list[Miss]:
    """Misses of a vision tower: pixels of the golden image files must be near, then embeddings of the golden pixels.

    The two together hold the whole pipeline; each by itself says which half has moved.
    """
    name = pack.manifest.name
    try:
        golden = read_golden_images(pack, model.tower)
    except GoldenError as error:
        return [Miss(name, "golden", str(error))]
    if bare := undigested_images(pack.manifest):
        fields = {"pack": name, "images": len(bare)}
        logger.warning("pack whose golden images carry no digests", extra={"fields": fields})
    misses = providers_miss(name, model.providers, model.tower.precision)
    for index in range(len(golden.files)):
        misses += golden_pixels_miss(name, model, golden, index)
    single = np.concatenate([model.forward(image[None]) for image in golden.pixels])
    least = model.tower.golden.min_cosine
    misses += near(name, "embeddings", single, golden.embeddings, least, saw=saw)
    return misses + near(name, "batch", model.forward(golden.pixels[:TOGETHER]), single[:TOGETHER], least)


def check_golden_image(
    name: str, model: VisionModel, golden: GoldenImages, index: int, saw: Saw = unseen
) -> list[Miss]:
    """Misses over one golden image of the pack of this name; takes as long as one image."""
    row = model.forward(golden.pixels[index : index + 1])
    misses = golden_pixels_miss(name, model, golden, index)
    reference, least = golden.embeddings[index : index + 1], model.tower.golden.min_cosine
    return misses + near(name, "embeddings", row, reference, least, [index], saw)


def golden_pixels_miss(name: str, model: VisionModel, golden: GoldenImages, index: int) -> list[Miss]:
    """The miss of a golden image whose pixels come out otherwise, or nothing."""
    try:
        found = model.preprocess(golden.files[index])
    except ImageError as error:
        return [Miss(name, "golden", f"golden image {golden.names[index]} cannot be decoded: {error}")]
    if found.shape != golden.pixels[index].shape:
        sizes = [f"{shape[0]} x {shape[1]}" for shape in (found.shape, golden.pixels[index].shape)]
        return [Miss(name, "pixels", f"golden image {index} comes out as {sizes[0]} pixels, not as {sizes[1]}")]
    difference = np.abs(found.astype(np.int16) - golden.pixels[index].astype(np.int16))
    if difference.mean() <= MEAN_PIXEL_TOLERANCE and difference.max() <= MAX_PIXEL_TOLERANCE:
        return []
    detail = f"golden image {index} is off by {difference.mean():.3f} levels on average, {difference.max()} at most"
    cause = f"decoding or resizing is not what it was when the pack was made (this is Pillow {PIL.__version__})"
    return [Miss(name, "pixels", f"{detail}: {cause}")]
