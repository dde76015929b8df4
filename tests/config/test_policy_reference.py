"""Every key that a policy may hold is explained and read, and the pages that are generated are those of the code."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import BaseModel
from reads_of_code import is_read, modules

from router.cli.check import check
from router.config import handling, schema, selecting
from router.config.conditions import BOUNDS, read_interval
from router.config.family_docs import family_docs
from router.config.handling import (
    CaptureSettings,
    CheckRefusalSettings,
    CheckSettings,
    EncodingSettings,
    HoldBackSettings,
    LimitSettings,
    ParitySettings,
    RecordSettings,
    RemoteImageSettings,
    ResponseSettings,
    ShadowSettings,
)
from router.config.json_schema import policy_schema_text
from router.config.reference import SCHEMA_FILE, SIGNALS_FILE, signals_reference, write_reference
from router.config.remote_encoder import EncoderPackSettings
from router.config.schema import (
    ApiRuleSettings,
    BandSettings,
    DecisionSettings,
    EncoderSettings,
    IntervalSettings,
    PartitionSettings,
    PolicyFile,
    PriceSettings,
    ProfileHeaderSettings,
    ProfileSettings,
    ProjectionSettings,
    RespondSettings,
    RouteSettings,
    ScoreSettings,
    UpstreamSettings,
)
from router.config.selecting import PickSettings, SelectSettings, read_select
from router.config.yaml_source import parse_yaml
from router.policy import model as policy_model
from router.policy import projection as policy_projection
from router.selection import model as selection_model
from router.selection import upstream as selection_upstream
from router.selection.model import WORDS
from router.signals.registry import FAMILIES

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "policy.md").read_text(encoding="utf-8")
AGAIN = "write it again: pointsman schema --write docs"

TABLES: dict[str, type[BaseModel]] = {
    "Top level/key": PolicyFile,
    "Upstreams/key": UpstreamSettings,
    "Encoders and parity/key of `encoders`": EncoderSettings,
    "Encoders and parity/key of `parity`": ParitySettings,
    "Remote encoders/key of `text` or `vision`": EncoderPackSettings,
    "Limits/key": LimitSettings,
    "Compressed bodies/key of `encodings`": EncodingSettings,
    "Remote images/key of `remote_images`": RemoteImageSettings,
    "Responses/key of `responses`": ResponseSettings,
    "Responses/key of `checks`": CheckSettings,
    "Responses/key of `respond` in a check": CheckRefusalSettings,
    "Responses/key of `hold_back`": HoldBackSettings,
    "Records/key of `records`": RecordSettings,
    "Records/key of `capture`": CaptureSettings,
    "Shadow/key of `shadow`": ShadowSettings,
    "Paths of LLM requests/key": ApiRuleSettings,
    "Projections/key of `partition`": PartitionSettings,
    "Projections/key of `score`": ScoreSettings,
    "Projections/key of `band`": BandSettings,
    "Decisions/key": DecisionSettings,
    "Decisions/key of `route`": RouteSettings,
    "Decisions/key of `respond`": RespondSettings,
    "Select/word": SelectSettings,
    "Profiles/key": ProfileSettings,
    "Profiles/key of `header`": ProfileHeaderSettings,
}
"""The guide's tables of keys, by heading and first cell, and the mapping whose keys each explains."""


def tables() -> dict[str, list[str]]:
    """Keys of each table, in its order; a cell may name several."""
    found: dict[str, list[str]] = {}
    heading, table = "", ""
    lines = GUIDE.splitlines()
    for line, following in pairwise([*lines, ""]):
        if line.startswith("#"):
            heading = line.lstrip("# ")
        cell = line.removeprefix("| ").partition(" |")[0]
        if following.startswith("|---"):
            table = f"{heading}/{cell}"
        elif line.startswith("| `") and table in TABLES:
            found.setdefault(table, []).extend(re.findall(r"`([a-z_]+)`", cell))
    return found


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_the_guide_explains_all_keys_and_no_others(table: str) -> None:
    assert sorted(tables()[table]) == sorted(TABLES[table].model_fields)


SPOKEN: tuple[type[BaseModel], ...] = (
    PriceSettings,
    IntervalSettings,
    ProjectionSettings,
    *(
        each
        for each in vars(selecting).values()
        if isinstance(each, type) and issubclass(each, selecting.SelectSection)
    ),
)
"""Mappings without a table of their own."""


@pytest.mark.parametrize("section", SPOKEN, ids=lambda section: section.__name__)
def test_a_mapping_without_a_table_is_explained_in_the_text(section: type[BaseModel]) -> None:
    words = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`\n]+)`", GUIDE))))
    assert not section.model_fields.keys() - words


