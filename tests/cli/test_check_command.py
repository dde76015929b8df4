from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from typer.testing import CliRunner, Result

from router.cli.main import app

SOUND = """\
version: 1
upstreams: [{model: m, cluster: c}, {model: other, cluster: d}]
default_model: m
signals:
  keyword: {a: {any: [x]}}
decisions:
  - {name: one, priority: 2, when: {keyword: a}, route: {models: [other]}}
"""
SHADOWED = """\
  - {name: two, priority: 1, when: {all: [{keyword: a}, {conversation: has_images}]}, route: {models: [m]}}
"""
UNREAD = SOUND.replace("a: {any: [x]}", "a: {any: [x]}, unread: {any: [y]}")
BROKEN = SOUND.replace("any: [x]", "anny: [x]")


def closed(required: list[str], **properties: object) -> dict[str, object]:
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


def listed(items: object) -> dict[str, object]:
    return {"type": "array", "items": items}


TEXT = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 1}
REGION = closed(["startLine", "startColumn"], startLine=COUNT, startColumn=COUNT)
ARTIFACT = closed(["uri"], uri={"type": "string", "pattern": r"^([A-Za-z0-9._~!$&'()*+,;=@/-]|%[0-9A-F]{2})+$"})
LOCATION = closed(
    ["physicalLocation"],
    physicalLocation=closed(["artifactLocation", "region"], artifactLocation=ARTIFACT, region=REGION),
)
RESULT = closed(
    ["message", "ruleId", "level", "locations"],
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level={"enum": ["none", "note", "warning", "error"]},
    message=closed(["text"], text=TEXT),
    locations={**listed(LOCATION), "minItems": 1},
)
RULES = {**listed(closed(["id"], id=TEXT)), "uniqueItems": True}
DRIVER = closed(["name"], name=TEXT, version=TEXT, rules=RULES)
RUN = closed(
    ["tool", "results"],
    tool=closed(["driver"], driver=DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results=listed(RESULT),
)
SARIF = closed(["version", "runs"], **{"$schema": TEXT, "version": {"const": "2.1.0"}, "runs": listed(RUN)})
"""What SARIF 2.1.0 says of the objects that are written here, of which none may have other properties."""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return tmp_path / "policy.yaml"


def check(policy: Path, text: str, *flags: str) -> Result:
    policy.write_text(text)
    return CliRunner().invoke(app, ["check", *flags, str(policy)])


def sarif_of(result: Result) -> Mapping[str, Any]:
    document: dict[str, Any] = json.loads(result.stdout)
    Draft7Validator(SARIF).validate(document)
    [run] = document["runs"]
    for each in run["results"]:
        assert run["tool"]["driver"]["rules"][each["ruleIndex"]]["id"] == each["ruleId"]
    assert isinstance(run, dict)
    return run


def test_what_can_never_win_is_an_error_with_line_kind_and_witness(policy: Path) -> None:
    result = check(policy, SOUND + SHADOWED)
    assert result.exit_code == 1
    told, example = result.stderr.splitlines()
    assert told.startswith(f"{policy}:8:12: error: decisions[1].name: it can never win")
    assert told.endswith('so does "one", which outranks it [shadowed]')
    assert example.strip() == "for example when keyword/a is true, conversation/has_images is true"
    assert "does not hold: 2 decisions" in result.stdout


def test_a_warning_alone_holds_unless_the_check_is_strict(policy: Path) -> None:
    assert check(policy, UNREAD).exit_code == 0
    assert "signals.keyword.unread: no decision reads it [unread-signal]" in check(policy, UNREAD).stderr
    assert check(policy, UNREAD, "--strict").exit_code == 1
    assert check(policy, SOUND, "--strict").exit_code == 0


def test_json_has_each_finding_with_its_place_and_witness(policy: Path) -> None:
    result = check(policy, SOUND + SHADOWED, "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["holds"], answer["problems"]) == (1, False, [])
    [found] = answer["findings"]
    assert (found["kind"], found["level"], found["line"], found["column"]) == ("shadowed", "error", 8, 12)
    assert found["subject"] == {"decision": "two"}
    assert found["witness"] == {"keyword/a": True, "conversation/has_images": True}
    assert found["sampled"] is False
    assert len(answer["digest"]) == 64


def test_sarif_has_each_finding_with_its_place_and_witness(policy: Path) -> None:
    result = check(policy, SOUND + SHADOWED, "--sarif")
    assert result.exit_code == 1
    [found] = sarif_of(result)["results"]
    assert (found["ruleId"], found["level"]) == ("shadowed", "error")
    assert found["message"]["text"].endswith("when keyword/a is true, conversation/has_images is true")
    place = found["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 8, "startColumn": 12}
    assert place["artifactLocation"]["uri"] == policy.as_posix()


def test_sarif_of_a_file_that_cannot_be_loaded_has_its_problems(policy: Path) -> None:
    result = check(policy, BROKEN, "--sarif")
    assert result.exit_code == 1
    assert {(each["ruleId"], each["level"]) for each in sarif_of(result)["results"]} == {("problem", "error")}


def test_sarif_of_a_sound_policy_is_a_run_without_results(policy: Path) -> None:
    result = check(policy, SOUND, "--sarif")
    assert (result.exit_code, sarif_of(result)["results"]) == (0, [])


def test_sarif_writes_a_path_as_a_uri_reference(tmp_path: Path) -> None:
    result = check(tmp_path / "my pölicy #1%.yaml", UNREAD, "--sarif")
    uris = {each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in sarif_of(result)["results"]}
    assert {uri.rsplit("/", 1)[1] for uri in uris} == {"my%20p%C3%B6licy%20%231%25.yaml"}


def test_columns_count_characters(policy: Path) -> None:
    text = SOUND.replace("any: [x]}", 'any: ["😀😀"]}, unread: {any: [y]}')
    run = sarif_of(check(policy, text, "--sarif"))
    [found] = run["results"]
    line = text.splitlines()[found["locations"][0]["physicalLocation"]["region"]["startLine"] - 1]
    assert run["columnKind"] == "unicodeCodePoints"
    assert line[found["locations"][0]["physicalLocation"]["region"]["startColumn"] - 1 :].startswith("unread")


def test_a_path_is_told_as_it_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "[" / "a]"
    folder.mkdir(parents=True)
    (folder / "policy.yaml").write_text(SOUND)
    told = CliRunner().invoke(app, ["check", str(folder / "policy.yaml")])
    assert told.exit_code == 0
    assert "[/a]/policy.yaml holds" in told.stdout
