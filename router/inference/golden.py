"""A pack's golden vectors, read and checked for shape before anything is run on them.

What they are for is `gate.py`'s business. No image is decoded and no text is tokenised here.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Annotated

import msgspec
import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from router.packs.documents import json_value
from router.packs.files import PackError, inside, read_checked
from router.packs.heads import Head, Heads, HeadsGolden
from router.packs.manifest import ClassifierGolden, TextClassifier, TextGolden, TextTower, VisionTower
from router.packs.store import Pack

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
_Ids = list[list[Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]]]

# A release of numpy may write a longer header; the arrays of a pack need a hundred bytes.
_HEADER_BYTES = 10_000
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class GoldenError(Exception):
    """Golden vectors that cannot be used. The message is for the operator."""


@dataclass(frozen=True, slots=True)
class GoldenTexts:
    """A text tower's golden vectors: texts, each one's token ids (t,) int32, and the reference's rows (n, d)."""

    texts: tuple[str, ...] = field(repr=False)
    ids: tuple[NDArray[np.int32], ...] = field(repr=False)
    embeddings: Floats = field(repr=False)


@dataclass(frozen=True, slots=True)
class GoldenClasses:
    """A classifier's golden vectors: texts, token ids (t,) int32, and probabilities, (labels,) a text or (t, labels)
    where each token has a label."""

    texts: tuple[str, ...] = field(repr=False)
    ids: tuple[NDArray[np.int32], ...] = field(repr=False)
    probabilities: tuple[Doubles, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class GoldenHeads:
    """Golden vectors of a pack's heads: texts, token ids (t,) int32, and of each head a row a text: probabilities
    (labels,), or (t, labels) where each token has a label."""

    texts: tuple[str, ...] = field(repr=False)
    ids: tuple[NDArray[np.int32], ...] = field(repr=False)
    probabilities: Mapping[str, tuple[Doubles, ...]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class GoldenImages:
    """A vision tower's golden vectors: image files, what they are resized to (n, h, w, 3) uint8, and rows (n, d).

    `names` are the files' paths in the pack.
    """

    names: tuple[str, ...]
    files: tuple[bytes, ...] = field(repr=False)
    pixels: NDArray[np.uint8] = field(repr=False)
    embeddings: Floats = field(repr=False)


class _Texts(msgspec.Struct):
    texts: list[str]
    token_ids: _Ids


class _Embedded(_Texts):
    embeddings: list[list[float]]


class _OfTexts(_Texts):
    probabilities: list[list[float]]


class _OfTokens(_Texts):
    probabilities: list[list[list[float]]]


class _OfHeads(_Texts):
    probabilities: dict[str, list[list[float | list[float]]]]


def read_golden_texts(pack: Pack, tower: TextTower) -> GoldenTexts:
    """The tower's golden vectors, digest checked; raises GoldenError."""
    golden = tower.golden
    try:
        vectors = json_value(_bytes(pack, golden), inside(pack.folder, golden.path), _Embedded)
        ids = _token_ids(vectors, tower.max_tokens)
        _one_each(vectors.texts, vectors.embeddings, "embeddings")
        for index, row in enumerate(vectors.embeddings):
            if len(row) != tower.dimension:
                raise ValueError(f"embeddings[{index}] has {len(row)} numbers, the manifest says {tower.dimension}")
        rows = _finite(vectors.embeddings)
    except (PackError, ValueError) as error:
        raise GoldenError(_problem(golden.path, error)) from error
    return GoldenTexts(tuple(vectors.texts), ids, rows)


def read_golden_classes(pack: Pack, tower: TextClassifier) -> GoldenClasses:
    """The classifier's golden vectors, digest checked; raises GoldenError."""
    golden = tower.golden
    kind: type[_OfTexts] | type[_OfTokens] = _OfTokens if tower.level == "token" else _OfTexts
    try:
        vectors = json_value(_bytes(pack, golden), inside(pack.folder, golden.path), kind)
        ids = _token_ids(vectors, tower.max_tokens)
        rows = _probabilities("probabilities", vectors.probabilities, ids, tower)
    except (PackError, ValueError) as error:
        raise GoldenError(_problem(golden.path, error)) from error
    return GoldenClasses(tuple(vectors.texts), ids, rows)


def read_golden_heads(pack: Pack, heads: Heads, most_tokens: int) -> GoldenHeads:
    """The heads' golden vectors, digest checked, all heads and no others; raises GoldenError."""
    golden = heads.golden
    try:
        vectors = json_value(_bytes(pack, golden), inside(pack.folder, golden.path), _OfHeads)
        ids = _token_ids(vectors, most_tokens)
        names = {head.name for head in heads.heads}
        if vectors.probabilities.keys() != names:
            raise ValueError(f"probabilities are of {sorted(vectors.probabilities)}, the heads are {sorted(names)}")
        rows = {
            head.name: _probabilities(f"probabilities.{head.name}", vectors.probabilities[head.name], ids, head)
            for head in heads.heads
        }
    except (PackError, ValueError) as error:
        raise GoldenError(_problem(golden.path, error)) from error
    return GoldenHeads(tuple(vectors.texts), ids, rows)


def read_golden_images(pack: Pack, tower: VisionTower) -> GoldenImages:
    """The tower's golden vectors, digests checked, of a size that the tower can make; raises GoldenError."""
    golden = tower.golden
    try:
        data = read_checked(pack.folder, golden.path, golden.sha256)
        pixels, rows = _arrays(data, tower)
    except (PackError, ValueError) as error:
        raise GoldenError(_problem(golden.path, error)) from error
    except Exception as error:
        # zipfile, zlib and numpy raise a dozen unrelated types for a file that is damaged or was never an npz.
        detail = f"it is no npz file that can be read ({type(error).__name__}); restore the pack, or export it anew"
        raise GoldenError(f"the golden vectors cannot be used: {golden.path}: {detail}") from error
    try:
        files = tuple(read_checked(pack.folder, image.path, image.sha256) for image in golden.images)
    except PackError as error:
        raise GoldenError(f"a golden image cannot be used: {error}") from error
    return GoldenImages(tuple(image.path for image in golden.images), files, pixels, rows)


def _arrays(data: bytes, tower: VisionTower) -> tuple[NDArray[np.uint8], Floats]:
    """Shapes and types are read first: a header may claim any size, and deflate makes much of little."""
    count = len(tower.golden.images)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        with _member(archive, "pixels") as file:
            shape, dtype = _header(file, "pixels")
            _require_pixels(shape, dtype, count, tower)
        with _member(archive, "embeddings") as file:
            shape, dtype = _header(file, "embeddings")
            if shape != (count, tower.dimension) or dtype != np.float32:
                raise ValueError(f"embeddings are {dtype} {shape}, not float32 {(count, tower.dimension)}")
        with _member(archive, "pixels") as file:
            pixels: NDArray[np.uint8] = npy.read_array(file, allow_pickle=False)
        with _member(archive, "embeddings") as file:
            rows: Floats = npy.read_array(file, allow_pickle=False)
    return pixels, _finite(rows)


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    try:
        return archive.open(f"{name}.npy")
    except KeyError as error:
        raise ValueError(f"it has no array {name!r}") from error


def _header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    reader = _READERS.get(npy.read_magic(file))
    if reader is None:
        raise ValueError(f"{name} is of a version of npy that no exporter writes")
    shape, _, dtype = reader(file, max_header_size=_HEADER_BYTES)
    return shape, dtype


def _require_pixels(shape: tuple[int, ...], dtype: np.dtype[np.generic], count: int, tower: VisionTower) -> None:
    if dtype != np.uint8 or len(shape) != 4 or shape[0] != count or shape[3] != 3:
        raise ValueError(f"pixels are {dtype} {shape}, not uint8 ({count}, height, width, 3)")
    height, width = shape[1:3]
    grid = tower.patches
    if grid is None and (height, width) != tower.size:
        raise ValueError(f"pixels are {height} x {width}, the manifest's size is {tower.size[0]} x {tower.size[1]}")
    if grid is not None and (
        height % grid.patch
        or width % grid.patch
        or not 0 < (height // grid.patch) * (width // grid.patch) <= grid.max_patches
    ):
        raise ValueError(f"pixels are {height} x {width}: not up to {grid.max_patches} squares of {grid.patch} pixels")


def _probabilities(
    key: str, given: Sequence[object], ids: Sequence[NDArray[np.int32]], part: TextClassifier | Head
) -> tuple[Doubles, ...]:
    """A row a text, of the shape that this classifier or head gives; ValueError for another."""
    _one_each(ids, given, key)
    rows = []
    for index, row in enumerate(given):
        try:
            found = np.array(row, dtype=np.float64)
        except ValueError as error:  # rows of several lengths
            raise ValueError(f"{key}[{index}] is no table: its rows have several lengths") from error
        wanted = (len(ids[index]), len(part.labels)) if part.level == "token" else (len(part.labels),)
        if found.shape != wanted:
            raise ValueError(f"{key}[{index}] is {found.shape}, not {wanted}")
        rows.append(found)
    return tuple(rows)


def _bytes(pack: Pack, golden: TextGolden | ClassifierGolden | HeadsGolden) -> bytes:
    return read_checked(pack.folder, golden.path, golden.sha256)


def _token_ids(vectors: _Texts, most: int) -> tuple[NDArray[np.int32], ...]:
    if not vectors.texts:
        raise ValueError("texts is empty, and nothing can be held against it")
    _one_each(vectors.texts, vectors.token_ids, "token_ids")
    for index, row in enumerate(vectors.token_ids):
        if not 0 < len(row) <= most:
            raise ValueError(f"token_ids[{index}] has {len(row)} ids, not 1 to max_tokens, which is {most}")
    return tuple(np.array(row, dtype=np.int32) for row in vectors.token_ids)


def _one_each(texts: Sequence[object], rows: Sequence[object], key: str) -> None:
    if len(rows) != len(texts):
        raise ValueError(f"{key} has {len(rows)} rows for {len(texts)} texts")


def _finite(rows: list[list[float]] | Floats) -> Floats:
    with np.errstate(over="ignore"):
        found: Floats = np.asarray(rows, dtype=np.float32)
    if not np.isfinite(found).all():
        raise ValueError("embeddings hold a number that is not finite")
    return found


def _problem(path: str, error: Exception) -> str:
    # What `packs` says names the file already.
    detail = str(error) if isinstance(error, PackError) else f"{path}: {error}"
    return f"the golden vectors cannot be used: {detail}"
