from __future__ import annotations

from typing import Any

import pytest
from vsr_example import loaded, plain, routing, told

SIGNALS = """\
signals:
  keywords: [{name: w, operator: OR, keywords: [word]}]
  embeddings:
    - {name: a, threshold: 0.5, candidates: [x]}
    - {name: b, threshold: 0.5, candidates: [y]}
  jailbreak: [{name: attack, threshold: 0.7}]
  kb: [{name: k}]
"""


def with_signals(text: str) -> Any:
    return routing(SIGNALS + text)


def decision(fields: str, rules: str = "{type: keyword, name: w}") -> Any:
    return with_signals(f"decisions: [{{name: d, rules: {rules}, {fields}}}]\n")


BOTH = "modelRefs: [{model: small, weight: 0.3}, {model: large, weight: 0.7}]"


def test_weights_without_an_algorithm_are_shares() -> None:
    route = plain(decision(BOTH))["decisions"][0]["route"]
    assert route == {"models": ["small", "large"], "select": {"weighted": {"weights": {"small": 0.3, "large": 0.7}}}}


@pytest.mark.parametrize(
    ("algorithm", "select"),
    [
        ("{type: static}", None),
        ("{type: elo}", "elo"),
        ("{type: rl_driven}", "bandit"),
        (
            "{type: latency_aware, latency_aware: {ttft_percentile: 95, tpot_percentile: 90}}",
            {"fastest": {"percentile": 95}},
        ),
        ("{type: hybrid, hybrid: {cost_weight: 0.1}}", {"hybrid": {"pick": "elo"}}),
        ("{type: remom, remom: {breadth_schedule: [2]}}", None),
        ("{type: router_dc}", None),
        ("{type: from_the_future}", None),
    ],
)
def test_algorithms_that_have_a_counterpart_are_carried_and_the_others_listed(algorithm: str, select: Any) -> None:
    result = decision(f"{BOTH}, algorithm: {algorithm}")
    assert plain(result)["decisions"][0]["route"].get("select") == select
    if select is None and "static" not in algorithm:
        assert "first model" in told(result, "lost")["routing.decisions[0].algorithm"]


def test_an_algorithm_over_one_model_is_moot() -> None:
    result = decision("modelRefs: [{model: large}], algorithm: {type: fusion, fusion: {x: 1}}")
    assert "routing.decisions[0].algorithm" in told(result, "moot")


def test_a_fast_response_answers_at_once() -> None:
    fields = "modelRefs: [{model: large}], plugins: [{type: fast_response, configuration: {message: Not now.}}]"
    result = decision(fields)
    assert plain(result)["decisions"][0]["respond"] == {"clarify": "Not now."}
    assert "guard" not in plain(result)["decisions"][0]


def test_an_answer_to_an_attack_becomes_a_guard_only_where_it_came_before_every_route() -> None:
    answer = "plugins: [{type: fast_response, configuration: {message: No.}}]"
    rows = f"""\
decisions:
  - {{name: stop, priority: 9, rules: {{type: jailbreak, name: attack}}, {answer}}}
  - {{name: late, priority: 1, rules: {{type: jailbreak, name: attack}}, {answer}}}
  - {{name: way, priority: 5, rules: {{type: keyword, name: w}}, modelRefs: [{{model: large}}]}}
"""
    found = {each["name"]: each.get("guard", False) for each in plain(with_signals(rows))["decisions"]}
    assert found == {"stop": True, "late": False, "way": False}


def test_an_action_becomes_a_guard() -> None:
    result = decision("action: {type: route, destination: large}, modelRefs: [{model: small}]")
    [made] = plain(result)["decisions"]
    assert (made["guard"], made["route"]) == (True, {"models": ["large"]})
    assert "guard" in told(result, "changed")["routing.decisions[0].action.type"]


def test_plugins_are_listed_and_those_switched_off_are_moot() -> None:
    result = decision(
        "modelRefs: [{model: large}], plugins: [{type: semantic-cache, configuration: {enabled: true}}, "
        "{type: rag, configuration: {enabled: no}}, {type: novelty}]"
    )
    assert "cache" in told(result, "lost")["routing.decisions[0].plugins[0]"]
    assert "routing.decisions[0].plugins[1]" in told(result, "moot")
    assert "no counterpart" in told(result, "lost")["routing.decisions[0].plugins[2]"]


