from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from router.config.load import LoadedPolicy, parse_policy
from router.config.problems import PolicyError
from router.policy.model import Route
from router.selection.model import (
    Bandit,
    Cheapest,
    Elo,
    Fastest,
    Hybrid,
    Limits,
    MultiFactor,
    Select,
    Similarity,
    Static,
    Weighted,
)
from router.selection.upstream import Price

POLICY = """\
version: 1
trusted_headers: [X-User]
upstreams:
  - {model: a, cluster: x, price: {input_per_million: 1, output_per_million: 2.5}, quality: 0.8, card: code,
     image_tokens: "openai_tiles:85+170", outputs: [text, image]}
  - {model: b, cluster: y, price: {input_per_million: 0, output_per_million: 0}, quality: 0.5, card: prose}
  - {model: bare, cluster: z}
default_model: a
encoders: {text: starter}
decisions:
  - name: one
    when: {conversation: has_images}
    route: {models: [a, b], select: SELECT}
"""


def load(select: str, policy: str = POLICY) -> LoadedPolicy:
    return parse_policy(policy.replace("SELECT", select).encode(), Path("p.yaml"))


def selection(select: str) -> Select:
    outcome = load(select).policy.decisions[0].outcome
    assert isinstance(outcome, Route)
    return outcome.select


def refusal(select: str, policy: str = POLICY) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        load(select, policy)
    return [line.partition("route.select")[2] for line in caught.value.lines()]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("static", Static()),
        ("{static: }", Static()),
        ("{weighted: {weights: {a: 3, b: 1}}}", Weighted({"a": 3.0, "b": 1.0})),
        (
            "{weighted: {weights: {a: 3, b: 0}, sticky: header, header: X-User}}",
            Weighted({"a": 3.0, "b": 0.0}, "header", "x-user"),
        ),
        ("{weighted: {weights: {a: 3, b: 1}, sticky: request}}", Weighted({"a": 3.0, "b": 1.0}, "request")),
        ("cheapest", Cheapest(500)),
        ("{cheapest: {output_tokens: 9}}", Cheapest(9)),
        ("fastest", Fastest("ttft", 50, 0.05)),
        ("{fastest: {measure: latency, percentile: 95, explore: 0}}", Fastest("latency", 95, 0)),
        ("multi_factor", MultiFactor(1, 1, 1, 0)),
        (
            "{multi_factor: {weights: {quality: 2, latency: 0, cost: 3, load: 4}, limits: {min_quality: 0.1, "
            "max_cost: 0.2, max_latency_ms: 3, max_load: 0.4, output_tokens: 5}}}",
            MultiFactor(2, 0, 3, 4, Limits(0.1, 0.2, 3, 0.4, 5)),
        ),
        ("similarity", Similarity()),
        ("{elo: {explore: 0.5}}", Elo(0.5)),
        ("bandit", Bandit((1.0, 1.0))),
        ("{bandit: {prior: [2, 0.5]}}", Bandit((2.0, 0.5))),
        ("{hybrid: {pick: bandit}}", Hybrid(Bandit())),
        (
            "{hybrid: {limits: {max_load: 0.9}, first: 2, pick: {fastest: {explore: 0}}}}",
            Hybrid(Fastest(explore=0), Limits(max_load=0.9), 2),
        ),
    ],
)
def test_a_selection_is_what_is_written(written: str, expected: Select) -> None:
    assert selection(written) == expected


