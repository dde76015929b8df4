"""The manifest's `heads`: what may stand there, and that its files are part of the pack."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from router.packs.files import PackError, carried_files, named_paths
from router.packs.store import open_pack, read_pack

MakePack = Callable[..., Path]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


HARM = {"name": "harm", "level": "text", "labels": ["harm"], "activation": "sigmoid", "threshold": 0.8}
NAMES = {"name": "pii", "level": "token", "labels": ["O", "PERSON"], "activation": "softmax", "threshold": 0.7}
GRAPH, VECTORS = b"heads", b"[]"


def with_heads(folder: Path, make: MakePack, **changes: Any) -> Path:
    def add(manifest: dict[str, Any]) -> None:
        manifest["text"]["layers"] = ["hidden_0", "hidden_6"]
        manifest["heads"] = {
            "graph": {"path": "heads.onnx", "sha256": sha256(GRAPH)},
            "shapes": 1,
            "golden": {"path": "golden/heads.json", "sha256": sha256(VECTORS), "max_difference": 0.02},
            "heads": [HARM, NAMES],
            **changes,
        }

    make(folder, add)
    (folder / "heads.onnx").write_bytes(GRAPH)
    (folder / "golden/heads.json").write_bytes(VECTORS)
    return folder


def test_heads_are_read_with_what_is_usual(tmp_path: Path, make_pack: MakePack) -> None:
    heads = read_pack(with_heads(tmp_path, make_pack)).manifest.heads
    assert heads is not None
    harm = heads.named("harm")
    assert harm is not None
    assert (harm.scale, harm.bias, harm.windows, harm.threshold) == (1.0, 0.0, "max", 0.8)
    assert (heads.shapes, heads.patterns, heads.named("other")) == (1, None, None)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"heads": []}, "heads.heads"),
        ({"heads": [HARM, HARM]}, "each name may stand once"),
        ({"heads": [{**HARM, "name": "Harm head"}]}, "heads.heads.0.name"),
        ({"heads": [{**HARM, "labels": ["harm", "harm"]}]}, "each may stand once"),
        ({"heads": [{**HARM, "activation": "softmax"}]}, "a softmax needs two labels or more"),
        ({"heads": [{**NAMES, "scale": 2.0}]}, "scale and bias are a sigmoid's"),
        ({"heads": [{**HARM, "temperature": 2.0}]}, "temperature is a softmax's"),
        ({"heads": [{**HARM, "scale": -1.0}]}, "heads.heads.0.scale"),
        ({"heads": [{**HARM, "threshold": 1.5}]}, "heads.heads.0.threshold"),
        ({"heads": [{**HARM, "bias": float("nan")}]}, "heads.heads.0.bias"),
        ({"heads": [{**NAMES, "labels": ["PERSON", "PLACE"]}]}, "one has to be 'O'"),
        ({"shapes": 0}, "heads.shapes"),
        ({"weights": []}, "heads.weights"),
        ({"graph": {"path": "../heads.onnx", "sha256": sha256(GRAPH)}}, "leads out of the pack"),
        ({"golden": {"path": "/etc/hosts", "sha256": sha256(VECTORS), "max_difference": 0.1}}, "leads out of the pack"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_key(
    tmp_path: Path, make_pack: MakePack, change: dict[str, Any], says: str
) -> None:
    with pytest.raises(PackError, match=r"pack\.yaml") as caught:
        read_pack(with_heads(tmp_path, make_pack, **change))
    assert says in str(caught.value)


@pytest.mark.parametrize("layers", [["a", "a"], ["text_embeds"]])
def test_a_layer_stands_once_and_is_no_embedding(tmp_path: Path, make_pack: MakePack, layers: list[str]) -> None:
    make_pack(tmp_path, lambda manifest: manifest["text"].update(layers=layers))
    with pytest.raises(PackError, match="layers: each may stand once"):
        read_pack(tmp_path)


def test_heads_without_a_tower_that_takes_a_mask_are_refused(tmp_path: Path, make_pack: MakePack) -> None:
    with_heads(tmp_path, make_pack)
    path = tmp_path / "pack.yaml"
    path.write_text(path.read_text().replace("pad_id: 0", "pad_id: 0\n  fixed_length: true"))
    with pytest.raises(PackError, match="heads: they read a text tower"):
        read_pack(tmp_path)


@pytest.mark.parametrize("damaged", ["heads.onnx", "golden/heads.json"])
def test_a_damaged_file_of_the_heads_is_named(tmp_path: Path, make_pack: MakePack, site: Path, damaged: str) -> None:
    folder = with_heads(tmp_path / "pack", make_pack)
    assert open_pack("./pack", "text", tmp_path).manifest.heads is not None
    (folder / damaged).write_bytes(b"other")
    with pytest.raises(PackError, match=f"damaged: .*{damaged} has sha256"):
        open_pack("./pack", "text", tmp_path)


def test_where_another_server_has_the_tower_the_heads_need_not_lie_here(
    tmp_path: Path, make_pack: MakePack, site: Path
) -> None:
    folder = with_heads(tmp_path / "pack", make_pack)
    (folder / "heads.onnx").unlink()
    pack = open_pack("./pack", "text", tmp_path, elsewhere=("text",))
    assert "heads.onnx" not in {file.path for file in carried_files(pack.manifest, ("text",))}
    assert {"heads.onnx", "golden/heads.json"} <= set(named_paths(pack.manifest))
