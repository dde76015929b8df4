"""What the report's cases are made of, and what it says: without any data folder."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest
from PIL import Image

from models.report import outcome, writing
from models.report.outcome import Found, Outcome
from models.report.planted import KINDS, Planted, lines_of
from models.report.planting import plant
from models.report.sets import sample, secrets_half
from router.signals.mrz import MrzFinder
from router.signals.secret import SecretFinder

OUTCOME = Outcome(
    "Images",
    ("12 images",),
    (Found("recall", 12, 0.9, 0.6, 1.0, least=0.8), Found("alarms", 12, 0.1, most=0.02), Found("other", 3, 0.5)),
    ("| a |\n| --- |",),
    3.0,
    "key",
)


def test_a_goal_is_met_or_missed_by_the_figure_itself() -> None:
    assert [each.met for each in OUTCOME.found] == [True, False, None]


def test_a_section_is_kept_for_the_same_packs_and_no_others(tmp_path: Path) -> None:
    outcome.write(OUTCOME, tmp_path / "images.json")
    assert outcome.read(tmp_path / "images.json", "key") == OUTCOME
    assert outcome.read(tmp_path / "images.json", "another") is None
    assert outcome.read(tmp_path / "none.json", "key") is None


def test_the_report_tells_goals_sizes_digests_and_the_command() -> None:
    text = writing.report([OUTCOME], {"starter-text": "ab" * 32}, 200, 8, "python -m models.report")
    assert "1 of 2 goals are met" in text
    assert "| Images | recall | 12 | 0.900 | 0.600 to 1.000 | at least 0.8 | met |" in text
    assert "| Images | alarms | 12 | 0.100 |  | at most 0.02 | missed |" in text
    assert "Measured on: 12 images." in text
    assert "abababababababab" in text
    assert "    python -m models.report\n" in text


def test_a_sample_is_the_same_every_time_and_in_order() -> None:
    chosen = sample(range(100), 10, 8)
    assert chosen == sample(range(100), 10, 8) == sorted(chosen)
    assert sample(range(5), 10, 8) == list(range(5))


def test_all_fixtures_of_a_rule_are_in_one_half() -> None:
    halves = {name: secrets_half({"source": name, "rule": "r"}) for name in "abcdefgh"}
    assert set(halves.values()) == {"tuning", "held out"}
    assert all(secrets_half({"source": name, "rule": "r", "label": "x"}) == half for name, half in halves.items())


@pytest.mark.parametrize("seed", range(40))
def test_what_is_planted_would_be_found_in_a_text(seed: int) -> None:
    key = "\n".join(lines_of("key", random.Random(seed)))
    zone = "\n".join(lines_of("zone", random.Random(seed)))
    assert max(each.score for each in SecretFinder().find(key, key.encode())) >= 0.6
    assert max(each.score for each in MrzFinder().find(zone.encode())) >= 0.95


@pytest.mark.parametrize("kind", KINDS)
def test_a_plate_fits_into_its_image_and_is_the_same_every_time(kind: Planted) -> None:
    def made() -> Image.Image:
        rng = random.Random(kind)
        return plant(Image.new("RGB", (300, 120), "green"), lines_of(kind, rng), rng)

    first = made()
    files = [io.BytesIO(), io.BytesIO()]
    first.save(files[0], "PNG")
    made().save(files[1], "PNG")
    assert files[0].getvalue() == files[1].getvalue()
    assert first.width >= 300
    assert first.height >= 120
