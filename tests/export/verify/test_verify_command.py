"""`packs verify` and `packs probe` as a user runs them."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image
from stand_in_hub import StandInHub
from tiny_siglip import mean_of_patches, write_checkpoint, write_pack
from typer.testing import CliRunner, Result

from router.cli.main import app


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["packs", *map(str, arguments)], env={"COLUMNS": "160"})


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoints") / "tiny")


@pytest.fixture(scope="module")
def pack(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pack(checkpoint, tmp_path_factory.mktemp("packs") / "tiny")


@pytest.fixture(scope="module")
def wrong(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pack(checkpoint, tmp_path_factory.mktemp("packs") / "wrong", choose=mean_of_patches)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    (folder / "below").mkdir(parents=True)
    noise = np.random.default_rng(0).integers(0, 256, (23, 31, 3), dtype=np.uint8)
    large = Image.fromarray(noise).resize((2000, 1500), Image.Resampling.BICUBIC)
    large.save(folder / "below" / "large.jpg", quality=90)
    large.resize((300, 200)).save(folder / "small.png")
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nno more")
    (folder / "notes.txt").write_text("not an image")
    return folder


def test_a_pack_that_holds_exits_0_and_shows_every_image(pack: Path, checkpoint: Path) -> None:
    result = run("verify", pack, "--reference", checkpoint)
    assert result.exit_code == 0, result.output
    assert "held against" in result.stdout
    assert "20 of 20 pixels equal to the bit" in result.stdout
    assert "04-residence-permit-turned.jpg" in result.stdout
    assert "turned as EXIF says" in result.stdout
    assert result.stdout.rstrip().endswith("holds")


def test_a_pack_that_drifts_exits_1_and_names_stage_and_cause(wrong: Path, checkpoint: Path) -> None:
    result = run("verify", wrong, "--reference", checkpoint)
    assert result.exit_code == 1
    assert "image, model: pooling head, mean of the patches instead of the attention head" in result.stdout
    assert "golden vectors: pack 'tiny-siglip', embeddings" in result.stdout
    assert result.stdout.rstrip().endswith("drifts")


def test_json_has_every_figure_and_no_picture(wrong: Path, checkpoint: Path, images: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = run("verify", wrong, "--reference", checkpoint, "--images", images, "--json", "--html", page)
    assert result.exit_code == 1
    answer: dict[str, Any] = json.loads(result.stdout)
    assert answer["holds"] is False
    image, text = answer["sides"]
    assert image["spread"]["whole"].keys() == {"least", "mean", "greatest"}
    assert [finding["cause"] for finding in image["findings"]] == ["pooling head"]
    assert [row["name"] for row in image["rows"]] == ["below/large.jpg", "small.png"]
    assert image["left_out"] == ["broken.png cannot be read: UnidentifiedImageError"]
    assert text["findings"] == []
    assert "data:image" not in result.stdout


def test_a_large_jpeg_is_decoded_small_on_purpose_and_that_is_no_drift(
    pack: Path, checkpoint: Path, images: Path
) -> None:
    result = run("verify", pack, "--reference", checkpoint, "--images", images, "--json")
    rows = {row["name"]: row for row in json.loads(result.stdout)["sides"][0]["rows"]}
    assert rows["below/large.jpg"]["note"] == "decoded at a fraction of its size"
    assert rows["below/large.jpg"]["input_difference"][1] > 0
    assert rows["below/large.jpg"]["held"] is True
    assert rows["small.png"]["input_difference"] == [0, 0]
    assert result.exit_code == 0


def test_the_page_needs_nothing_else(wrong: Path, checkpoint: Path, images: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run("verify", wrong, "--reference", checkpoint, "--images", images, "--html", page)
    text = page.read_text()
    sources = re.findall(r'src="([^"]*)"', text)
    assert len(sources) == 6
    for source in sources:
        data = base64.b64decode(source.removeprefix("data:image/png;base64,"), validate=True)
        with Image.open(io.BytesIO(data)) as picture:
            assert picture.size == (64, 64)
    assert "http" not in text.replace("https://example.org", "")
    assert "<script" not in text
    assert "pooling head" in text


def test_a_pack_that_names_no_checkpoint_is_compared_with_its_golden_vectors_and_says_so(pack: Path) -> None:
    result = run("verify", pack)
    assert result.exit_code == 0
    assert "golden vectors alone: the manifest names no checkpoint; name one with --reference" in result.stdout


def test_a_pack_exported_from_a_folder_asks_for_the_folder(checkpoint: Path, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["source"] = {"checkpoint": "tiny", "revision": "", "kind": "siglip", "exporter": "test"}

    result = run("verify", write_pack(checkpoint, tmp_path / "pack", manifest_change=change))
    assert result.exit_code == 0
    assert "exported from a folder, 'tiny'; name that folder with --reference" in " ".join(result.stdout.split())


def test_a_checkpoint_that_the_hub_does_not_have_leaves_golden_vectors_and_says_why(
    checkpoint: Path, tmp_path: Path, hub: StandInHub
) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["source"] = {"checkpoint": "own/tiny", "revision": "0" * 40, "kind": "siglip", "exporter": "test"}

    result = run("verify", write_pack(checkpoint, tmp_path / "pack", manifest_change=change))
    assert result.exit_code == 0
    assert f"{hub.endpoint} has no model own/tiny" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["no-such-pack"], 1, "no pack is named 'no-such-pack'"),
        (["starter-text", "--images", "/no/such/folder"], 2, "no such folder"),
        (["starter-text", "--reference", "/no/such/checkpoint"], 1, "neither a folder here, nor a hub id"),
    ],
)
def test_wrong_use_says_what_is_wrong(arguments: list[str], code: int, says: str) -> None:
    result = run("verify", *arguments)
    assert result.exit_code == code
    assert says in result.stderr


def test_a_folder_without_images_is_wrong_use(pack: Path, tmp_path: Path) -> None:
    result = run("verify", pack, "--images", tmp_path)
    assert result.exit_code == 2
    assert "no PNG, JPEG, WebP, GIF or BMP file" in result.stderr


def test_the_starters_text_tower_holds_against_its_published_weights() -> None:
    result = run("verify", "starter-text", "--json")
    answer = json.loads(result.stdout)
    assert result.exit_code == 0
    (side,) = answer["sides"]
    assert side["equal_inputs"] == side["inputs"]
    assert side["spread"]["whole"]["least"] >= 0.99999


def _probe(folder: Path, fields: dict[str, list[str]], images: list[dict[str, str]]) -> Path:
    (folder / "probe.yaml").write_text(yaml.safe_dump({"fields": fields, "images": images}))
    return folder / "probe.yaml"


def test_a_users_own_probe_ranks_every_label_for_every_image(pack: Path, images: Path) -> None:
    probe = _probe(images, {"a": ["one", "two"], "b": ["three"]}, [{"file": "small.png", "field": "a"}])
    result = run("probe", pack, "--file", probe, "--json")
    answer = json.loads(result.stdout)
    (image,) = answer["images"]
    assert sorted(each["label"] for each in image["ranking"]) == ["one", "three", "two"]
    assert [each["rank"] for each in image["ranking"]] == [1, 2, 3]
    right = image["ranking"][0]["field"] == "a"
    assert (answer["holds"], result.exit_code) == (right, 0 if right else 1)


@pytest.mark.parametrize(
    ("fields", "image", "says"),
    [
        ({"a": ["one"]}, {"file": "small.png", "field": "a"}, "fields"),
        ({"a": ["one"], "b": ["one"]}, {"file": "small.png", "field": "a"}, "no label may stand twice"),
        ({"a": ["one"], "b": []}, {"file": "small.png", "field": "a"}, "every field needs labels"),
        ({"a": ["one"], "b": ["two"]}, {"file": "small.png", "field": "c"}, "the field 'c', which has no labels"),
    ],
)
def test_a_probe_file_that_does_not_hold_is_wrong_use(
    pack: Path, images: Path, fields: dict[str, list[str]], image: dict[str, str], says: str
) -> None:
    result = run("probe", pack, "--file", _probe(images, fields, [image]))
    assert result.exit_code == 2
    assert says in result.stderr


def test_a_probe_image_that_is_not_there_is_named(pack: Path, images: Path) -> None:
    probe = _probe(images, {"a": ["one"], "b": ["two"]}, [{"file": "none.png", "field": "a"}])
    result = run("probe", pack, "--file", probe)
    assert result.exit_code == 1
    assert "none.png cannot be read" in result.stderr
