from __future__ import annotations

from pathlib import Path

import pytest

from router.config.conditions import Askable
from router.config.lint import lint
from router.config.load import parse_policy
from router.config.problems import PolicyError
from router.config.projections import read_projections
from router.config.schema import ProjectionSettings
from router.policy.model import AtLeast, Policy
from router.policy.predicate import Interval, Leaf
from router.policy.projection import Band, Member, Partition, WeightedScore
from router.signals.base import SignalName

HEAD = """
version: 1
upstreams: [{model: small, cluster: c}]
default_model: small
encoders: {text: starter, vision: starter}
trusted_headers: [X-Team]
signals:
  jailbreak: {attack: {}}
  embedding: {money: {texts: [a loan]}, health: {texts: [an illness]}}
  context: {long: {min_tokens: 1000}}
  image: {id: {concepts: [a passport]}}
"""


def load(text: str) -> Policy:
    return parse_policy((HEAD + text).encode(), Path("policy.yaml")).policy


def problems(text: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        load(text)
    return [problem.message for problem in caught.value.problems]


def when(condition: str) -> str:
    return f"decisions: [{{name: d, when: {condition}, route: {{models: [small]}}}}]"


def test_projections_are_read_in_an_order_in_which_each_comes_after_what_it_reads() -> None:
    policy = load("""
projections:
  score:
    total: {inputs: [{score: risk, weight: 2}, {partition: subject, label: money, weight: 1}], offset: -1}
    risk: {inputs: [{jailbreak: attack, weight: 0.7}, {context: long, gte: 5000, weight: 0.3}], threshold: 0.5}
  partition:
    subject: {of: [embedding/money, embedding/health], method: softmax, temperature: 0.1, none: 0.3}
  band:
    level: {of: total, bands: {low: {lt: 0.5}, high: {gte: 0.5}}}
""")
    assert [str(projection.name) for projection in policy.projections] == [
        "partition/subject",
        "score/risk",
        "score/total",
        "band/level",
    ]
    subject, risk, total, level = policy.projections
    assert isinstance(subject, Partition)
    assert subject.members[0] == Member(SignalName("embedding", "money"), "money")
    assert isinstance(risk, WeightedScore)
    assert [(each.by, each.weight) for each in risk.inputs] == [("score", 0.7), ("match", 0.3)]
    assert isinstance(total, WeightedScore)
    assert [each.by for each in total.inputs] == ["value", "match"]
    assert isinstance(level, Band)
    assert level.ranges == (("low", Interval(None, 0.5)), ("high", Interval(0.5, None)))


def test_conditions_ask_for_numbers_and_labels() -> None:
    policy = load(
        "projections: {partition: {subject: {of: [embedding/money, embedding/health]}}}\n"
        + when("{at_least: 2, of: [{context: long, gt: 10, lte: 20}, {partition: subject, label: [money, none]}]}")
    )
    tree = policy.decisions[0].when
    assert isinstance(tree, AtLeast)
    assert tree.least == 2
    assert tree.of == (
        Leaf(SignalName("context", "long"), Interval(10, 20, above=True, closed=True)),
        Leaf(SignalName("partition", "subject"), labels=frozenset(("money", "none"))),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (when("{context: long, gte: many}"), "gte takes a number"),
        (when("{context: long, gte: 5, lt: 5}"), "no number lies between these bounds"),
        (when("{context: long, gte: 5, gt: 5}"), "no number lies between these bounds"),
        (when("{conversation: has_images, label: cat}"), "it has no labels to tell apart; ask for its name alone"),
        (when("{not: {context: long}, gte: 4}"), "not takes no predicates; they belong to a signal"),
        (
            when("{at_least: 3, of: [{context: long}]}"),
            "at_least takes a whole number from 1 to the number of conditions",
        ),
        (when("{at_least: 1}"), "at_least goes with `of`: {at_least: 2, of: [..]}"),
        (when("{score: risk}"), 'no projection "risk" under projections.score'),
        (
            "projections: {score: {risk: {inputs: [{jailbreak: attack, weight: 1}]}}}\n" + when("{score: risk}"),
            'score "risk" does not match by itself; ask for a number, such as gte: 0.5, or a threshold of its own',
        ),
        (
            "projections: {band: {b: {of: {context: long}, bands: {x: {lt: 5}, y: {gte: 5}}}}}\n" + when("{band: b}"),
            'band "b" does not match by itself; ask for a label',
        ),
        (
            "projections: {band: {b: {of: {context: long}, bands: {x: {lt: 5}, y: {gte: 5}}}}}\n"
            + when("{band: b, label: z}"),
            'it never has the label "z"; it has x, y',
        ),
        (
            "projections: {band: {b: {of: {context: long}, bands: {x: {lt: 5}, y: {gte: 6}}}}}",
            'between "x" and "y" there is a gap; close it, or write gaps: allow',
        ),
        (
            "projections: {band: {b: {of: {context: long}, bands: {x: {lte: 5}, y: {gte: 5}}}}}",
            '"x" and "y" both have 5',
        ),
        (
            "projections: {band: {b: {of: {context: long}, bands: {x: {lt: 6}, y: {gte: 5}}}}}",
            '"x" and "y" overlap',
        ),
        (
            "projections: {band: {b: {of: {context: long}, bands: {x: {gte: 1}}}}}",
            'below "x" there is a gap; leave its lower bound away, or write gaps: allow',
        ),
        (
            "projections: {partition: {p: {of: [embedding/money, jailbreak/attack]}}}",
            "rivals must have scores of one kind, but jailbreak/attack is a probability, "
            "embedding/money is a similarity",
        ),
        (
            "projections: {partition: {p: {of: [embedding/money, embedding/mony]}}}",
            'no signal "embedding/mony", written as family/name; did you mean "embedding/money"?',
        ),
        (
            "projections: {partition: {p: {of: [embedding/money, embedding/money]}}}",
            "names a member twice",
        ),
        (
            "projections: {score: {a: {inputs: [{score: b, weight: 1}]}, b: {inputs: [{score: a, weight: 1}]}}}",
            "reads itself: score/a -> score/b -> score/a",
        ),
        (
            "projections: {score: {a: {inputs: [{jailbreak: attack}]}}}",
            "needs a weight, a number",
        ),
        (
            "projections: {score: {a: {inputs: [{jailbreak: attack, weight: 1, by: value}]}}}",
            "jailbreak counts nothing; use by: score or by: match",
        ),
        (
            "profiles: [{name: p, header: {name: x-role, any: [a]}}]",
            '"x-role" is not among trusted_headers, so that any client could set it; list it there if none can',
        ),
        (
            "profiles: [{name: p, header: {name: x-team, any: [a]}}, {name: q, header: {name: X-Team, any: [b, A]}}]",
            '"A" leads to profiles[0] already',
        ),
        ("profiles: [{name: p}]", "needs models or header, or no request will ever have this profile"),
        ("profiles: [{name: p, models: [small]}]", '"small" is an upstream; a profile needs a name of its own'),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    assert problems(text) == [message]


def test_gaps_are_allowed_where_the_policy_says_so() -> None:
    [band] = load(
        "projections: {band: {b: {of: {context: long}, gaps: allow, bands: {x: {lt: 5}, y: {gte: 6}}}}}"
    ).projections
    assert isinstance(band, Band)


def test_a_score_needs_no_bounds_beyond_the_unit_interval() -> None:
    load("projections: {band: {b: {of: {jailbreak: attack}, bands: {x: {gte: 0, lt: 0.5}, y: {gte: 0.5, lte: 1}}}}}")


def test_a_profile_has_the_policys_guards_its_own_routes_and_its_own_default() -> None:
    policy = load("""
decisions:
  - {name: guard, guard: true, when: {jailbreak: attack}, respond: {message: No.}}
  - {name: route, when: {context: long}, route: {models: [small]}}
profiles:
  - name: team
    models: [auto-team]
    header: {name: X-Team, any: [Blue]}
    decisions: [{name: own, when: {context: long}, route: {models: [small]}}]
""")
    [team] = policy.profiles
    assert [decision.name for decision in team.decisions] == ["guard", "own"]
    assert (team.models, team.header, team.values, team.default_model) == (
        frozenset(("auto-team",)),
        "x-team",
        frozenset(("blue",)),
        "small",
    )


def test_confidence_first_puts_all_routes_on_one_tier_but_no_guards() -> None:
    policy = load("""
strategy: confidence
decisions:
  - {name: guard, priority: 7, guard: true, when: {jailbreak: attack}, respond: {message: No.}}
  - {name: route, priority: 7, when: {context: long}, route: {models: [small]}}
""")
    assert [decision.tier for decision in policy.decisions] == [7, 0]


def test_a_chain_of_thousands_is_read_in_the_order_of_its_computation() -> None:
    links = 2000
    rows = {f"s{index}": {"inputs": [{"score": f"s{index + 1}", "weight": 1}]} for index in range(links)}
    rows[f"s{links}"] = {"inputs": [{"keyword": "k", "weight": 1, "by": "match"}]}
    found, _ = read_projections(
        ProjectionSettings.model_validate({"score": rows}), {"keyword": {"k": Askable()}}, lambda *_: pytest.fail()
    )
    assert [each.name.name for each in found] == [f"s{index}" for index in range(links, -1, -1)]


def test_a_threshold_of_0_is_not_reached_where_nothing_is_there_to_be_judged() -> None:
    text = """
decisions:
  - {name: wary, priority: 2, when: {jailbreak: attack}, respond: {message: No.}}
  - {name: rest, priority: 1, when: {not: {jailbreak: attack}}, route: {models: [small]}}
"""
    policy = (HEAD + text).replace("attack: {}", "attack: {threshold: 0}").encode()
    kinds = {each.finding.kind for each in lint(parse_policy(policy, Path("policy.yaml")))}
    assert not {"always-true", "never-true", "shadowed"} & kinds
