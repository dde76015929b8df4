"""The parity gate: before a worker is ready, each tower shows that it still means what its reference meant.

Golden vectors, made once with the reference model, are run through the very objects that serve. Digests of graph,
weights and tokenizer need no place here: a tower whose files differ does not open (`packs.layout`, `packs.store`).
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
import PIL
from numpy.typing import NDArray

from router.inference.classifier_model import ClassifierModel
from router.inference.encoders import Encoders
from router.inference.sessions import providers_of
from router.inference.text_model import TextModel
from router.inference.vision_model import VisionModel
from router.packs.files import PackError, inside, read_checked
from router.packs.manifest import ClassifierGolden, Precision, TextTower
from router.packs.store import Pack
from router.request.errors import ImageError

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
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


class GoldenError(Exception):
    """Golden vectors that cannot be used. The message is for the operator."""


@dataclass(frozen=True, slots=True)
class GoldenTexts:
    """A text tower's golden vectors: texts, each one's token ids (t,) int32, and the reference's rows (n, d)."""

    texts: tuple[str, ...] = field(repr=False)
    ids: tuple[NDArray[np.int32], ...] = field(repr=False)
    embeddings: Floats = field(repr=False)


@dataclass(frozen=True, slots=True)
class GoldenImages:
    """A vision tower's golden vectors: image files, what they are resized to (n, h, w, 3) uint8, and rows (n, d)."""

    files: tuple[bytes, ...] = field(repr=False)
    pixels: NDArray[np.uint8] = field(repr=False)
    embeddings: Floats = field(repr=False)


def check_encoders(encoders: Encoders) -> list[Miss]:
    """Every miss of every tower; empty means ready. Blocks for under a second: run it before the loop serves."""
    misses: list[Miss] = []
    if encoders.text is not None:
        misses += _or_miss(encoders.text.source, check_text, encoders.text.model)
    if encoders.vision is not None:
        misses += _or_miss(encoders.vision.source, check_vision, encoders.vision.model)
    return misses


def _or_miss(pack: Pack, check: Callable[[Pack, Model], list[Miss]], model: Model) -> list[Miss]:
    """What the check finds; golden vectors that it stumbles over are a miss as well, and not the end of the worker."""
    try:
        return check(pack, model)
    except Exception as error:
        return [Miss(pack.manifest.name, "golden", f"the golden vectors cannot be run: {type(error).__name__}")]


def check_text(pack: Pack, model: TextModel) -> list[Miss]:
    """Misses of a text tower: token ids must be equal, embeddings near, alone and beside neighbours."""
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
    misses += _near(name, "embeddings", single, golden.embeddings, least)
    short = sorted(range(len(golden.ids)), key=lambda index: len(golden.ids[index]))[:TOGETHER]
    together = model.forward([golden.ids[index] for index in short])
    return misses + _near(name, "batch", together, single[short], least, short)


def check_golden_text(name: str, model: TextModel, golden: GoldenTexts, index: int) -> list[Miss]:
    """Misses over one golden text of the pack of this name; takes as long as one text's forward pass."""
    row = model.forward([golden.ids[index]])
    misses = golden_tokens_miss(name, model, golden, index)
    return misses + _near(
        name, "embeddings", row, golden.embeddings[index : index + 1], model.tower.golden.min_cosine, [index]
    )


def golden_tokens_miss(name: str, model: TextModel, golden: GoldenTexts, index: int) -> list[Miss]:
    """The miss of a golden text whose token ids differ, or nothing."""
    found = model.window(model.tokenise(golden.texts[index]), 0)
    if np.array_equal(found, golden.ids[index]):
        return []
    return [Miss(name, "tokens", f"golden text {index} has other token ids than the reference tokeniser")]


def read_golden_texts(pack: Pack, tower: TextTower) -> GoldenTexts:
    """The tower's golden vectors, digest checked; raises GoldenError."""
    try:
        vectors: dict[str, Any] = json.loads(read_checked(pack.folder, tower.golden.path, tower.golden.sha256))
        texts: list[str] = vectors["texts"]
        ids = [np.array(row, dtype=np.int32) for row in vectors["token_ids"]]
        reference = _shaped(np.array(vectors["embeddings"], dtype=np.float32), len(texts), tower.dimension)
        if len(ids) != len(texts):
            raise ValueError(f"{len(ids)} rows of token ids for {len(texts)} texts")
    except (PackError, ValueError, KeyError, TypeError) as error:
        raise GoldenError(_golden_problem(error)) from error
    return GoldenTexts(tuple(texts), tuple(ids), reference)


def check_classifier(pack: Pack, model: ClassifierModel) -> list[Miss]:
    """Misses of a classifier: token ids must be equal, probabilities near, alone and beside a neighbour."""
    name = pack.manifest.name
    golden = model.tower.golden
    try:
        vectors: dict[str, Any] = json.loads(read_checked(pack.folder, golden.path, golden.sha256))
        ids = [np.array(row, dtype=np.int32) for row in vectors["token_ids"]]
        reference = [np.array(rows, dtype=np.float64) for rows in vectors["probabilities"]]
        triples = list(zip(vectors["texts"], ids, reference, strict=True))
    except (PackError, ValueError, KeyError, TypeError) as error:
        return [Miss(name, "golden", _golden_problem(error))]
    misses = _providers(name, model.providers, model.tower.precision)
    for index, (text, expected, rows) in enumerate(triples):
        if not np.array_equal(model.window(model.tokenise(text), 0), expected):
            misses.append(Miss(name, "tokens", f"golden text {index} has other token ids than the reference tokeniser"))
        misses += _equally_likely(name, "embeddings", index, model.probabilities([expected])[0], rows, golden)
    short = sorted(range(len(ids)), key=lambda index: len(ids[index]))[:TOGETHER]
    together = model.probabilities([ids[index] for index in short])
    for index, found in zip(short, together, strict=True):
        own = found[: len(ids[index])] if model.tower.level == "token" else found
        misses += _equally_likely(name, "batch", index, own, reference[index], golden)
    return misses


