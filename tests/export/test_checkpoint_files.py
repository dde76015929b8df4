from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from router.export.checkpoint_files import (
    TensorFacts,
    finite_numbers,
    read_json,
    read_json_if_there,
    read_tensors,
    require_tokenizer,
    weight_files,
)
from router.export.errors import ExportError

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 100\n"
DEEP = b"[" * 100_000


def safetensors(entries: dict[str, Any], data: bytes) -> bytes:
    header = json.dumps(entries).encode()
    return len(header).to_bytes(8, "little") + header + data


def tensor(dtype: str = "F32", shape: tuple[int, ...] = (2, 1), start: int = 0, end: int = 8) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}


WHOLE = safetensors({"__metadata__": {"format": "pt"}, "a": tensor()}, b"\0" * 8)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    path.write_bytes(WHOLE)
    return path


def test_a_header_tells_names_kinds_and_shapes(weights: Path) -> None:
    assert read_tensors(weights.parent) == {"a": TensorFacts("model.safetensors", "F32", (2, 1))}


def test_every_file_that_is_cut_short_is_named(weights: Path) -> None:
    for length in range(len(WHOLE)):
        weights.write_bytes(WHOLE[:length])
        with pytest.raises(ExportError, match=r"model\.safetensors is (cut short|not a safetensors file)"):
            read_tensors(weights.parent)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "its 0 bytes do not begin as one"),
        (b"<html>" + b" " * 99, "do not begin as one"),
        (POINTER, "run `git lfs pull`"),
        (WHOLE + b"x", "has bytes too many"),
        ((len(DEEP)).to_bytes(8, "little") + DEEP, "its header is not JSON"),
        ((2).to_bytes(8, "little") + b"[]", "its header is none"),
        ((1).to_bytes(8, "little") + b"5", "its header is none"),
        (safetensors({"a": 5}, b""), "its header is none"),
        (safetensors({"a": {"dtype": "F32", "shape": 5, "data_offsets": [0, 0]}}, b""), "its header is none"),
        (safetensors({"a": {"dtype": "F32", "shape": [1], "data_offsets": []}}, b""), "its header is none"),
        (safetensors({"a": tensor("I8", (8,))}, b"\0" * 8), "a is I8; this checkpoint is quantised already"),
        (safetensors({"a": tensor("I64", (1,))}, b"\0" * 8), "no floating-point weights"),
    ],
)
def test_what_is_no_file_of_weights_is_refused(weights: Path, data: bytes, message: str) -> None:
    weights.write_bytes(data)
    with pytest.raises(ExportError, match=message):
        read_tensors(weights.parent)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.binary(max_size=200), st.integers(0, len(WHOLE)))
def test_bytes_of_any_kind_are_read_or_refused_and_never_raise_anything_else(
    weights: Path, noise: bytes, at: int
) -> None:
    weights.write_bytes(WHOLE[:at] + noise + WHOLE[at:])
    try:
        read_tensors(weights.parent)
    except ExportError as error:
        assert "model.safetensors" in str(error) or "no floating-point weights" in str(error)


def test_integers_beside_real_weights_are_positions(weights: Path) -> None:
    ids = tensor("I64", (1,), 8, 16)
    weights.write_bytes(safetensors({"a": tensor(), "embeddings.position_ids": ids}, b"\0" * 16))
    assert set(read_tensors(weights.parent)) == {"a", "embeddings.position_ids"}


def test_weights_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="has no weights"):
        weight_files(tmp_path)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({"weight_map": {"a": "model-1.safetensors"}}, r"shards that are not there: model-1\.safetensors"),
        ({"weight_map": {}}, "shards that are not there: none"),
        ({"weight_map": {"a": "../../etc/model.safetensors"}}, r"outside of its folder: \.\./\.\./etc"),
        ({}, "has no weight_map"),
        ({"weight_map": []}, "has no weight_map"),
        ({"weight_map": {"a": ["b"]}}, "has no weight_map"),
        ({"weight_map": {"a": 5, "b": "c"}}, "has no weight_map"),
    ],
)
def test_an_index_that_leads_nowhere_is_named(tmp_path: Path, index: Any, message: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ExportError, match=message):
        weight_files(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", r"config\.json is not JSON: .* in line 1; fetch the checkpoint again"),
        (b"", "is not JSON"),
        (b'{"a": "\xff"}', "is not JSON"),
        (DEEP, "is not JSON"),
        (b"[1]", "is not a JSON object"),
        (b"null", "is not a JSON object"),
        (POINTER, "run `git lfs pull`"),
        (b'{"id2label": {"0": "A", "0": "B"}}', "has '0' twice in one object"),
    ],
)
def test_json_that_is_none_is_named(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(data)
    with pytest.raises(ExportError, match=message):
        read_json(path)


def test_a_file_that_is_not_there_is_an_error_or_empty_as_asked(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="put the file there"):
        read_json(tmp_path / "config.json")
    assert read_json_if_there(tmp_path / "config.json") == {}


def test_a_checkpoint_without_tokenizer_is_refused_before_one_is_made_up(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").mkdir()
    with pytest.raises(ExportError, match=r"has no tokenizer: none of tokenizer\.json, spiece\.model"):
        require_tokenizer(tmp_path)
    (tmp_path / "vocab.txt").write_text("[PAD]")
    require_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("[]")
    with pytest.raises(ExportError, match=r"tokenizer_config\.json is not a JSON object"):
        require_tokenizer(tmp_path)


def test_only_finite_numbers_are_numbers() -> None:
    assert finite_numbers([1, 0.5]) == (1.0, 0.5)
    for value in (True, "1", None, [1], float("nan"), float("inf"), 10**400):
        with pytest.raises(ValueError, match=r"no numbers|not finite|too large"):
            finite_numbers([value])
