from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vsr_example import plain, routing, told

from router.config.imports.ledger import Ledger
from router.config.imports.node import Node
from router.config.imports.reasons import reason_of, splits
from router.config.imports.rules import Rules
from router.config.imports.signals import Signals
from router.config.yaml_source import parse_yaml

KNOWN = ("a", "b", "n")
"""n is a rule of theirs that means the opposite of a signal of ours."""
LOST = ("x", "y")

_leaf = st.sampled_from([*KNOWN, *LOST]).map(lambda name: {"type": "keyword", "name": name})
_trees = st.recursive(
    _leaf,
    lambda inner: st.fixed_dictionaries(
        {"operator": st.sampled_from(["AND", "OR", "NOT"]), "conditions": st.lists(inner, min_size=1, max_size=3)}
    ).map(lambda node: {**node, "conditions": node["conditions"][:1]} if node["operator"] == "NOT" else node),
    max_leaves=8,
)


def theirs(tree: dict[str, Any], truth: dict[str, bool]) -> bool:
    if "type" in tree:
        return truth[tree["name"]]
    parts = [theirs(child, truth) for child in tree["conditions"]]
    return not parts[0] if tree["operator"] == "NOT" else all(parts) if tree["operator"] == "AND" else any(parts)


def ours(condition: Any, truth: dict[str, bool]) -> bool:
    if isinstance(condition, bool):
        return condition
    [(key, inner)] = condition.items()
    match key:
        case "all":
            return all(ours(each, truth) for each in inner)
        case "any":
            return any(ours(each, truth) for each in inner)
        case "not":
            return not ours(inner, truth)
    return truth["n"] is False if inner == "n" else truth[inner]


def read(tree: dict[str, Any]) -> Any:
    source = parse_yaml(Path("rules.yaml"), json.dumps(tree).encode())
    ledger = Ledger(source, reason_of, splits)
    signals = Signals(ledger)
    signals.mean("keyword", "a", {"keyword": "a"})
    signals.mean("keyword", "b", {"keyword": "b"})
    signals.mean("keyword", "n", {"not": {"keyword": "n"}})
    return Rules(signals, lambda kind, name: None).read(Node(ledger, (), source.data))


@settings(deadline=None, max_examples=200)
@given(_trees)
def test_what_is_lost_makes_a_decision_match_less_and_never_more(tree: dict[str, Any]) -> None:
    condition = read(tree)
    whole = not any(name in str(tree) for name in ("'x'", "'y'"))
    for values in product((False, True), repeat=len(KNOWN) + len(LOST)):
        truth = dict(zip((*KNOWN, *LOST), values, strict=True))
        mine = ours(condition, truth)
        assert not mine or theirs(tree, truth)
        assert not whole or mine == theirs(tree, truth)


SIGNALS = """\
signals:
  keywords:
    - {name: fast, operator: OR, keywords: [fast]}
    - {name: slow, operator: OR, keywords: [slow]}
decisions:
  - name: first
    rules: RULES
    modelRefs: [{model: large}]
"""


def when(rules: str) -> Any:
    [decision] = plain(routing(SIGNALS.replace("RULES", rules)))["decisions"]
    return decision["when"]


def test_operators_become_all_any_and_not() -> None:
    fast, slow = "{type: keyword, name: fast}", "{type: keyword, name: slow}"
    assert when(fast) == {"keyword": "fast"}
    assert when(f"{{operator: AND, conditions: [{fast}, {slow}]}}") == {
        "all": [{"keyword": "fast"}, {"keyword": "slow"}]
    }
    assert when(f"{{operator: or, conditions: [{fast}, {slow}]}}") == {
        "any": [{"keyword": "fast"}, {"keyword": "slow"}]
    }
    assert when(f"{{operator: NOT, conditions: [{fast}]}}") == {"not": {"keyword": "fast"}}
    assert when(f"{{operator: NOR, conditions: [{fast}, {slow}]}}") == {
        "not": {"any": [{"keyword": "fast"}, {"keyword": "slow"}]}
    }


def test_a_decision_without_conditions_matches_every_request() -> None:
    result = routing(SIGNALS.replace("RULES", "{operator: AND, conditions: []}"))
    policy = plain(result)
    assert policy["decisions"][0]["when"] == {"conversation": "any_request"}
    assert policy["signals"]["conversation"] == {"any_request": {"min_turns": 0}}


@pytest.mark.parametrize("rules", ["{type: kb, name: secret}", "{operator: OR, conditions: []}", "{operator: XOR}"])
def test_a_decision_that_can_never_match_is_lost(rules: str) -> None:
    result = routing(SIGNALS.replace("RULES", rules))
    assert "decisions" not in plain(result)
    assert "routing.decisions[0]" in told(result, "lost")


def test_a_lost_alternative_is_named_with_its_place() -> None:
    rules = "{operator: OR, conditions: [{type: keyword, name: fast}, {type: keyword, name: fats}]}"
    result = routing(SIGNALS.replace("RULES", rules))
    assert plain(result)["decisions"][0]["when"] == {"keyword": "fast"}
    assert 'no keyword signal "fats"' in told(result, "lost")["routing.decisions[0].rules.conditions[1]"]


def test_what_a_condition_asks_beyond_a_name_is_never_passed_over() -> None:
    result = routing(SIGNALS.replace("RULES", "{type: keyword, name: fast, predicate: {gte: 3}}"))
    assert "decisions" not in plain(result)
    assert "beyond its name" in told(result, "lost")["routing.decisions[0]"]


def test_very_deep_trees_are_cut_and_listed() -> None:
    rules = "{type: keyword, name: fast}"
    for _ in range(70):
        rules = f"{{operator: NOT, conditions: [{rules}]}}"
    assert any("deeper" in why for why in told(routing(SIGNALS.replace("RULES", rules)), "lost").values())


def test_composed_complexity_holds_only_with_its_conditions() -> None:
    result = routing(
        """\
        signals:
          context: [{name: long, min_tokens: 8K}]
          complexity:
            - name: proof
              threshold: 0.1
              hard: {candidates: [prove it]}
              easy: {candidates: [say hello]}
              composer: {operator: AND, conditions: [{type: context, name: long}]}
        decisions:
          - {name: one, priority: 2, rules: {type: complexity, name: "proof:hard"}, modelRefs: [{model: large}]}
          - {name: two, priority: 1, rules: {type: complexity, name: "proof:easy"}, modelRefs: [{model: small}]}
        """
    )
    one, two = plain(result)["decisions"]
    assert one["when"] == {"all": [{"complexity": "proof"}, {"context": "long"}]}
    assert two["when"] == {"complexity": "proof", "lt": -0.1}


def test_a_composer_that_asks_for_itself_ends() -> None:
    result = routing(
        """\
        signals:
          complexity:
            - {name: loop, threshold: 0.1, composer: {conditions: [{type: complexity, name: "loop:hard"}]}}
        decisions:
          - {name: one, rules: {type: complexity, name: "loop:hard"}, modelRefs: [{model: large}]}
        """
    )
    assert "loop" in str(plain(result)["decisions"][0]["when"])