def test_reasoning_is_listed_by_its_keys() -> None:
    result = decision("modelRefs: [{model: large, use_reasoning: false, reasoning_effort: high}]")
    assert told(result, "lost").keys() >= {
        "routing.decisions[0].modelRefs[0].use_reasoning",
        "routing.decisions[0].modelRefs[0].reasoning_effort",
    }


def test_names_of_decisions_are_normalised_told_apart_and_not_reserved() -> None:
    row = "{name: NAME, rules: {type: keyword, name: w}, modelRefs: [{model: large}]}"
    rows = "".join(f"  - {row.replace('NAME', name)}\n" for name in ("a b", "a-b", "default", '"ä"'))
    names = [each["name"] for each in plain(with_signals("decisions:\n" + rows))["decisions"]]
    assert names == ["a-b", "a-b_2", "default_2", "decision"]


def test_rivals_are_asked_through_their_partition_and_the_default_stands_for_none() -> None:
    result = with_signals(
        """\
projections: {partitions: [{name: p, semantics: exclusive, members: [a, b], default: b}]}
decisions:
  - {name: one, priority: 2, rules: {type: embedding, name: a}, modelRefs: [{model: large}]}
  - {name: two, priority: 1, rules: {type: embedding, name: b}, modelRefs: [{model: small}]}
"""
    )
    policy = plain(result)
    assert policy["projections"]["partition"] == {"p": {"of": ["embedding/a", "embedding/b"]}}
    assert [each["when"] for each in policy["decisions"]] == [
        {"partition": "p", "label": "a"},
        {"partition": "p", "label": ["b", "none"]},
    ]


HALVES = "outputs: [{name: low, lt: 0.5}, {name: high, gte: 0.5}]"


def scored(inputs: str, mapping: str = "") -> Any:
    return with_signals(
        f"projections:\n  scores: [{{name: s, method: weighted_sum, inputs: [{inputs}]}}]\n"
        f"  mappings: [{{name: m, source: s, {mapping or HALVES}}}]\n"
        "decisions: [{name: d, rules: {type: projection, name: high}, modelRefs: [{model: large}]}]\n"
    )


def test_match_and_miss_become_a_weight_and_an_offset() -> None:
    policy = plain(scored("{type: keyword, name: w, weight: 0.5, match: 2, miss: -1}"))
    assert policy["projections"]["score"]["s"] == {
        "inputs": [{"keyword": "w", "weight": 1.5, "by": "match"}], "missing": "skip", "offset": -0.5,
    }  # fmt: skip
    assert policy["projections"]["band"]["m"] == {"of": "s", "bands": {"low": {"lt": 0.5}, "high": {"gte": 0.5}}}
    assert policy["decisions"][0]["when"] == {"band": "m", "label": "high"}


def test_confidence_becomes_the_score_where_there_is_one() -> None:
    policy = plain(scored("{type: embedding, name: a, weight: 0.5, value_source: confidence}"))
    assert policy["projections"]["score"]["s"]["inputs"] == [{"embedding": "a", "weight": 0.5, "by": "score"}]


def test_gaps_are_allowed_and_overlaps_compare_the_score() -> None:
    some = "{type: keyword, name: w, weight: 1}"
    gap = plain(scored(some, "outputs: [{name: high, gte: 0.5, lt: 0.9}]"))
    assert gap["projections"]["band"]["m"]["gaps"] == "allow"
    overlap = plain(scored(some, "outputs: [{name: low, lt: 0.6}, {name: high, gte: 0.5}]"))
    assert "band" not in overlap["projections"]
    assert overlap["decisions"][0]["when"] == {"score": "s", "gte": 0.5}


def test_a_score_without_inputs_takes_its_mapping_and_decision_along() -> None:
    result = scored("{type: kb, name: k, weight: 1}")
    assert "projections" not in plain(result)
    assert told(result, "lost").keys() >= {
        "routing.projections.scores[0]",
        "routing.projections.mappings[0]",
        "routing.decisions[0]",
    }


def test_strategy_and_unknowns_are_carried() -> None:
    result = routing(
        SIGNALS + "strategy: confidence\n"
        "decisions:\n"
        "  - {name: d, rules: {on_unknown: match, type: keyword, name: w}, modelRefs: [{model: large}]}\n"
    )
    assert plain(result)["strategy"] == "confidence"
    assert loaded(result).policy.decisions[0].unknown_matches
