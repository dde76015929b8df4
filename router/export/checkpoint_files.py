"""A checkpoint's files as they lie: JSON, the headers of its weights, and what must be there at all.

Every message names the file and what to do about it. It loads no weights and knows no kinds of models.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from router.export.errors import ExportError

AGAIN = "fetch the checkpoint again"
_LARGE_FILE_POINTER = b"version https://git-lfs"
# The format's own limit.
_LONGEST_HEADER = 100_000_000
_FLOATING = frozenset({"F64", "F32", "F16", "BF16"})
# Narrow numbers mean nothing without the scales beside them; wide integers are positions and counters.
_NARROW = frozenset({"I8", "U8", "I4", "U4", "F4", "F8_E4M3", "F8_E5M2", "F8_E8M0"})
_TOKENIZERS = ("tokenizer.json", "spiece.model", "spm.model", "vocab.txt")


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """What a header says of a tensor; `dtype` as safetensors spells it."""

    file: str
    dtype: str
    shape: tuple[int, ...]


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a checkpoint's file; raises ExportError, for a key written twice as well."""
    value = read_json_value(path)
    if not isinstance(value, dict):
        raise ExportError(f"{path} is not a JSON object; {AGAIN}")
    return value


def read_json_if_there(path: Path) -> dict[str, Any]:
    """The same, empty where there is no such file."""
    return read_json(path) if path.is_file() else {}


def read_json_value(path: Path) -> Any:
    """Any JSON value from a checkpoint's file; raises ExportError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ExportError(f"{path} cannot be read: {error.strerror}; {AGAIN}, or put the file there") from error
    _no_pointer(path, data)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            twice = sorted({key for key, _ in pairs if sum(key == other for other, _ in pairs) > 1})
            raise ExportError(f"{path} has {', '.join(map(repr, twice))} twice in one object; remove the wrong one")
        return value

    try:
        return json.loads(data, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        where = f": {error.msg} in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise ExportError(f"{path} is not JSON{where}; {AGAIN}") from error


def weight_files(folder: Path) -> list[Path]:
    """The checkpoint's weights: safetensors, all shards, else torch's own files; raises ExportError."""
    for single, index in (
        ("model.safetensors", "model.safetensors.index.json"),
        ("pytorch_model.bin", "pytorch_model.bin.index.json"),
        ("model.pt", ""),
    ):
        if index and (folder / index).is_file():
            return _shards(folder, folder / index)
        if (folder / single).is_file():
            return [folder / single]
    raise ExportError(
        f"{folder} has no weights: neither model.safetensors, whole or in shards, nor pytorch_model.bin; {AGAIN}"
    )


def _shards(folder: Path, index: Path) -> list[Path]:
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
        raise ExportError(f"{index} has no weight_map that gives each tensor's file; {AGAIN}")
    shards = sorted(set(places.values()))
    strangers = [shard for shard in shards if "/" in shard or "\\" in shard]
    if strangers:
        raise ExportError(f"{index} names shards outside of its folder: {', '.join(strangers)}")
    missing = [shard for shard in shards if not (folder / shard).is_file()]
    if missing or not shards:
        raise ExportError(f"{index} names shards that are not there: {', '.join(missing) or 'none'}; {AGAIN}")
    return [folder / shard for shard in shards]


def read_tensors(folder: Path) -> dict[str, TensorFacts]:
    """Every tensor of the safetensors files by its name, from their headers; none for torch's own files.

    Raises ExportError for a file that is cut short, is something else, or holds weights that are quantised already.
    """
    found: dict[str, TensorFacts] = {}
    for path in weight_files(folder):
        if path.suffix == ".safetensors":
            found |= _tensors(path)
    narrow = sorted(name for name, facts in found.items() if facts.dtype in _NARROW)
    if narrow:
        facts = found[narrow[0]]
        raise ExportError(
            f"{folder / facts.file}: {narrow[0]} is {facts.dtype}; this checkpoint is quantised already, and its "
            "numbers mean nothing by themselves. Take the one that it was made from, and --precision int8"
        )
    if found and not any(facts.dtype in _FLOATING for facts in found.values()):
        raise ExportError(f"{folder} holds no floating-point weights; {AGAIN}")
    return found


def _tensors(path: Path) -> dict[str, TensorFacts]:
    there = path.stat().st_size
    try:
        with path.open("rb") as file:
            start = file.read(8)
            _no_pointer(path, start + file.read(len(_LARGE_FILE_POINTER)))
            file.seek(8)
            size = int.from_bytes(start, "little")
            if len(start) < 8 or size > _LONGEST_HEADER:
                raise ExportError(f"{path} is not a safetensors file, its {there} bytes do not begin as one; {AGAIN}")
            if 8 + size > there:
                raise ExportError(f"{path} is cut short: {there} bytes, its header alone has {8 + size}; {AGAIN}")
            header = json.loads(file.read(size))
    except OSError as error:
        raise ExportError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ExportError(f"{path} is not a safetensors file: its header is not JSON; {AGAIN}") from error
    try:
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        facts = {name: _facts(path, entry) for name, entry in entries.items()}
        end = 8 + size + max((int(entry["data_offsets"][1]) for entry in entries.values()), default=0)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ExportError(f"{path} is not a safetensors file: its header is none; {AGAIN}") from error
    if end != there:
        what = "is cut short" if there < end else "has bytes too many"
        raise ExportError(f"{path} {what}: {there} bytes, its header says {end}; {AGAIN}")
    return facts


def _facts(path: Path, entry: dict[str, Any]) -> TensorFacts:
    return TensorFacts(path.name, str(entry["dtype"]), tuple(int(each) for each in entry["shape"]))


def require_tokenizer(folder: Path) -> None:
    """Raises ExportError where no tokenizer lies beside the weights, or its configuration is none.

    Without its files transformers makes an empty tokenizer up, and a pack would agree with it on nonsense.
    """
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        raise ExportError(f"{folder} has no tokenizer: none of {', '.join(_TOKENIZERS)} is there; {AGAIN}")
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        read_json_if_there(folder / name)


def finite_numbers(values: Iterable[Any]) -> tuple[float, ...]:
    """The values as floats; raises ValueError for what is no number or not finite."""
    numbers = tuple(values)
    if any(isinstance(each, bool) or not isinstance(each, (int, float)) for each in numbers):
        raise ValueError("no numbers")
    try:
        floats = tuple(float(each) for each in numbers)
    except OverflowError as error:
        raise ValueError("too large") from error
    if not all(math.isfinite(each) for each in floats):
        raise ValueError("not finite")
    return floats


def _no_pointer(path: Path, data: bytes) -> None:
    if data.startswith(_LARGE_FILE_POINTER):
        raise ExportError(f"{path} is a pointer of Git LFS, not the file itself; run `git lfs pull` in its folder")
