"""The JSON Schema accepts what the loader accepts, refuses what is wrong in itself, and describes every key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from router.cli.schema import run_schema
from router.config.family_docs import family_docs
from router.config.json_schema import policy_schema
from router.config.load import parse_policy
from router.config.problems import PolicyError
from router.config.yaml_source import parse_yaml, read_yaml
from router.signals.registry import FAMILIES

ROOT = Path(__file__).parents[2]
SCHEMA = policy_schema()
VALIDATOR = Draft202012Validator(SCHEMA)

POLICY: dict[str, Any] = {
    "version": 1,
    "on_failure": "open",
    "strategy": "confidence",
    "trusted_headers": ["X-Team"],
    "upstreams": [
        {
            "model": "small",
            "cluster": "local",
            "endpoint": "http://127.0.0.1:8000",
            "price": {"input_per_million": 1, "output_per_million": 2.5},
            "quality": 0.5,
            "image_tokens": "fixed:576",
            "card": "short answers",
        },
        {
            "model": "large",
            "cluster": "remote",
            "modalities": ["text", "image"],
            "context_tokens": 1000,
            "capabilities": ["tools"],
            "price": {"input_per_million": 1, "output_per_million": 2.5},
            "quality": 1,
            "card": "long answers",
        },
    ],
    "default_model": "small",
    "fallback": ["large"],
    "encoders": {"text": "starter", "vision": "starter"},
    "limits": {"queue": 3},
    "parity": {"interval": 0},
    "encodings": {"unknown": "pass"},
    "remote_images": {"hosts": ["*.example.com:8443"], "bytes": 50},
    "responses": {"usage": True},
    "observe_only": True,
    "signals": {
        "secret": {"credential": None},
        "jailbreak": {"attack": {"threshold": 0.5}},
        "domain": {"topic": {}},
        "image": {"passport": {"concepts": ["a passport"]}, "cat": {"concepts": ["a cat"], "threshold": 0.25}},
        "context": {"long": {"min_tokens": 7}},
    },
    "projections": {
        "partition": {"what": {"of": ["image/passport", "image/cat"], "method": "softmax", "none": 0.5}},
        "score": {
            "risk": {
                "inputs": [{"jailbreak": "attack", "weight": 0.5}, {"band": "size", "label": "big", "weight": -2}],
                "threshold": 0.25,
            }
        },
        "band": {"size": {"of": {"context": "long"}, "bands": {"small": {"lt": 50}, "big": {"gte": 50}}}},
    },
    "decisions": [
        {
            "name": "guard",
            "guard": True,
            "priority": 9,
            "when": {"any": [{"secret": "credential", "gte": 0.5}, {"score": "risk"}, {"partition": "what"}]},
            "respond": {"status": 451, "code": "no", "message": "No."},
        },
        {
            "name": "route",
            "on_unknown": "match",
            "when": {"at_least": 1, "of": [{"not": {"domain": "topic", "label": ["law", "health"]}}]},
            "route": {"models": ["large", "small"], "select": {"hybrid": {"pick": "elo"}}, "fallback": ["small"]},
        },
        {
            "name": "shares",
            "when": {"all": [{"conversation": "has_images"}, {"band": "size", "label": "small"}]},
            "route": {
                "models": ["large", "small"],
                "select": {"weighted": {"weights": {"large": 1, "small": 2}, "sticky": "header", "header": "x-team"}},
            },
        },
    ],
    "profiles": [
        {
            "name": "team",
            "models": ["auto"],
            "header": {"name": "x-team", "any": ["a"]},
            "decisions": [
                {"name": "ask", "when": {"api": "streaming"}, "respond": {"clarify": "Which?"}},
            ],
        }
    ],
}
"""Holds, and has something of everything."""

SMALLEST: dict[str, Any] = {"version": 1, "upstreams": [{"model": "a", "cluster": "b"}], "default_model": "a"}


def accepts(data: Any) -> bool:
    return VALIDATOR.is_valid(data)


def loads(data: Any) -> bool:
    try:
        parse_policy(json.dumps(data).encode(), Path("policy.yaml"))
    except PolicyError:
        return False
    return True


def properties(schema: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every property that the schema defines, wherever it does; rules only take up what is defined."""
    if not isinstance(schema, dict):
        return
    for name, each in schema.get("properties", {}).items():
        yield f"{path}/{name}", each
        yield from properties(each, f"{path}/{name}")
    for keyword in ("items", "additionalProperties"):
        yield from properties(schema.get(keyword), path)
    for each in schema.get("patternProperties", {}).values():
        yield from properties(each, path)
    for each in schema.get("anyOf", ()):
        yield from properties(each, path) if "type" in each else ()
    for name, each in schema.get("$defs", {}).items():
        yield from properties(each, f"{path}/{name}")


