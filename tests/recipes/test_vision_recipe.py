"""The parts of the vision recipe that need no training: what is held out, changed grounds, intervals, rejection."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from models.vision.augment import regrounded
from models.vision.collection import HOLD_OUT_SHARE, KEPT_SHARE, collected
from models.vision.figures import interval, macro_interval
from models.vision.rejection import matched, rejected


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """Two classes: one of many repositories, one of a single one."""
    rows = []
    for number in range(200):
        label, repo = ("table", f"table/{number % 40}") if number < 120 else ("map", "map/only")
        file = tmp_path / label / f"{number:03d}.jpg"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(str(number).encode())
        rows.append({"class": label, "file": f"{label}/{file.name}", "repo": repo})
    with (tmp_path / "SOURCES.csv").open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, ["class", "file", "repo"])
        writer.writeheader()
        writer.writerows(rows)
    return tmp_path


def test_no_image_trains_and_calibrates(collection: Path) -> None:
    train, held_out = collected(collection)
    assert len(train) + len(held_out) == 200
    assert not {item.data for item in train} & {item.data for item in held_out}
    assert {item.label for item in held_out} == {"table", "map"}


def test_repositories_are_held_out_whole(collection: Path) -> None:
    train, held_out = collected(collection)
    trained = {int(item.data) % 40 for item in train if item.label == "table"}
    assert not trained & {int(item.data) % 40 for item in held_out if item.label == "table"}


def test_the_last_stage_holds_out_a_part_of_what_the_others_did(collection: Path) -> None:
    before = {item.data for item in collected(collection, HOLD_OUT_SHARE)[1]}
    after = {item.data for item in collected(collection, KEPT_SHARE)[1]}
    assert after < before


def test_what_stands_on_white_gets_another_ground() -> None:
    image = Image.new("RGB", (200, 200), (255, 255, 255))
    ImageDraw.Draw(image).rectangle((60, 60, 140, 140), fill=(10, 120, 30))
    changed = [regrounded(image, random.Random(seed)) for seed in range(8)]
    assert all(one.getpixel((100, 100)) == (10, 120, 30) for one in changed)
    assert len({one.getpixel((5, 5)) for one in changed}) > 4


def test_what_fills_its_picture_stays_as_it_is() -> None:
    image = Image.new("RGB", (120, 90), (90, 60, 40))
    assert regrounded(image, random.Random(1)) is image


@given(st.integers(1, 2000).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count))))
def test_an_interval_holds_the_share_it_is_about(seen: tuple[int, int]) -> None:
    right, count = seen
    low, high = interval(right, count)
    assert 0 <= low <= right / count + 1e-12
    assert right / count - 1e-12 <= high <= 1


def test_more_images_make_a_narrower_interval() -> None:
    few, many = interval(9, 10), interval(900, 1000)
    assert many[1] - many[0] < few[1] - few[0]


def test_the_interval_of_the_mean_over_classes_holds_it() -> None:
    truth = np.repeat(np.arange(4), 25)
    right = np.arange(100) % 5 > 0
    low, high = macro_interval(right, truth)
    assert low < 0.8 < high


def test_an_image_matches_a_class_by_the_best_of_its_words() -> None:
    asked = np.eye(4, dtype=np.float32).reshape(2, 2, 4)
    images = np.array([[0, 1, 0, 0], [0, 0, 0.4, 0], [0, 0, 1, 0]], dtype=np.float32)
    assert matched(images, asked, 10.0, -5.0).tolist() == [[1, 0], [0, 0], [0, 1]]


def test_rejection_counts_by_kind_and_says_what_the_rest_was_taken_for() -> None:
    asked = np.eye(4, dtype=np.float32).reshape(2, 2, 4)
    images = np.array([[0, 1, 0, 0], [0, 0, 0.4, 0], [0, 0, 0, 0.1], [0.2, 0, 0, 0]], dtype=np.float32)
    report = rejected(images, ["maze", "maze", "flag", "flag"], asked, ["map", "other", "table"], 10.0, -5.0)
    assert report["match_nothing"] == 0.75
    assert report["by_kind"] == {"maze": 0.5, "flag": 1.0}
    assert report["taken_for"] == {"map": 1}
