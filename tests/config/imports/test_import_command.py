from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result
from vsr_example import MODELS, WHOLE

from router.cli.check import check
from router.cli.main import app


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["import", "vsr", *map(str, arguments)])


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(MODELS + "routing: {}\n")
    return path


def test_a_configuration_that_is_carried_whole_exits_0_and_prints_the_policy(small: Path) -> None:
    result = run(small)
    assert result.exit_code == 0
    assert result.stdout.startswith("# Imported from config.yaml")
    assert "0 places lost" in result.stderr


def test_a_loss_exits_1_and_is_told_with_its_place(small: Path) -> None:
    small.write_text(small.read_text() + "strange: {key: 1}\n")
    result = run(small)
    assert result.exit_code == 1
    assert "version: 1" in result.stdout
    assert f"{small}:8:1: lost: strange: this key is not known here" in result.stderr


def test_the_written_policy_passes_check(tmp_path: Path) -> None:
    target = tmp_path / "policy.yaml"
    result = run(WHOLE, "--to", target)
    assert (result.exit_code, result.stdout) == (1, "")
    checked = check(target)
    assert checked.problems == ()
    assert checked.loaded is not None


def test_a_policy_is_not_replaced_unless_that_is_asked_for(small: Path, tmp_path: Path) -> None:
    target = tmp_path / "policy.yaml"
    target.write_text("mine")
    refused = run(small, "--to", target)
    assert (refused.exit_code, target.read_text()) == (2, "mine")
    assert "--force" in refused.stderr
    assert run(small, "--to", target, "--force").exit_code == 0
    assert "version: 1" in target.read_text()


def test_nothing_is_written_for_what_is_no_configuration(tmp_path: Path) -> None:
    target = tmp_path / "policy.yaml"
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("categories: []\n")
    result = run(wrong, "--to", target)
    assert result.exit_code == 2
    assert f"{wrong}:1:1: categories: is of a format before v0.3" in result.stderr
    assert not target.exists()
    assert run(tmp_path / "absent.yaml").exit_code == 2
    assert run(tmp_path).exit_code == 2


def test_a_folder_that_is_not_there_is_told(small: Path, tmp_path: Path) -> None:
    result = run(small, "--to", tmp_path / "no" / "policy.yaml")
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


def test_json_lists_every_place(tmp_path: Path) -> None:
    result = run(WHOLE, "--json")
    told = json.loads(result.stdout)
    assert result.exit_code == 1
    assert told["complete"] is False
    assert told["policy"].startswith("# Imported")
    assert {each["kind"] for each in told["findings"]} == {"lost", "changed", "moot"}
    assert "routing.signals.keywords[0].keywords[0]" in told["carried"]
    assert "sk-hidden" not in result.stdout


def test_terminal_escapes_of_the_file_are_not_printed(small: Path) -> None:
    small.write_text(MODELS + 'routing: {}\n"\\e[31mred": 1\n')
    result = run(small)
    assert "\x1b" not in result.stderr
    assert "?[31mred" in result.stderr
    small.write_text(MODELS + 'routing: {}\n"\\ud800": 1\n')
    assert json.loads(run(small, "--json").stdout)["findings"][0]["key"] == "?"
