"""The parity gate: before a worker is ready, each tower shows that it still means what its reference meant.

Golden vectors, made once with the reference model, are run through the very objects that serve. Digests of graph,
weights and tokenizer need no place here: a tower whose files differ does not open (`packs.layout`, `packs.store`).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

import numpy as np
import PIL

from router.inference.classifier_model import ClassifierModel
from router.inference.encoders import Encoders
from router.inference.executor import Overloaded
from router.inference.golden import (
    Doubles,
    Floats,
    GoldenClasses,
    GoldenError,
    GoldenImages,
    GoldenTexts,
    read_golden_classes,
    read_golden_images,
    read_golden_texts,
)
from router.inference.ledger import Ledger, Saw, Tower, unseen
from router.inference.remote.errors import RemoteAnswerError, RemoteNoAnswerError
from router.inference.sessions import providers_of
from router.inference.text_model import TextModel, WindowModel
from router.inference.vision_model import VisionModel
from router.packs.files import undigested_images
from router.packs.manifest import ClassifierGolden, Precision
from router.packs.store import Pack
from router.request.errors import ImageError

# The worker knows the gate alone, and this is what the gate's readers raise.
__all__ = [
    "GoldenError",
    "Miss",
    "check_classifier",
    "check_encoders",
    "check_golden_class",
    "check_golden_image",
    "check_golden_text",
    "check_text",
    "check_vision",
    "golden_pixels_miss",
    "golden_tokens_miss",
    "misses_of",
]

logger = logging.getLogger(__name__)

Model = TypeVar("Model")
Stage = Literal["golden", "providers", "tokens", "pixels", "embeddings", "batch"]

# Releases of Pillow and libjpeg round differently by a level or two; another resampling filter is off by far more.
MEAN_PIXEL_TOLERANCE = 0.25
MAX_PIXEL_TOLERANCE = 8
# Golden inputs that are also run together, to see that neighbours and padding do not matter.
TOGETHER = 4


@dataclass(frozen=True, slots=True)
class Miss:
    """One way in which a tower is not what its golden vectors say. `pack` is the pack's name."""

    pack: str
    stage: Stage
    detail: str

    def __str__(self) -> str:
        return f"pack {self.pack!r}, {self.stage}: {self.detail}"


def check_encoders(encoders: Encoders, ledger: Ledger | None = None) -> list[Miss]:
    """Every miss of every tower and classifier; empty means ready. Blocks: run it before the loop serves.

    How near they came is entered into the `ledger`. Raises RemoteNoAnswerError and Overloaded, see `misses_of`.
    """
    ledger = ledger or Ledger()
    misses: list[Miss] = []
    if encoders.text is not None:
        with _entered(ledger, encoders.text.source, "text") as saw:
            misses += misses_of(encoders.text.source, partial(check_text, saw=saw), encoders.text.model)
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
    misses = _providers(name, model.providers, model.tower.precision)
    for index in range(len(golden.texts)):
        misses += golden_tokens_miss(name, model, golden, index)
    single = np.concatenate([model.forward([row]) for row in golden.ids])
    least = model.tower.golden.min_cosine
    misses += _near(name, "embeddings", single, golden.embeddings, least, saw=saw)
    short = sorted(range(len(golden.ids)), key=lambda index: len(golden.ids[index]))[:TOGETHER]
    together = model.forward([golden.ids[index] for index in short])
    return misses + _near(name, "batch", together, single[short], least, short)


def check_golden_text(name: str, model: TextModel, golden: GoldenTexts, index: int, saw: Saw = unseen) -> list[Miss]:
    """Misses over one golden text of the pack of this name; takes as long as one text's forward pass."""
    row = model.forward([golden.ids[index]])
    misses = golden_tokens_miss(name, model, golden, index)
    reference, least = golden.embeddings[index : index + 1], model.tower.golden.min_cosine
    return misses + _near(name, "embeddings", row, reference, least, [index], saw)


def golden_tokens_miss(name: str, model: WindowModel, golden: GoldenTexts | GoldenClasses, index: int) -> list[Miss]:
    """The miss of a golden text whose token ids differ, or nothing."""
    found = model.window(model.tokenise(golden.texts[index]), 0)
    if np.array_equal(found, golden.ids[index]):
        return []
    return [Miss(name, "tokens", f"golden text {index} has other token ids than the reference tokeniser")]


