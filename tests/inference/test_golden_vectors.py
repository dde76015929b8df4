"""Golden vectors that are damaged, forged or of the wrong shape: a message that names file and key, before any model or
decoder is asked."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tiny_tower import DIMENSION, HEIGHT, WIDTH, photo

from router.inference.gate import check_text, check_vision, misses_of
from router.inference.golden import GoldenError, read_golden_images, read_golden_texts
from router.inference.open import open_text_model, open_vision_model
from router.packs.files import PackError
from router.packs.manifest import PatchGrid, TextTower, VisionTower
from router.packs.store import Pack, open_pack, read_pack
from router.request.images import ImageLimits

NINES = "9" * 5000


def _put(folder: Path, tower: str, path: str, data: bytes) -> Pack:
    """The pack with other golden vectors, under a manifest that agrees with them."""
    (folder / path).write_bytes(data)
    manifest = yaml.safe_load((folder / "pack.yaml").read_text())
    manifest[tower]["golden"]["sha256"] = hashlib.sha256(data).hexdigest()
    (folder / "pack.yaml").write_text(yaml.safe_dump(manifest))
    return read_pack(folder)


@pytest.fixture
def text_copy(text_pack: Pack, tmp_path: Path) -> Path:
    return Path(shutil.copytree(text_pack.folder, tmp_path / "text"))


@pytest.fixture
def vision_copy(vision_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(vision_folder, tmp_path / "vision"))


def _text_problem(folder: Path, data: bytes) -> str:
    pack = _put(folder, "text", "golden/text.json", data)
    assert isinstance(pack.manifest.text, TextTower)
    with pytest.raises(GoldenError) as caught:
        read_golden_texts(pack, pack.manifest.text)
    assert "golden/text.json" in str(caught.value)
    assert len(str(caught.value)) < 1000
    return str(caught.value)


def _vectors(**change: Any) -> bytes:
    vectors = {"texts": ["a"], "token_ids": [[101, 102]], "embeddings": [[0.5] * 384]}
    return json.dumps({**vectors, **change}).encode()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "truncated"),
        (b"[" * 5000 + b"]" * 5000, "object"),
        (b'{"texts": ' + b"[" * 5000 + b"]" * 5000 + b"}", "$.texts"),
        (b'{"other": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deep"),
        (_vectors().replace(b"101", NINES.encode()), "$.token_ids[0][0]"),
        (_vectors(token_ids=[[2**31]]), "$.token_ids[0][0]"),
        (_vectors(token_ids=[[-1]]), "$.token_ids[0][0]"),
        (_vectors(token_ids=[[]]), "token_ids[0] has 0 ids"),
        (_vectors(token_ids=[[1] * 513]), "token_ids[0] has 513 ids"),
        (_vectors(token_ids=[[1], [1]]), "token_ids has 2 rows for 1 texts"),
        (_vectors(texts=[1]), "$.texts[0]"),
        (_vectors(texts="a"), "$.texts"),
        (_vectors(embeddings=[["x"] * 384]), "$.embeddings[0][0]"),
        (_vectors(embeddings=[[1e300] * 384]), "not finite"),
        (_vectors(embeddings=[[0.5] * 383]), "embeddings[0] has 383 numbers"),
        (b"\xff\xfe", "invalid"),
    ],
)
def test_golden_texts_that_cannot_be_used_say_file_and_key(text_copy: Path, data: bytes, says: str) -> None:
    assert says.lower() in _text_problem(text_copy, data).lower()


def test_a_row_of_zeros_is_a_miss_and_no_division_by_zero(text_copy: Path, weights: Path) -> None:
    vectors = json.loads((text_copy / "golden/text.json").read_text())
    vectors["embeddings"][1] = [0.0] * 384
    pack = _put(text_copy, "text", "golden/text.json", json.dumps(vectors).encode())
    assert [miss.stage for miss in check_text(pack, open_text_model(pack, weights))] == ["embeddings"]


def test_ids_that_no_vocabulary_has_are_a_miss_and_no_crash(text_copy: Path, weights: Path) -> None:
    vectors = json.loads((text_copy / "golden/text.json").read_text())
    vectors["token_ids"][1] = [2**31 - 1]
    pack = _put(text_copy, "text", "golden/text.json", json.dumps(vectors).encode())
    [miss] = misses_of(pack, check_text, open_text_model(pack, weights))
    assert miss.stage == "golden"
    assert "cannot be run" in miss.detail


def _npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def _right(**change: Any) -> bytes:
    arrays = {
        "pixels": np.zeros((5, HEIGHT, WIDTH, 3), np.uint8),
        "embeddings": np.full((5, DIMENSION), 0.3, np.float32),
    }
    return _npz(**{**arrays, **change})


def _claiming(shape: str) -> bytes:
    """An npz of a few bytes whose header says that there is much more."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (118 - len(header)) + b"\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("pixels.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    return out.getvalue()


def _vision_problem(folder: Path, data: bytes) -> str:
    pack = _put(folder, "vision", "golden/vision.npz", data)
    assert isinstance(pack.manifest.vision, VisionTower)
    with pytest.raises(GoldenError) as caught:
        read_golden_images(pack, pack.manifest.vision)
    assert len(str(caught.value)) < 1000
    return str(caught.value)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "it is no npz file that can be read (BadZipFile)"),
        (b"PK\x05\x06" + bytes(18), "it has no array 'pixels'"),
        (_right()[:-40], "it is no npz file that can be read"),
        (_right(pixels=np.zeros((5, HEIGHT, WIDTH), np.uint8)), "pixels are uint8 (5, 24, 32), not uint8 (5, height"),
        (_right(pixels=np.zeros((5, HEIGHT, WIDTH, 3), np.int64)), "pixels are int64"),
        (_right(pixels=np.zeros((4, HEIGHT, WIDTH, 3), np.uint8)), "not uint8 (5, height, width, 3)"),
        (
            _right(pixels=np.zeros((5, WIDTH, HEIGHT, 3), np.uint8)),
            "pixels are 32 x 24, the manifest's size is 24 x 32",
        ),
        (_right(pixels=np.array(["x"] * 5, dtype=object)), "pixels are object"),
        (_right(embeddings=np.zeros((5, DIMENSION))), "embeddings are float64"),
        (_right(embeddings=np.zeros((5, 3), np.float32)), "embeddings are float32 (5, 3), not float32 (5, 8)"),
        (_right(embeddings=np.full((5, DIMENSION), np.nan, np.float32)), "not finite"),
        (_npz(pixels=np.zeros((5, HEIGHT, WIDTH, 3), np.uint8)), "it has no array 'embeddings'"),
        (_claiming(f"(5, {1 << 40}, {1 << 40}, 3)"), "the manifest's size is 24 x 32"),
        (_claiming("(5,"), "golden/vision.npz"),
    ],
)
def test_golden_images_that_cannot_be_used_say_what_is_wrong(vision_copy: Path, data: bytes, says: str) -> None:
    problem = _vision_problem(vision_copy, data)
    assert says in problem
    assert "golden/vision.npz" in problem