def test_the_schema_is_one_of_its_dialect() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_every_property_has_a_description() -> None:
    found = dict(properties(SCHEMA))
    assert len(found) > 300
    assert [path for path, each in found.items() if not isinstance(each, dict) or not each.get("description")] == []


def test_every_mapping_with_keys_of_its_own_refuses_others() -> None:
    closed = [SCHEMA, *SCHEMA["$defs"].values()]
    assert all(each["additionalProperties"] is False for each in closed if "properties" in each)


def test_every_definition_is_used() -> None:
    text = json.dumps(SCHEMA)
    assert [name for name in SCHEMA["$defs"] if f'"#/$defs/{name}"' not in text] == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/*/policy.yaml")), ids=lambda path: path.parent.name)
def test_an_example_is_accepted(path: Path) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(read_yaml(path).data)] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_the_snippet_of_a_family_is_accepted(family: str) -> None:
    signals = parse_yaml(Path("x.yaml"), family_docs(family).snippet.encode()).data
    assert [error.message for error in VALIDATOR.iter_errors(SMALLEST | {"signals": signals})] == []


def test_a_policy_with_something_of_everything_is_accepted_by_both() -> None:
    assert loads(POLICY)
    assert [error.message for error in VALIDATOR.iter_errors(POLICY)] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_a_built_in_name_is_accepted_in_conditions_and_refused_as_a_definition(family: str) -> None:
    for name in FAMILIES[family].builtins:
        decision = {"name": "d", "when": {family: name}, "respond": {"clarify": "?"}}
        assert accepts(SMALLEST | {"decisions": [decision]})
        assert not accepts(SMALLEST | {"signals": {family: {name: {"any": ["x"]}}}})


def _when(condition: Any) -> Callable[[dict[str, Any]], None]:
    return lambda policy: policy["decisions"][0].update(when=condition)


def _decision(**keys: Any) -> Callable[[dict[str, Any]], None]:
    def change(policy: dict[str, Any]) -> None:
        policy["decisions"][0] = {"name": "d", "when": {"secret": "credential"}} | keys

    return change


def _select(select: Any) -> Callable[[dict[str, Any]], None]:
    return _decision(route={"models": ["small", "large"], "select": select})


def _top(**keys: Any) -> Callable[[dict[str, Any]], None]:
    return lambda policy: policy.update(keys)


def _signal(family: str, name: str, data: Any) -> Callable[[dict[str, Any]], None]:
    return lambda policy: policy["signals"].setdefault(family, {}).update({name: data})


def _projection(kind: str, data: Any) -> Callable[[dict[str, Any]], None]:
    return lambda policy: policy["projections"][kind].update(new=data)


LEAF = {"secret": "credential"}

GOOD = {
    "a route that says no respond": _decision(route={"models": ["small"]}, respond=None),
    "a refusal with a message alone": _decision(respond={"message": "No.", "clarify": None}),
    "a clarification with nulls beside it": _decision(respond={"clarify": "?", "status": None, "code": None}),
    "a selection by a word": _select("cheapest"),
    "a selection without settings": _select({"bandit": None}),
    "a selection by another with settings": _select({"hybrid": {"pick": {"fastest": {"percentile": 95}}}}),
    "factors of its own": _select({"multi_factor": {"weights": {"load": 1}, "limits": {"max_load": 0.5}}}),
    "two ends of a range": _when({"secret": "credential", "gt": 0.1, "lte": 0.9}),
    "a tree of trees": _when({"not": {"all": [{"any": [LEAF]}, {"at_least": 2, "of": [LEAF, LEAF]}]}}),
    "a label of a partition": _when({"partition": "what", "label": "cat"}),
    "a signal without settings": _signal("secret", "other", None),
    "a band with an end that is null": _projection(
        "band", {"of": "risk", "bands": {"low": {"lt": 0.5, "lte": None}, "high": {"gte": 0.5}}}
    ),
    "a band of a score": _projection("band", {"of": {"score": "risk"}, "bands": {"any": {}}}),
    "an exclusive partition": _projection("partition", {"of": ["image/cat", "image/passport"]}),
    "a summand by value": _projection("score", {"inputs": [{"context": "long", "weight": 1e-3, "by": "value"}]}),
    "a summand that says no by": _projection("score", {"inputs": [{"secret": "credential", "weight": 1, "by": None}]}),
    "a price in whole numbers": lambda policy: policy["upstreams"][0].update(
        price={"input_per_million": 0, "output_per_million": 1}
    ),
}

BAD = {
    "an unknown key at the top": _top(decission=[]),
    "an unknown key of a signal": _signal("secret", "other", {"treshold": 0.5}),
    "an unknown family": _signal("keywords", "other", {"any": ["x"]}),
    "a signal's name with a blank": _signal("secret", "two words", {}),
    "a signal that needs settings and has none": _signal("image", "other", None),
    "a threshold above 1": _signal("secret", "other", {"threshold": 1.5}),
    "families that are a list": _top(signals=[]),
    "another version": _top(version=2),
    "no upstreams": _top(upstreams=[]),
    "a cluster with a blank": _top(upstreams=[{"model": "small", "cluster": "a b"}]),
    "an endpoint with a path": _top(upstreams=[{"model": "small", "cluster": "a", "endpoint": "http://a:1/v1"}]),
    "two outcomes": _decision(route={"models": ["small"]}, respond={"clarify": "?"}),
    "no outcome": _decision(),
    "two answers": _decision(respond={"clarify": "?", "message": "No."}),
    "a status with a clarification": _decision(respond={"clarify": "?", "status": 403}),
    "a refusal without a message": _decision(respond={"status": 403}),
    "a condition that is text": _when("secret"),
    "an empty condition": _when({}),
    "an empty list": _when({"all": []}),
    "two operators": _when({"all": [LEAF], "any": [LEAF]}),
    "two families": _when({"secret": "credential", "score": "risk"}),
    "an operator with a predicate": _when({"all": [LEAF], "gte": 0.5}),
    "a family and an operator": _when({"secret": "credential", "not": LEAF}),
    "at_least without of": _when({"at_least": 1}),
    "at_least none": _when({"at_least": 0, "of": [LEAF]}),
    "at_least of a number": _when({"at_least": 1, "of": 1}),
    "of without at_least": _when({"of": [LEAF]}),
    "predicates alone": _when({"gte": 0.5}),
    "an unknown operator": _when({"none": [LEAF]}),
    "one end twice": _when({"secret": "credential", "gte": 0.1, "gt": 0.2}),
    "a range of what has no number": _when({"api": "streaming", "gte": 1}),
    "a label of what has none": _when({"secret": "credential", "label": "x"}),
    "an empty label": _when({"domain": "topic", "label": []}),
    "a band without a label": _when({"band": "size"}),
    "a bound in words": _when({"secret": "credential", "gte": "much"}),
    "deep down": _when({"any": [LEAF, {"not": {"all": [{"secret": "credential", "gte": None}]}}]}),
    "an unknown word of select": _select("slowest"),
    "two words of select": _select({"elo": {}, "bandit": {}}),
    "weighted without weights": _select({"weighted": None}),
    "a header that nothing sticks to": _select({"weighted": {"weights": {"small": 1, "large": 1}, "header": "x-team"}}),
    "a partition of one": _projection("partition", {"of": ["image/cat"]}),
    "a member twice": _projection("partition", {"of": ["image/cat", "image/cat"]}),
    "a member that is a band": _projection("partition", {"of": ["image/cat", "band/size"]}),
    "a temperature without softmax": _projection(
        "partition", {"of": ["image/cat", "image/passport"], "temperature": 1}
    ),
    "a summand without a weight": _projection("score", {"inputs": [LEAF]}),
    "a summand that weighs too much": _projection("score", {"inputs": [LEAF | {"weight": 1e12}]}),
    "a summand by something else": _projection("score", {"inputs": [LEAF | {"weight": 1, "by": "label"}]}),
    "a band of what has no number": _projection("band", {"of": {"api": "streaming"}, "bands": {"any": {}}}),
    "a band with a blank in its name": _projection("band", {"of": "risk", "bands": {"so high": {}}}),
    "a range with one end twice": _projection("band", {"of": "risk", "bands": {"any": {"lt": 1, "lte": 1}}}),
    "a profile that nobody has": _top(profiles=[{"name": "p"}]),
    "a profile with an empty list": _top(profiles=[{"name": "p", "models": []}]),
}


@pytest.mark.parametrize("change", GOOD.values(), ids=GOOD.keys())
def test_what_holds_is_accepted(change: Callable[[dict[str, Any]], None]) -> None:
    policy = deepcopy(POLICY)
    change(policy)
    assert loads(policy)
    assert [error.message for error in VALIDATOR.iter_errors(policy)] == []


@pytest.mark.parametrize("change", BAD.values(), ids=BAD.keys())
def test_what_is_wrong_in_itself_is_refused(change: Callable[[dict[str, Any]], None]) -> None:
    policy = deepcopy(POLICY)
    change(policy)
    assert not loads(policy)
    assert not accepts(policy)


def test_a_number_in_quotes_is_forgiven_by_the_loader_alone() -> None:
    policy = POLICY | {"limits": {"queue": "3"}}
    assert loads(policy)
    assert not accepts(policy)


def test_the_command_prints_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_schema(None) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA


def test_the_command_writes_into_a_folder_that_is_there(tmp_path: Path) -> None:
    assert run_schema(tmp_path) == 0
    assert json.loads((tmp_path / "policy.schema.json").read_text(encoding="utf-8")) == SCHEMA
    assert run_schema(tmp_path / "nowhere") == 2
    assert run_schema(tmp_path / "policy.schema.json") == 2


Place = tuple[str | int, ...]


def _places(data: Any, here: Place = ()) -> Iterator[Place]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*here, key)
        yield from _places(value, (*here, key))


PLACES = list(_places(POLICY))
VALUES: list[Any] = [
    None,
    "",
    "x",
    "small",
    0,
    1,
    2,
    -1,
    0.5,
    2.5,
    10**12,
    True,
    False,
    [],
    {},
    ["x"],
    ["small"],
    {"x": 1},
]


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.sampled_from(PLACES), st.sampled_from(["put", "drop", "null"]), st.sampled_from(VALUES)),
        max_size=3,
    )
)
@settings(max_examples=200, deadline=None)
def test_whatever_loads_is_accepted(changes: list[tuple[Place, str, Any]]) -> None:
    policy = deepcopy(POLICY)
    for place, how, value in changes:
        holder: Any = policy
        try:
            for key in place[:-1]:
                holder = holder[key]
            before = holder[place[-1]]
        except (KeyError, IndexError, TypeError):
            continue
        if how == "drop":
            del holder[place[-1]]
        elif how == "null":
            holder[place[-1]] = None
        # The loader takes booleans for numbers and the other way round; the schema says that it does not.
        elif isinstance(before, bool) == isinstance(value, bool):
            holder[place[-1]] = value
    if loads(policy):
        assert [error.message for error in VALIDATOR.iter_errors(policy)] == []