def check_classifier(pack: Pack, model: ClassifierModel, saw: Saw = unseen) -> list[Miss]:
    """Misses of a classifier: token ids must be equal, probabilities near, alone and beside a neighbour."""
    name = pack.manifest.name
    bound = model.tower.golden
    try:
        golden = read_golden_classes(pack, model.tower)
    except GoldenError as error:
        return [Miss(name, "golden", str(error))]
    misses = _providers(name, model.providers, model.tower.precision)
    ids, reference = golden.ids, golden.probabilities
    for index in range(len(ids)):
        misses += check_golden_class(name, model, golden, index, saw)
    short = sorted(range(len(ids)), key=lambda index: len(ids[index]))[:TOGETHER]
    together = model.probabilities([ids[index] for index in short])
    for index, found in zip(short, together, strict=True):
        own = found[: len(ids[index])] if model.tower.level == "token" else found
        misses += _equally_likely(name, "batch", index, own, reference[index], bound)
    return misses


def check_golden_class(
    name: str, model: ClassifierModel, golden: GoldenClasses, index: int, saw: Saw = unseen
) -> list[Miss]:
    """Misses over one golden text of the classifier of this name; takes as long as one text's forward pass."""
    misses = golden_tokens_miss(name, model, golden, index)
    found = model.probabilities([golden.ids[index]])[0]
    reference, bound = golden.probabilities[index], model.tower.golden
    return misses + _equally_likely(name, "embeddings", index, found, reference, bound, saw)


def _equally_likely(
    name: str,
    stage: Stage,
    index: int,
    found: Doubles,
    reference: Doubles,
    golden: ClassifierGolden,
    saw: Saw = unseen,
) -> list[Miss]:
    off = float(np.abs(found - reference).max()) if found.shape == reference.shape else np.inf
    saw(off)
    # Written so that a NaN is a miss.
    if off <= golden.max_difference:
        return []
    detail = f"golden {index} has a probability off by {off:.6f}, at most {golden.max_difference} is asked"
    return [Miss(name, stage, detail)]


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
    misses = _providers(name, model.providers, model.tower.precision)
    for index in range(len(golden.files)):
        misses += golden_pixels_miss(name, model, golden, index)
    single = np.concatenate([model.forward(image[None]) for image in golden.pixels])
    least = model.tower.golden.min_cosine
    misses += _near(name, "embeddings", single, golden.embeddings, least, saw=saw)
    return misses + _near(name, "batch", model.forward(golden.pixels[:TOGETHER]), single[:TOGETHER], least)


def check_golden_image(
    name: str, model: VisionModel, golden: GoldenImages, index: int, saw: Saw = unseen
) -> list[Miss]:
    """Misses over one golden image of the pack of this name; takes as long as one image."""
    row = model.forward(golden.pixels[index : index + 1])
    misses = golden_pixels_miss(name, model, golden, index)
    reference, least = golden.embeddings[index : index + 1], model.tower.golden.min_cosine
    return misses + _near(name, "embeddings", row, reference, least, [index], saw)


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


def _providers(name: str, found: Sequence[str], precision: Precision) -> list[Miss]:
    asked = providers_of(precision)
    # What another server runs a model on it does not say.
    if not found or tuple(found) == asked:
        return []
    return [Miss(name, "providers", f"runs on {', '.join(found)}, asked for {', '.join(asked)}")]


def _near(
    name: str,
    stage: Stage,
    ours: Floats,
    reference: Floats,
    least: float,
    numbers: Sequence[int] | None = None,
    saw: Saw = unseen,
) -> list[Miss]:
    """`numbers` are what the rows are called, where that is not 0, 1, ..."""
    if ours.shape != reference.shape:
        return [Miss(name, stage, f"embeddings are {ours.shape}, the reference's {reference.shape}")]
    with np.errstate(divide="ignore", invalid="ignore"):
        lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(reference, axis=1)
        cosines = (ours.astype(np.float64) * reference).sum(axis=1) / lengths
    for cosine in cosines.tolist():
        saw(cosine)
    called = range(len(ours)) if numbers is None else numbers
    # Written so that a NaN is a miss.
    return [
        Miss(name, stage, f"golden {called[row]} has cosine {cosines[row]:.6f}, at least {least} is asked")
        for row in np.flatnonzero(~(cosines >= least)).tolist()
    ]