def test_an_array_cut_short_behind_a_true_header_is_a_message(vision_copy: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(_right())) as whole, zipfile.ZipFile(out, "w") as cut:
        for name in whole.namelist():
            cut.writestr(name, whole.read(name)[:200])
    assert "golden/vision.npz" in _vision_problem(vision_copy, out.getvalue())


def test_no_image_is_decoded_where_shapes_do_not_fit(vision_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = _put(vision_copy, "vision", "golden/vision.npz", _right(embeddings=np.zeros((5, 3), np.float32)))
    model = open_vision_model(pack, ImageLimits())
    monkeypatch.setattr(model, "preprocess", lambda data: 1 / 0)
    assert [miss.stage for miss in check_vision(pack, model)] == ["golden"]


@pytest.mark.parametrize(
    ("shape", "fits"), [((16, 24), True), ((24, 16), True), ((16, 20), False), ((24, 24), False), ((0, 8), False)]
)
def test_pixels_of_a_tower_for_any_shape_are_whole_patches_up_to_its_most(
    vision_copy: Path, shape: tuple[int, int], fits: bool
) -> None:
    pixels = np.zeros((5, *shape, 3), np.uint8)
    pack = _put(vision_copy, "vision", "golden/vision.npz", _right(pixels=pixels))
    assert pack.manifest.vision is not None
    tower = pack.manifest.vision.model_copy(update={"patches": PatchGrid(patch=8, max_patches=6)})
    if fits:
        assert read_golden_images(pack, tower).pixels.shape == (5, *shape, 3)
        return
    with pytest.raises(GoldenError, match="not up to 6 squares of 8 pixels"):
        read_golden_images(pack, tower)


def _digested(folder: Path) -> Path:
    manifest = yaml.safe_load((folder / "pack.yaml").read_text())
    golden = manifest["vision"]["golden"]
    golden["images"] = [
        {"path": path, "sha256": hashlib.sha256((folder / path).read_bytes()).hexdigest()} for path in golden["images"]
    ]
    (folder / "pack.yaml").write_text(yaml.safe_dump(manifest))
    return folder


def test_a_swapped_golden_image_is_named_and_pillow_is_not_blamed(vision_copy: Path) -> None:
    folder = _digested(vision_copy)
    pack = open_pack(str(folder), "vision", folder)
    model = open_vision_model(pack, ImageLimits())
    (folder / "golden/1.png").write_bytes(photo(77))
    with pytest.raises(PackError, match=r"golden/1\.png has sha256"):
        open_pack(str(folder), "vision", folder)
    [miss] = check_vision(pack, model)
    assert miss.stage == "golden"
    assert "golden/1.png has sha256" in miss.detail
    assert "Pillow" not in miss.detail


@pytest.mark.parametrize("digested", [True, False])
def test_a_pipe_in_a_golden_images_place_is_named_and_nobody_waits_for_it(vision_copy: Path, digested: bool) -> None:
    folder = _digested(vision_copy) if digested else vision_copy
    pack = read_pack(folder)
    model = open_vision_model(pack, ImageLimits())
    (folder / "golden/2.png").unlink()
    os.mkfifo(folder / "golden/2.png")
    [miss] = check_vision(pack, model)
    assert miss.stage == "golden"
    assert "golden/2.png cannot be read: it is no regular file" in miss.detail


def test_golden_images_without_digests_pass_and_the_log_says_so(
    vision_pack: Pack, caplog: pytest.LogCaptureFixture
) -> None:
    assert check_vision(vision_pack, open_vision_model(vision_pack, ImageLimits())) == []
    [record] = [each for each in caplog.records if each.name == "router.inference.gate"]
    assert record.getMessage() == "pack whose golden images carry no digests"
    assert record.__dict__["fields"] == {"pack": "tiny-vision", "images": 5}


def test_golden_images_with_digests_pass_in_silence(vision_copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    pack = read_pack(_digested(vision_copy))
    assert check_vision(pack, open_vision_model(pack, ImageLimits())) == []
    assert caplog.records == []


def test_a_golden_image_of_another_shape_than_its_vectors_is_a_miss_of_pixels(
    vision_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = read_pack(vision_copy)
    model = open_vision_model(pack, ImageLimits())
    preprocess: Callable[[bytes], Any] = model.preprocess
    monkeypatch.setattr(model, "preprocess", lambda data: preprocess(data)[:-8])
    misses = check_vision(pack, model)
    assert [miss.stage for miss in misses] == ["pixels"] * 5
    assert misses[0].detail == "golden image 0 comes out as 16 x 32 pixels, not as 24 x 32"
