"""Manifests and pack folders that somebody made to make us stumble: each is an answer that names file and key."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from router.packs.catalogue import read_catalogue
from router.packs.documents import MANIFEST_BYTES
from router.packs.files import PackError, carried_files, faults, read_checked, undigested_images
from router.packs.store import open_pack, read_pack, shipped_folder

MakePack = Callable[..., Path]
NINES = "9" * 5000


def _refused(folder: Path) -> str:
    with pytest.raises(PackError) as caught:
        read_pack(folder)
    message = str(caught.value)
    assert str(folder / "pack.yaml") in message
    assert len(message) < 4000
    return message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("format: 1\nname: " + "[" * 5000 + "]" * 5000, "nested too deep"),
        (f"format: 1\npad: {NINES}", "a number, date or tagged value"),
        (f"format: {NINES}", "a number, date or tagged value"),
        ("format: 0x" + "f" * 5000, "has format no number"),
        ("format: true", "has format no number"),
        ("format: !!timestamp x", "a number, date or tagged value"),
        ("format: !!int ''", "a number, date or tagged value"),
        ("format: 1\nwhen: 2026-99-99", "a number, date or tagged value"),
        ("format: 1\nx: !!python/object:os.system {}", "is not YAML: line 2"),
        ("format: 1\n" + "".join(f"k{i}: 1\n" for i in range(500)), "more"),
        ("a: &a [x,x]\n" + "".join(f"b{i}: &b{i} [*a,*a]\n" for i in range(20)) + "format: *a", "has format no number"),
        ('format: 1\nname: "\\ud800"', "name"),
        ('format: 1\nname: "a\\e[2Jb"', "name: must be printable characters on one line"),
        ("#" * (MANIFEST_BYTES + 1), "more than 4 MiB"),
    ],
)
def test_whatever_stands_in_a_manifest_the_answer_is_a_message(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "pack.yaml").write_text(text)
    assert says in _refused(tmp_path)


def test_a_bomb_of_aliases_under_format_is_not_unfolded_into_the_message(tmp_path: Path) -> None:
    layers = "".join(f"b{i}: &b{i} [{','.join([f'*b{i - 1}'] * 9)}]\n" for i in range(1, 30))
    (tmp_path / "pack.yaml").write_text(f"b0: &b0 [x]\n{layers}format: *b29\n")
    assert "has format no number" in _refused(tmp_path)


def _set(*keys: str | int, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(manifest: dict[str, Any]) -> None:
        place: Any = manifest
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_set("text", "graph", "path", to="a\0b"), "text.graph.path: must be printable"),
        (_set("text", "golden", "path", to="a\x1b[2Jb"), "text.golden.path: must be printable"),
        (_set("text", "pad_id", to=2**31), "text.pad_id"),
        (_set("text", "pad_id", to=-1), "text.pad_id"),
        (_set("text", "max_tokens", to=1 << 40), "text.max_tokens"),
        (_set("text", "dimension", to=1 << 40), "text.dimension"),
        (_set("text", "golden", "min_cosine", to=1.5), "text.golden.min_cosine"),
        (_set("text", "golden", "min_cosine", to=0), "text.golden.min_cosine"),
        (_set("text", "matryoshka", to=[4]), "text: matryoshka: each must be less than the dimension, 4"),
        (_set("text", "matryoshka", to=[2, 2]), "text: matryoshka: each may stand once"),
        (_set("text", "matryoshka", to=[2, 3, 1]), "text: matryoshka: each may stand once, in falling or rising"),
        (_set("text", "matryoshka", to=[0]), "text.matryoshka.0"),
        (_set("text", "weights", 0, "source", "distribution", to=""), "text.weights.0.source.distribution"),
        (_set("text", to=None), "one of `text`, `vision` and `classifier` is needed"),
        (_set("space", to=""), "`space` is needed"),
        (_set("name", to=""), "name"),
    ],
)
def test_a_key_out_of_range_is_named(
    tmp_path: Path, make_pack: MakePack, change: Callable[[dict[str, Any]], None], says: str
) -> None:
    assert says in _refused(make_pack(tmp_path / "pack", change))


@pytest.mark.parametrize("lengths", [[], [1], [3, 2, 1], [1, 2, 3]])
def test_matryoshka_lengths_in_either_order_hold(tmp_path: Path, make_pack: MakePack, lengths: list[int]) -> None:
    pack = read_pack(make_pack(tmp_path / "pack", _set("text", "matryoshka", to=lengths)))
    assert pack.manifest.text is not None
    assert list(pack.manifest.text.matryoshka) == lengths


PARITY = {"reference": "x", "inputs": 8, "measure": "cosine", "worst": 0.999, "mean": 0.9995, "gate": 0.998}


@pytest.mark.parametrize(
    ("parity", "says"),
    [
        (
            {"measure": "probability difference", "worst": 0.001, "mean": 0.0},
            "a cosine is what this part is measured by",
        ),
        ({"gate": 1.5}, "no figures that a cosine can have"),
        ({"mean": 0.9}, "no figures that a cosine can have"),
        ({"worst": 0.9}, "worst misses the gate, and drift_allowed is not set"),
    ],
)
def test_figures_of_parity_that_contradict_each_other_are_refused(
    tmp_path: Path, make_pack: MakePack, parity: dict[str, Any], says: str
) -> None:
    assert says in _refused(make_pack(tmp_path / "pack", _set("text", "parity", to={**PARITY, **parity})))


@pytest.mark.parametrize("parity", [{}, {"worst": 0.9, "drift_allowed": True}, {"worst": 1.0, "mean": 1.0000001}])
def test_figures_of_parity_that_can_be_hold(tmp_path: Path, make_pack: MakePack, parity: dict[str, Any]) -> None:
    read_pack(make_pack(tmp_path / "pack", _set("text", "parity", to={**PARITY, **parity})))


def _vision(tmp_path: Path, **change: Any) -> Path:
    manifest = yaml.safe_load((shipped_folder() / "starter-vision" / "pack.yaml").read_text())
    manifest["vision"].update(change)
    (tmp_path / "pack.yaml").write_text(yaml.safe_dump(manifest))
    return tmp_path


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"std": [1.0, 0.0, 1.0]}, "vision.std.1"),
        ({"rescale": 0}, "vision.rescale"),
        ({"patches": {"patch": 16, "max_patches": 1 << 40}}, "vision.patches.max_patches"),
        ({"matryoshka": [384]}, "less than the dimension, 384"),
    ],
)
def test_an_image_tower_that_can_give_no_numbers_is_refused(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    assert says in _refused(_vision(tmp_path, **change))


def test_two_towers_of_one_pack_have_one_dimension(tmp_path: Path, make_pack: MakePack) -> None:
    vision = yaml.safe_load((shipped_folder() / "starter-vision" / "pack.yaml").read_text())["vision"]
    folder = make_pack(tmp_path / "pack", _set("vision", to=vision))
    assert "text.dimension is 4 and vision.dimension 384: not one space" in _refused(folder)


def test_links_in_a_loop_are_named(pack_folder: Path) -> None:
    (pack_folder / "graph.onnx").unlink()
    (pack_folder / "graph.onnx").symlink_to("graph.onnx")
    assert "'graph.onnx'" in _refused(pack_folder)


@pytest.mark.parametrize("place", ["graph.onnx", "golden/text.json"])
def test_a_pipe_in_a_files_place_is_named_and_nobody_waits_for_it(pack_folder: Path, place: str) -> None:
    (pack_folder / place).unlink()
    os.mkfifo(pack_folder / place)
    with pytest.raises(PackError, match=r"is damaged: .* cannot be read: it is no regular file"):
        open_pack(str(pack_folder), "text", pack_folder)


def test_a_pipe_in_the_manifests_place_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pack.yaml")
    assert "it is no regular file" in _refused(tmp_path)


@pytest.mark.parametrize("name", ["a\0b/c", "x" * 5000, "./" + "x" * 5000, "~nobody-of-this-name/pack", "a\0b"])
def test_a_name_that_no_folder_can_have_finds_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(PackError, match=r"no pack at|no text pack is named"):
        open_pack(name, "text", tmp_path)


def test_the_shipped_vision_pack_names_a_digest_for_every_golden_image() -> None:
    pack = read_pack(shipped_folder() / "starter-vision")
    assert undigested_images(pack.manifest) == ()
    images = [file for file in carried_files(pack.manifest) if file.path.endswith((".png", ".jpg"))]
    assert len(images) == 6
    assert faults(pack.folder, images) == []


def test_a_golden_image_without_a_digest_is_read_and_counted(tmp_path: Path) -> None:
    golden = yaml.safe_load((shipped_folder() / "starter-vision" / "pack.yaml").read_text())["vision"]["golden"]
    first, *rest = golden["images"]
    folder = _vision(tmp_path, golden={**golden, "images": [first["path"], *rest]})
    manifest = read_pack(folder).manifest
    assert undigested_images(manifest) == ("golden/000.png",)
    assert "golden/000.png" not in {file.path for file in carried_files(manifest)}


def test_bytes_without_a_digest_are_read_as_they_are_and_others_only_as_named(pack_folder: Path) -> None:
    assert read_checked(pack_folder, "graph.onnx", None) == b"graph"
    with pytest.raises(PackError, match=r"graph\.onnx has sha256 .*, the manifest says 000"):
        read_checked(pack_folder, "graph.onnx", "0" * 64)


def test_a_catalogue_nested_too_deep_is_a_message(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.yaml"
    path.write_text("[" * 5000)
    with pytest.raises(PackError, match="nested too deep"):
        read_catalogue(path)
