from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vsr_example import MODELS, WHOLE, imported, leaves, loaded, plain, told, unaccounted

from router.config.imports.vsr import Imported, import_vsr, translate
from router.config.problems import Location, PolicyError, dotted
from router.config.yaml_source import Position, YamlSource, parse_yaml

WHOLE_DATA = parse_yaml(WHOLE, WHOLE.read_bytes()).data


@pytest.fixture
def data() -> Any:
    return copy.deepcopy(WHOLE_DATA)


@pytest.fixture(scope="module")
def result() -> Imported:
    return import_vsr(WHOLE, WHOLE.read_bytes())


def as_json(data: Any) -> str:
    """JSON is YAML, too."""
    return json.dumps(data)


def said(result: Imported) -> tuple[list[str], list[tuple[Location, Any]]]:
    lines = result.text.splitlines()[3:]  # without the heading, which counts findings
    return lines, sorted(((each.location, each.reason) for each in result.findings), key=repr)


def test_every_leaf_is_carried_or_listed(data: Any, result: Imported) -> None:
    assert unaccounted(data, result) == []
    assert not result.complete


def test_no_leaf_is_both_carried_and_lost(result: Imported) -> None:
    gone = {each.location for each in result.findings if each.reason.kind != "changed"}
    both = [place for place in result.carried if any(place[:n] in gone for n in range(len(place) + 1))]
    assert both == []


def test_findings_stand_in_the_order_of_the_file_and_at_their_keys(result: Imported) -> None:
    lines = WHOLE.read_text().splitlines()
    places = [(each.line, each.column) for each in result.findings]
    assert places == sorted(places)
    for each in result.findings:
        key = each.location[-1]
        if isinstance(key, str):
            assert lines[each.line - 1][each.column - 1 :].lstrip('"').startswith(key)


def test_unknown_keys_are_listed_as_a_whole(result: Imported) -> None:
    lost = told(result, "lost")
    assert "not known" in lost["strange"]
    assert "not known" in lost["routing.modelCards[0].future_key"]


def test_findings_never_show_a_credential(result: Imported) -> None:
    shown = result.text + repr(result.findings)
    assert "sk-hidden" not in shown


def test_what_counts_as_carried_makes_a_difference(data: Any, result: Imported) -> None:
    """Changing a carried leaf changes the policy, its comments or the findings, or makes the file wrong."""
    before = said(translate(YamlSource(WHOLE, b"", data, {}, {(): Position(1, 1)})))
    idle = []
    for location, value in leaves(data):
        if location not in result.carried:
            continue
        other = copy.deepcopy(data)
        at = other
        for key in location[:-1]:
            at = at[key]
        at[location[-1]] = (
            not value if isinstance(value, bool) else value + "x" if isinstance(value, str) else value + 1
        )
        try:
            after = said(translate(YamlSource(WHOLE, b"", other, {}, {(): Position(1, 1)})))
        except PolicyError:
            continue
        if after == before:
            idle.append(dotted(location))
    assert idle == []


def test_yaml_and_json_of_the_same_data_say_the_same(data: Any, result: Imported) -> None:
    assert said(import_vsr(WHOLE, as_json(data).encode())) == said(result)


_word = st.sampled_from(
    [
        "urgent",
        "law",
        "computer science",
        "has_images",
        "needs_fact_check",
        "zh",
        "AR",
        "default",
        "a:hard",
        "ü ",
        "x" * 300,
    ]
)
_scalar = st.one_of(
    _word,
    st.booleans(),
    st.none(),
    st.integers(-3, 10),
    st.floats(-2, 2),
    st.sampled_from(["32K", "OR", "AND", "bm25"]),
)
_value = st.one_of(_scalar, st.lists(_word, max_size=3), st.dictionaries(_word, _scalar, max_size=2))
_KEYS = {
    "keywords": ["operator", "keywords", "method", "case_sensitive", "fuzzy_match", "fuzzy_threshold"],
    "embeddings": ["candidates", "threshold", "query_modality", "negative_candidates", "aggregation_method"],
    "domains": ["mmlu_categories", "description", "model_scores"],
    "fact_check": ["description"],
    "user_feedbacks": ["description"],
    "reasks": ["threshold", "lookback_turns"],
    "preferences": ["examples", "threshold", "description"],
    "language": ["threshold"],
    "context": ["min_tokens", "max_tokens"],
    "complexity": ["threshold", "hard_above", "easy_below", "composer"],
    "modality": ["description"],
    "jailbreak": ["threshold", "method", "direction", "include_history"],
    "pii": ["threshold", "pii_types_allowed"],
    "kb": ["kb", "match"],
    "events": ["event_types", "temporal"],
    "input_modality": ["modality"],
    "structure": ["feature", "predicate"],
    "conversation": ["feature", "predicate"],
    "novelty": ["what"],
}