def test_every_mapping_of_the_policy_is_in_the_guide() -> None:
    models = [
        each
        for module in (handling, schema, selecting)
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, BaseModel) and each.model_fields
    ]
    assert not set(models) - {*TABLES.values(), *SPOKEN}


def test_the_guide_names_every_word_of_select() -> None:
    assert set(tables()["Select/word"]) == set(WORDS.values())


def snippets() -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def test_the_snippets_of_the_guide_are_together_one_policy_without_findings(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("".join(snippets()), encoding="utf-8")
    checked = check(policy)
    assert checked.problems == ()
    assert [each.finding.message for each in checked.lints] == []


def test_the_schema_in_the_repository_is_that_of_the_code() -> None:
    same = (DOCS / SCHEMA_FILE).read_text(encoding="utf-8") == policy_schema_text()
    assert same, AGAIN


def test_the_reference_of_signals_in_the_repository_is_that_of_the_code() -> None:
    same = (DOCS / SIGNALS_FILE).read_text(encoding="utf-8") == signals_reference()
    assert same, AGAIN


def test_writing_the_reference_names_what_was_written(tmp_path: Path) -> None:
    assert write_reference(tmp_path) == (tmp_path / SCHEMA_FILE, tmp_path / SIGNALS_FILE)
    assert (tmp_path / SIGNALS_FILE).read_text(encoding="utf-8") == signals_reference()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_says_what_it_costs_and_what_it_cannot_see(family: str) -> None:
    text = family_docs(family).text
    assert re.search(r"\bcosts?\b", text, re.IGNORECASE)
    assert re.search(r"\b(can't see|sees)\b", text)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_snippet_of_a_family_is_a_policy_of_it(family: str) -> None:
    data = parse_yaml(Path(f"{family}.yaml"), family_docs(family).snippet.encode()).data
    assert list(data) == [family]
    for settings in data[family].values():
        FAMILIES[family].settings.model_validate(settings)


def family_keys() -> Iterator[tuple[str, str]]:
    return ((family, key) for family, row in FAMILIES.items() for key in row.settings.model_fields)


@pytest.mark.parametrize(("family", "key"), list(family_keys()))
def test_a_setting_of_a_signal_is_read(family: str, key: str) -> None:
    name = FAMILIES[family].settings.__name__
    assert is_read(key, name, [each for each, module in modules().items() if name in module.names])


def section_keys() -> Iterator[tuple[type[BaseModel], str]]:
    """All but those of mappings that are taken as a whole, which have tests below, and `version`, which is always 1."""
    taken_whole = (IntervalSettings, SelectSettings, PickSettings)
    return (
        (section, key)
        for section in (*TABLES.values(), *SPOKEN)
        if section not in taken_whole
        for key in section.model_fields
        if key != "version"
    )


@pytest.mark.parametrize(("section", "key"), list(section_keys()))
def test_a_key_of_the_policy_is_read(section: type[BaseModel], key: str) -> None:
    name = section.__name__
    readers = [
        each
        for each, module in modules().items()
        if not each.startswith("router.config.imports.")
        and (each.startswith("router.config.") or module.names & {name, "LoadedPolicy"})
    ]
    if section is EncoderSettings and key in ("text", "vision"):
        readers = ["router.extproc.machinery"]
    assert is_read(key, name, readers)


@pytest.mark.parametrize("word", SelectSettings.model_fields)
def test_a_word_of_select_becomes_the_selection_of_that_name(word: str) -> None:
    needed = {"weighted": {"weights": {"small": 1}}, "hybrid": {"pick": "elo"}}
    assert WORDS[type(read_select(SelectSettings.model_validate({word: needed.get(word, {})})))] == word


@pytest.mark.parametrize("word", PickSettings.model_fields)
def test_a_pick_becomes_the_selection_of_that_name(word: str) -> None:
    assert WORDS[type(PickSettings.model_validate({word: {}}).chosen.made())] == word


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_bound_is_one_of_an_interval(bound: str) -> None:
    assert bound in IntervalSettings.model_fields
    assert read_interval({bound: 0.5}) != read_interval({})


def engine_fields() -> Iterator[tuple[type, str]]:
    """Of everything that a policy file is turned into."""
    for module in (policy_model, policy_projection, selection_model, selection_upstream):
        for each in vars(module).values():
            if dataclasses.is_dataclass(each) and isinstance(each, type) and each.__module__ == module.__name__:
                yield from ((each, one.name) for one in dataclasses.fields(each))


@pytest.mark.parametrize(("kind", "name"), list(engine_fields()))
def test_what_a_key_is_turned_into_is_read_beyond_the_loading(kind: type, name: str) -> None:
    assert is_read(name, kind.__name__, [each for each in modules() if not each.startswith("router.config.")])