def test_it_is_static_where_nothing_is_written() -> None:
    outcome = load("", POLICY.replace(", select: SELECT", "")).policy.decisions[0].outcome
    assert isinstance(outcome, Route)
    assert outcome.select == Static()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("statik", '.statik: unknown key "statik"; did you mean "static"?'),
        ("{bandit: {priorr: [1, 1]}}", '.bandit.priorr: unknown key "priorr"; did you mean "prior"?'),
        ("{bandit: {prior: [0.4, 1]}}", ".bandit.prior[0]: input should be greater than or equal to 0.5"),
        ("{bandit: {}, elo: {}}", ": needs exactly one of static, weighted, "),
        ("{}", ": needs exactly one of static, weighted, "),
        ("7", ": must be a mapping"),
        ("[bandit]", ": must be a mapping"),
        ("{elo: {explore: .nan}}", ".elo.explore: input should be "),
        ("{hybrid: {first: 1}}", '.hybrid.pick: needs the key "pick"'),
        ("{hybrid: {pick: weighted}}", '.hybrid.pick.weighted: unknown key "weighted"'),
        ("{hybrid: {pick: bandit, first: 0}}", ".hybrid.first: input should be greater than or equal to 1"),
        ("{weighted: {weights: {a: 1, c: 1, b: 1}}}", '.weighted.weights.c: the route has no model "c"'),
        ("{weighted: {weights: {a: 1}}}", '.weighted.weights: needs a weight for "b" too; 0 if it is to have no share'),
        ("{weighted: {weights: {a: 0, b: 0}}}", ".weighted: one of the weights must be above 0"),
        ("{weighted: {weights: {a: -1, b: 0}}}", ".weighted.weights.a: input should be greater than or equal to 0"),
        ("{weighted: {weights: {a: 1, b: 1}, sticky: header}}", ".weighted: `sticky: header` and `header` go together"),
        (
            "{weighted: {weights: {a: 1, b: 1}, sticky: header, header: x-team}}",
            '.weighted.header: "x-team" is not among trusted_headers, so that any client could set it',
        ),
        ("{multi_factor: {weights: {quality: 0, latency: 0, cost: 0}}}", ".weights: one of the weights must be above"),
        ("{multi_factor: {weights: {speed: 1}}}", '.multi_factor.weights.speed: unknown key "speed"'),
        ("{hybrid: {pick: bandit, limits: {max_costs: 1}}}", '; did you mean "max_cost"?'),
    ],
)
def test_a_mistake_is_named_with_its_place(written: str, said: str) -> None:
    [line] = refusal(written)
    assert said in line


@pytest.mark.parametrize(
    ("written", "needed"),
    [
        ("cheapest", "price"),
        ("{multi_factor: {weights: {quality: 0}}}", "price"),
        ("{multi_factor: {weights: {cost: 0}}}", "quality"),
        ("{hybrid: {pick: elo, limits: {max_cost: 1}}}", "price"),
        ("{hybrid: {pick: elo, limits: {min_quality: 1}}}", "quality"),
        ("similarity", "card"),
        ("{hybrid: {pick: similarity}}", "card"),
    ],
)
def test_a_candidate_without_what_is_compared_is_a_mistake(written: str, needed: str) -> None:
    [line] = refusal(written, POLICY.replace("[a, b]", "[a, bare]"))
    assert line.endswith(f"needs `{needed}` of each candidate; bare has none")


@pytest.mark.parametrize("written", ["similarity", "{hybrid: {pick: similarity}}"])
def test_similarity_without_a_text_encoder_is_a_mistake(written: str) -> None:
    [line] = refusal(written, POLICY.replace("encoders: {text: starter}\n", ""))
    assert line.endswith("similarity needs encoders.text; for example `text: starter`")


def test_a_profiles_decisions_are_held_to_the_same() -> None:
    profile = "profiles:\n  - {name: p, models: [virtual], decisions: [{name: two, when: {conversation: has_images},"
    with pytest.raises(PolicyError) as caught:
        load("static", POLICY + profile + " route: {models: [bare], select: cheapest}}]}\n")
    [line] = caught.value.lines()
    assert "profiles[0].decisions[0].route.select.cheapest: cheapest needs `price`" in line


def test_what_is_known_of_a_model_reaches_its_upstream() -> None:
    loaded = load("static").policy
    a = loaded.upstream("a")
    assert (a.price, a.quality, a.card) == (Price(1, 2.5), 0.8, "code")
    assert (a.image_tokens, a.outputs) == ("openai_tiles:85+170", ("text", "image"))
    bare = loaded.upstream("bare")
    assert (bare.price, bare.quality, bare.card, bare.image_tokens, bare.outputs) == (None, None, "", "", ("text",))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("quality: 0.8", "quality: 1.1"),
        ("input_per_million: 1", "input_per_million: -1"),
        ("output_per_million: 2.5", "output_per_million: .inf"),
        ("openai_tiles:85+170", "openai_tile"),
        ("outputs: [text, image]", "outputs: [file, text]"),
        ("outputs: [text, image]", "outputs: []"),
    ],
)
def test_what_no_model_can_have_is_a_mistake(old: str, new: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load("static", POLICY.replace(old, new))
    assert len(caught.value.problems) == 1


def test_a_mistake_stands_with_its_line(refused: Callable[[str], list[str]]) -> None:
    [line] = refused("""\
        decisions:
          - name: one
            when: {conversation: has_images}
            route:
              models: [small, large]
              select:
                bandit: {prios: [1, 1]}
    """)
    assert line.startswith("policy.yaml:12:")
