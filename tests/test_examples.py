"""Every example is sound to the last finding, and does on its own cases what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from examples.images import IMAGES
from router.cli.main import app
from router.config.load import load_policy
from router.evaluation.cases import read_cases
from router.policy.agenda import signals_below

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = ("coding-agents", "cost-tiers", "medical", "multi-tenant", "privacy", "safety-first")


@pytest.mark.parametrize("name", NAMES)
def test_example_holds_without_a_finding(name: str) -> None:
    result = CliRunner().invoke(app, ["check", "--strict", "--json", str(EXAMPLES / name / "policy.yaml")])
    found = json.loads(result.stdout)
    assert (result.exit_code, found["problems"], found["findings"]) == (0, [], [])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_example_does_on_its_cases_what_it_says(name: str) -> None:
    result = CliRunner().invoke(app, ["eval", "--json", str(EXAMPLES / name)])
    report = json.loads(result.stdout)
    assert [(failure["name"], failure["misses"]) for failure in report["failures"]] == []
    assert result.exit_code == 0
    assert report["cases"] >= 12


@pytest.mark.parametrize("name", NAMES)
def test_every_decision_of_an_example_has_a_case_that_expects_it(name: str) -> None:
    decisions = {decision.name for decision in load_policy(EXAMPLES / name / "policy.yaml").policy.all_decisions}
    expected = {case.file.expect.decision for case in read_cases(EXAMPLES / name / "cases.yaml")}
    assert decisions <= expected


@pytest.mark.parametrize("name", NAMES)
def test_every_signal_of_an_example_is_read(name: str) -> None:
    loaded = load_policy(EXAMPLES / name / "policy.yaml")
    read = signals_below(loaded.policy)
    written = {f"{family}/{each}" for family, names in loaded.source.data["signals"].items() for each in names}
    assert written <= {str(each) for each in read}


@pytest.mark.parametrize("name", NAMES)
def test_pictures_are_the_ones_that_the_script_draws_and_all_are_used(name: str) -> None:
    files = {path.name for path in (EXAMPLES / name / "images").iterdir()}
    used = set(re.findall(r"images/([\w.]+)", (EXAMPLES / name / "cases.yaml").read_text()))
    assert files == set(IMAGES[name]) == used
    for file in files:
        with Image.open(EXAMPLES / name / "images" / file) as image:
            assert max(image.size) <= 448


def test_pictures_of_the_examples_are_small() -> None:
    assert sum(path.stat().st_size for path in EXAMPLES.rglob("*.jpg")) < 1_500_000