@st.composite
def _rule(draw: st.DrawFn, family: str) -> dict[str, Any]:
    keys = draw(st.lists(st.sampled_from([*_KEYS[family], "unheard_of"]), unique=True, max_size=4))
    return {"name": draw(_word), **{key: draw(_value) for key in keys}}


@st.composite
def _tree(draw: st.DrawFn, depth: int = 0) -> dict[str, Any]:
    if depth > 2 or draw(st.booleans()):
        kinds = ["keyword", "domain", "embedding", "kb", "projection", "complexity", "modality", "nothing"]
        return {"type": draw(st.sampled_from(kinds)), "name": draw(_word)}
    return {
        "operator": draw(st.sampled_from(["AND", "OR", "NOT", "XOR"])),
        "conditions": draw(st.lists(_tree(depth=depth + 1), max_size=3)),
    }


@st.composite
def _configuration(draw: st.DrawFn) -> dict[str, Any]:
    families = draw(st.lists(st.sampled_from(sorted(_KEYS)), unique=True, max_size=5))
    decisions = st.fixed_dictionaries(
        {"name": _word, "rules": _tree()},
        optional={
            "priority": st.integers(-5, 5),
            "modelRefs": st.lists(
                st.fixed_dictionaries({"model": _word}, optional={"weight": st.floats(-1, 2)}), max_size=3
            ),
            "plugins": st.lists(st.fixed_dictionaries({"type": _word, "configuration": st.just({"message": "Hi"})})),
            "other": _value,
        },
    )
    return {
        "version": "v0.3",
        "providers": {"models": [{"name": "small"}, {"name": draw(_word)}]},
        "routing": {
            "signals": {family: draw(st.lists(_rule(family), max_size=3)) for family in families},
            "decisions": draw(st.lists(decisions, max_size=3)),
        },
    }


@settings(deadline=None, max_examples=80)
@given(_configuration())
def test_whatever_is_imported_loads_and_nothing_is_passed_over(data: dict[str, Any]) -> None:
    try:
        result = imported(as_json(data))
    except PolicyError as error:
        assert error.path.name == "config.yaml", "what was written does not load"
        assert all(problem.line >= 1 and problem.column >= 1 for problem in error.problems)
        return
    loaded(result)
    assert unaccounted(data, result) == []


@settings(max_examples=100)
@given(st.data())
def test_values_in_each_others_places_are_accounted_for_or_refused(drawn: st.DataObject) -> None:
    other = copy.deepcopy(WHOLE_DATA)
    values = list(leaves(other))
    for _ in range(drawn.draw(st.integers(1, 8))):
        location, value = drawn.draw(st.sampled_from(values))
        kin = [each for _, each in values if type(each) is type(value)]
        at = other
        for key in location[:-1]:
            at = at[key]
        at[location[-1]] = drawn.draw(st.sampled_from(kin))
    try:
        result = translate(YamlSource(WHOLE, b"", other, {}, {(): Position(1, 1)}))
    except PolicyError:
        return
    assert unaccounted(other, result) == []


@settings(deadline=None, max_examples=60)
@given(st.recursive(_scalar, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_word, inner, max_size=3)))
def test_any_value_in_the_place_of_a_section_is_imported_or_refused_with_a_place(value: Any) -> None:
    for section in ("signals", "projections", "decisions", "modelCards"):
        try:
            result = imported(MODELS + json.dumps({section: value})[1:-1].join(("routing: {", "}")))
        except PolicyError as error:
            assert (error.path.name, error.problems[0].line >= 7) == ("config.yaml", True)
            continue
        assert plain(result)["version"] == 1


def test_a_whole_configuration_of_defaults_loses_nothing() -> None:
    result = imported(MODELS + "routing: {}\n")
    assert result.complete
    assert result.findings == ()
    assert Path("policy.yaml") == loaded(result).path