def _equally_likely(
    name: str, stage: Stage, index: int, found: Doubles, reference: Doubles, golden: ClassifierGolden
) -> list[Miss]:
    off = float(np.abs(found - reference).max()) if found.shape == reference.shape else np.inf
    # Written so that a NaN is a miss.
    if off <= golden.max_difference:
        return []
    detail = f"golden {index} has a probability off by {off:.6f}, at most {golden.max_difference} is asked"
    return [Miss(name, stage, detail)]


def check_vision(pack: Pack, model: VisionModel) -> list[Miss]:
    """Misses of a vision tower: pixels of the golden image files must be near, then embeddings of the golden pixels.

    The two together hold the whole pipeline; each by itself says which half has moved.
    """
    name = pack.manifest.name
    try:
        golden = read_golden_images(pack, model)
    except GoldenError as error:
        return [Miss(name, "golden", str(error))]
    misses = _providers(name, model.providers, model.tower.precision)
    for index in range(len(golden.files)):
        misses += golden_pixels_miss(name, model, golden, index)
    single = np.concatenate([model.forward(image[None]) for image in golden.pixels])
    least = model.tower.golden.min_cosine
    misses += _near(name, "embeddings", single, golden.embeddings, least)
    return misses + _near(name, "batch", model.forward(golden.pixels[:TOGETHER]), single[:TOGETHER], least)


def check_golden_image(name: str, model: VisionModel, golden: GoldenImages, index: int) -> list[Miss]:
    """Misses over one golden image of the pack of this name; takes as long as one image."""
    row = model.forward(golden.pixels[index : index + 1])
    misses = golden_pixels_miss(name, model, golden, index)
    return misses + _near(
        name, "embeddings", row, golden.embeddings[index : index + 1], model.tower.golden.min_cosine, [index]
    )


def golden_pixels_miss(name: str, model: VisionModel, golden: GoldenImages, index: int) -> list[Miss]:
    """The miss of a golden image whose pixels come out otherwise, or nothing."""
    found = model.preprocess(golden.files[index])
    difference = np.abs(found.astype(np.int16) - golden.pixels[index].astype(np.int16))
    if difference.mean() <= MEAN_PIXEL_TOLERANCE and difference.max() <= MAX_PIXEL_TOLERANCE:
        return []
    detail = f"golden image {index} is off by {difference.mean():.3f} levels on average, {difference.max()} at most"
    cause = f"decoding or resizing is not what it was when the pack was made (this is Pillow {PIL.__version__})"
    return [Miss(name, "pixels", f"{detail}: {cause}")]


def read_golden_images(pack: Pack, model: VisionModel) -> GoldenImages:
    """The tower's golden vectors, digest checked, of the size that the tower makes of them; raises GoldenError."""
    golden = model.tower.golden
    try:
        with np.load(io.BytesIO(read_checked(pack.folder, golden.path, golden.sha256))) as vectors:
            pixels: NDArray[np.uint8] = vectors["pixels"]
            reference = _shaped(vectors["embeddings"], len(golden.images), model.tower.dimension)
        files = tuple(inside(pack.folder, path).read_bytes() for path in golden.images)
        found = {model.preprocess(data).shape for data in files}
        if pixels.dtype != np.uint8 or len(pixels) != len(files) or found != {pixels.shape[1:]}:
            raise ValueError(f"pixels are {pixels.dtype} {pixels.shape}, the manifest's sizes make uint8 {found}")
    except (PackError, ImageError, OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise GoldenError(_golden_problem(error)) from error
    return GoldenImages(files, pixels, reference)


def _golden_problem(error: Exception) -> str:
    return f"the golden vectors cannot be used: {error or type(error).__name__}"


def _shaped(rows: Floats, count: int, dimension: int) -> Floats:
    if rows.shape != (count, dimension) or count == 0:
        raise ValueError(f"embeddings are {rows.shape}, not ({count}, {dimension})")
    return rows


def _providers(name: str, found: Sequence[str], precision: Precision) -> list[Miss]:
    asked = providers_of(precision)
    if tuple(found) == asked:
        return []
    return [Miss(name, "providers", f"runs on {', '.join(found)}, asked for {', '.join(asked)}")]


def _near(
    name: str, stage: Stage, ours: Floats, reference: Floats, least: float, numbers: Sequence[int] | None = None
) -> list[Miss]:
    """`numbers` are what the rows are called, where that is not 0, 1, ..."""
    if ours.shape != reference.shape:
        return [Miss(name, stage, f"embeddings are {ours.shape}, the reference's {reference.shape}")]
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(reference, axis=1)
    cosines = (ours.astype(np.float64) * reference).sum(axis=1) / lengths
    called = range(len(ours)) if numbers is None else numbers
    # Written so that a NaN is a miss.
    return [
        Miss(name, stage, f"golden {called[row]} has cosine {cosines[row]:.6f}, at least {least} is asked")
        for row in np.flatnonzero(~(cosines >= least)).tolist()
    ]
