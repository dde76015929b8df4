"""`packs verify` and `packs probe` as a user runs them."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
from dataclasses import replace
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
from router.export.verify.sources import find_reference
from router.packs.files import sha256_of


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
    assert "golden vectors only; PyTorch was not asked\n" in result.stdout
    assert "why: the manifest names no checkpoint; name one with --reference" in result.stdout
    assert "pointsman packs verify PACK --reference CHECKPOINT" in result.stdout
    assert result.stdout.rstrip().endswith("holds, as far as golden vectors tell")


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
        (["no-such-pack"], 2, "no pack is named 'no-such-pack'"),
        (["starter-text", "--images", "/no/such/folder"], 2, "no such folder"),
        (["starter-text", "--reference", "/no/such/checkpoint"], 2, "neither a folder here, nor a hub id"),
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


def test_a_manifest_with_another_scale_or_bias_drifts_at_that_stage(checkpoint: Path, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["vision"]["logit_scale"], manifest["vision"]["logit_bias"] = 10.0, -2.0

    result = run("verify", write_pack(checkpoint, tmp_path / "pack", manifest_change=change), "--reference", checkpoint)
    assert result.exit_code == 1
    assert "image, scale and bias: other values, logit_scale is 10 and logit_bias -2" in result.stdout


def test_json_says_that_golden_vectors_are_all_there_was(pack: Path, checkpoint: Path) -> None:
    alone, whole = run("verify", pack, "--json"), run("verify", pack, "--reference", checkpoint, "--json")
    assert json.loads(alone.stdout)["golden_vectors_only"] is True
    assert json.loads(alone.stdout)["not_compared"] == ["image", "text"]
    assert json.loads(whole.stdout)["golden_vectors_only"] is False
    assert json.loads(whole.stdout)["not_compared"] == []


def test_a_part_that_the_reference_does_not_have_is_said_to_be_uncompared(
    pack: Path, checkpoint: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_text(*arguments: Any) -> Any:
        return replace(find_reference(*arguments), text=None)

    monkeypatch.setattr("router.cli.verify.find_reference", without_text)
    result = run("verify", pack, "--reference", checkpoint, "--images", images)
    assert result.exit_code == 0
    assert "text: golden vectors only; the reference has no such side" in result.stdout
    assert result.stdout.rstrip().endswith("holds, as far as golden vectors tell")


def _stamped(name: str, stamp: str) -> Any:
    def change(manifest: dict[str, Any]) -> None:
        manifest["source"] = {"checkpoint": name, "revision": "", "kind": "siglip", "exporter": "test"}
        manifest["space"] = f"{name}@{stamp}"

    return change


@pytest.mark.parametrize("beside", ["the pack", "the user"])
def test_the_folder_that_a_pack_was_exported_from_is_found_by_its_name_and_weights(
    checkpoint: Path, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: str
) -> None:
    stamp = sha256_of(checkpoint / "model.safetensors")[:12]
    place = tmp_path / ("packs" if beside == "the pack" else "home")
    place.mkdir()
    if beside == "the user":
        monkeypatch.chdir(place)
    shutil.copytree(checkpoint, place / "origin")
    made = write_pack(checkpoint, tmp_path / "packs" / "pack", manifest_change=_stamped("origin", stamp))
    answer = json.loads(run("verify", made, "--images", images, "--json").stdout)
    assert answer["golden_vectors_only"] is False
    assert str(place / "origin") in answer["reference"]


@pytest.mark.parametrize(("name", "stamp"), [("origin", "0" * 12), ("origin", ""), ("../packs/origin", None)])
def test_a_folder_of_that_name_with_other_weights_is_not_taken_for_it(
    checkpoint: Path, images: Path, tmp_path: Path, name: str, stamp: str | None
) -> None:
    if stamp is None:
        stamp = sha256_of(checkpoint / "model.safetensors")[:12]
    (tmp_path / "packs").mkdir()
    shutil.copytree(checkpoint, tmp_path / "packs" / "origin")
    made = write_pack(checkpoint, tmp_path / "packs" / "pack", manifest_change=_stamped(name, stamp))
    answer = json.loads(run("verify", made, "--images", images, "--json").stdout)
    assert answer["golden_vectors_only"] is True
    assert "name that folder with --reference" in answer["why_no_reference"]


@pytest.mark.parametrize("other", [False, True])
def test_a_named_folder_of_other_weights_is_said_to_be_another_checkpoint(
    checkpoint: Path, images: Path, tmp_path: Path, other: bool
) -> None:
    stamp = "0" * 12 if other else sha256_of(checkpoint / "model.safetensors")[:12]
    made = write_pack(checkpoint, tmp_path / "pack", manifest_change=_stamped("origin", stamp))
    answer = json.loads(run("verify", made, "--images", images, "--json", "--reference", checkpoint).stdout)
    assert any("other weights than the checkpoint" in note for note in answer["notes"]) is other


def test_a_checkpoint_in_the_place_of_a_pack_is_wrong_use(checkpoint: Path) -> None:
    for verb in ("verify", "probe"):
        result = run(verb, checkpoint)
        assert result.exit_code == 2
        assert "is a checkpoint and no pack yet" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["starter-text"], "has no vision tower"),
        (["starter-vision", "--text", "starter-vision"], "has no text tower"),
    ],
)
def test_a_probe_without_one_of_its_towers_is_wrong_use(arguments: list[str], says: str) -> None:
    result = run("probe", *arguments)
    assert result.exit_code == 2
    assert says in result.stderr


def test_labels_of_another_space_are_refused_by_name(pack: Path) -> None:
    result = run("probe", pack, "--text", "starter-text")
    assert result.exit_code == 2
    assert "embeds into the space 'tiny-siglip', pack 'starter-text' into 'all-MiniLM-L6-v2'" in result.stderr
    assert "name a text pack of the space 'tiny-siglip' with --text" in result.stderr


def test_a_text_pack_that_is_not_there_is_wrong_use(pack: Path) -> None:
    assert run("probe", pack, "--text", "nowhere").exit_code == 2


HOSTILE = {
    "nested": "format: 1\nname: " + "[" * 5000 + "]" * 5000,
    "digits": "format: 1\nname: " + "9" * 5000,
    "no tower": "format: 1\nname: x\nlicence: x\ndescription: x",
    "NUL": 'format: 1\nname: "a\\0b"',
}


@pytest.mark.parametrize("verb", ["verify", "probe"])
@pytest.mark.parametrize("which", HOSTILE)
def test_a_manifest_made_to_make_us_stumble_exits_1_with_its_path(tmp_path: Path, verb: str, which: str) -> None:
    (tmp_path / "pack.yaml").write_text(HOSTILE[which])
    result = run(verb, tmp_path)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert str(tmp_path / "pack.yaml") in result.stderr


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06" + bytes(18)])
def test_an_empty_npz_is_a_miss_and_no_abort(pack: Path, tmp_path: Path, data: bytes) -> None:
    folder = Path(shutil.copytree(pack, tmp_path / "pack"))
    (folder / "golden/vision.npz").write_bytes(data)
    manifest = yaml.safe_load((folder / "pack.yaml").read_text())
    manifest["vision"]["golden"]["sha256"] = sha256_of(folder / "golden/vision.npz")
    (folder / "pack.yaml").write_text(yaml.safe_dump(manifest))
    result = run("verify", folder)
    assert result.exit_code == 1
    assert "golden vectors: pack 'tiny-siglip', golden: " in result.stdout
    assert "golden/vision.npz" in result.stdout


def test_a_pipe_among_the_images_is_left_out_and_nobody_waits_for_it(
    pack: Path, checkpoint: Path, images: Path
) -> None:
    os.mkfifo(images / "pipe.png")
    result = run("verify", pack, "--reference", checkpoint, "--images", images, "--json")
    assert "pipe.png cannot be read: OSError" in json.loads(result.stdout)["sides"][0]["left_out"]


@pytest.mark.parametrize("name", ["pipe.png", "a\0b.png", "loop.png"])
def test_a_probe_image_that_is_no_file_is_named(pack: Path, images: Path, name: str) -> None:
    os.mkfifo(images / "pipe.png")
    (images / "loop.png").symlink_to("loop.png")
    probe = _probe(images, {"a": ["one"], "b": ["two"]}, [{"file": name, "field": "a"}])
    result = run("probe", pack, "--file", probe)
    assert result.exit_code == (2 if "\0" in name else 1)
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize("text", ["[" * 5000, "fields: " + "9" * 5000])
def test_a_probe_file_made_to_make_us_stumble_is_wrong_use(pack: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "probe.yaml").write_text(text)
    result = run("probe", pack, "--file", tmp_path / "probe.yaml")
    assert result.exit_code == 2
    assert str(tmp_path / "probe.yaml") in result.stderr
