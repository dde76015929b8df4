from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from router.packs.files import PackError
from router.packs.store import list_shipped, open_pack, read_pack, shipped_folder

Change = Callable[[dict[str, Any]], None]
MakePack = Callable[..., Path]


def test_a_family_name_resolves_to_the_shipped_pack_of_the_tower(tmp_path: Path) -> None:
    assert open_pack("starter", "text", tmp_path) == open_pack("starter-text", "text", tmp_path)
    assert "starter-text" in list_shipped()


def test_a_path_is_relative_to_the_policys_folder(pack_folder: Path) -> None:
    by_path = open_pack("./tiny", "text", pack_folder.parent)
    assert by_path.manifest.name == "tiny"
    assert open_pack("tiny", "text", pack_folder.parent).digest == by_path.digest
    assert open_pack(str(pack_folder), "text", Path("/nowhere")).digest == by_path.digest


def test_the_digest_changes_with_any_byte_of_the_manifest(pack_folder: Path) -> None:
    before = read_pack(pack_folder)
    with (pack_folder / "pack.yaml").open("a") as manifest:
        manifest.write("# another day\n")
    after = read_pack(pack_folder)
    assert after.manifest == before.manifest
    assert after.digest != before.digest


@pytest.mark.parametrize(
    ("name", "tower", "says"),
    [
        ("startr", "text", "did you mean 'starter'?"),
        ("starter-txt", "text", "did you mean 'starter-text'?"),
        ("zzz", "text", "known are"),
        ("", "text", "no text pack is named ''"),
        ("starter-text", "vision", "has no vision tower"),
        ("./none", "text", "there is no such folder"),
        ("../none", "text", "there is no such folder"),
    ],
)
def test_a_name_that_finds_nothing_says_what_to_do(tmp_path: Path, name: str, tower: Any, says: str) -> None:
    with pytest.raises(PackError) as caught:
        open_pack(name, tower, tmp_path)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("yaml_text", "says"),
    [
        ("format: [1", "is not YAML: line 1, column"),
        ("\x00", "is not YAML"),
        ("- 1", "is not a manifest: a mapping"),
        ("", "is not a manifest: a mapping"),
        ("format: 2", "has format 2; this version reads format 1"),
        ("name: x", "has format None"),
        ("format: 1\nname: x\nlicense: MIT", "license: Extra inputs are not permitted"),
    ],
)
def test_a_manifest_that_does_not_hold_is_refused_with_its_place(tmp_path: Path, yaml_text: str, says: str) -> None:
    (tmp_path / "pack.yaml").write_text(yaml_text)
    with pytest.raises(PackError) as caught:
        read_pack(tmp_path)
    assert says in str(caught.value)
    assert str(tmp_path / "pack.yaml") in str(caught.value)


def test_a_folder_without_a_manifest_is_no_pack(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="a pack is a folder with"):
        open_pack(f"{tmp_path}/", "text", tmp_path)


def test_every_damaged_file_is_named(pack_folder: Path) -> None:
    (pack_folder / "graph.onnx").write_bytes(b"grapf")
    (pack_folder / "golden" / "text.json").unlink()
    with pytest.raises(PackError) as caught:
        open_pack(str(pack_folder), "text", pack_folder)
    assert "graph.onnx has sha256" in str(caught.value)
    assert "text.json is missing" in str(caught.value)


def _graph(path: str) -> Change:
    def change(manifest: dict[str, Any]) -> None:
        manifest["text"]["graph"]["path"] = path

    return change


def _weights(path: str) -> Change:
    def change(manifest: dict[str, Any]) -> None:
        manifest["text"]["weights"][0]["path"] = path

    return change


@pytest.mark.parametrize("way", [_graph, _weights])
@pytest.mark.parametrize("path", ["../graph.onnx", "/etc/passwd", "golden/../../graph.onnx", "", "link/graph.onnx"])
def test_a_path_that_leads_out_of_the_pack_is_refused(
    tmp_path: Path, make_pack: MakePack, way: Callable[[str], Change], path: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = make_pack(tmp_path / "pack", way(path))
    (folder / "link").symlink_to(outside)
    with pytest.raises(PackError, match="leads out of the pack"):
        read_pack(folder)


def test_a_digest_must_be_one(tmp_path: Path, make_pack: MakePack) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["text"]["graph"]["sha256"] = "abc"

    with pytest.raises(PackError, match=r"text\.graph\.sha256"):
        read_pack(make_pack(tmp_path / "pack", change))


def test_shipped_manifests_hold_for_every_file() -> None:
    for name in list_shipped():
        tower: Any = "vision" if name.endswith("-vision") else "text"
        pack = open_pack(name, tower, Path("/nowhere"))
        assert pack.manifest.name == name
        assert yaml.safe_load((pack.folder / "pack.yaml").read_bytes())["format"] == 1


@pytest.mark.parametrize("scale", [".nan", ".inf", "-50", "0"])
def test_a_scale_that_would_make_every_probability_nonsense_is_refused(tmp_path: Path, scale: str) -> None:
    text = (shipped_folder() / "starter-vision" / "pack.yaml").read_text()
    (tmp_path / "pack.yaml").write_text(re.sub(r"logit_scale: .*", f"logit_scale: {scale}", text))
    with pytest.raises(PackError, match="logit_scale"):
        read_pack(tmp_path)
