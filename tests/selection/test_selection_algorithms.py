from __future__ import annotations

from collections import Counter

import pytest
from selection_cases import DECISION, after, facts, needs, rewarded, upstream

from router.selection import bandit, cheapest, elo, fastest, multi_factor, similarity, static
from router.selection.choice import seed_of
from router.selection.learning import Measurement, Reward
from router.selection.model import Bandit, Cheapest, Elo, Fastest, Hybrid, Limits, MultiFactor
from router.selection.select import choose
from router.selection.snapshot import EMPTY
from router.selection.upstream import Price

A, B, C = upstream("a"), upstream("b"), upstream("c")


def test_static_is_the_first_candidate_always() -> None:
    choice = static.choose([B, A])
    assert (choice.model, choice.reason, choice.propensities) == ("b", "first", {"b": 1.0, "a": 0.0})


def test_the_cheapest_depends_on_how_question_and_answer_are_priced() -> None:
    reader = upstream("reader", price=Price(1, 100))
    writer = upstream("writer", price=Price(10, 1))
    few = cheapest.choose(Cheapest(500), [reader, writer], needs(10))
    assert few.model == "writer"
    assert few.scores == pytest.approx({"reader": (10 + 50_000) / 1e6, "writer": (100 + 500) / 1e6})
    assert cheapest.choose(Cheapest(500), [reader, writer], needs(100_000)).model == "reader"


def test_an_answer_that_must_be_short_is_expected_to_be_short() -> None:
    one = upstream("one", price=Price(0, 1e6))
    assert cheapest.cost(one, needs(output_tokens=20), 500) == 20
    assert cheapest.cost(one, needs(output_tokens=9000), 500) == 500
    assert cheapest.cost(one, needs(), 500) == 500


def test_images_cost_by_each_models_own_rule() -> None:
    costs = [upstream("x", price=Price(1e6, 0), image_tokens=rule) for rule in ("fixed:576", "openai_tiles", "")]
    wanted = needs(1, sizes=((512, 512), None))
    tokens = [cheapest.cost(one, wanted, 0) for one in costs]
    # An image whose size is not known counts as one of 1024 x 1024.
    assert tokens == [1 + 2 * 576, 1 + 85 + 170 + 85 + 4 * 170, 1]


def test_equal_prices_go_to_the_one_listed_first() -> None:
    same = [upstream(name, price=Price(1, 1)) for name in "ba"]
    assert cheapest.choose(Cheapest(), same, needs()).model == "b"


def measured(**milliseconds: list[float]) -> list[Measurement]:
    return [Measurement(model, ttft_ms=time) for model, row in milliseconds.items() for time in row]


def test_the_fastest_goes_by_the_percentile_that_is_asked_for() -> None:
    state = after(*measured(a=[10] * 90 + [9000] * 10, b=[50] * 100))
    assert fastest.choose(Fastest("ttft", 50, 0), [A, B], state, 1).model == "a"
    assert fastest.choose(Fastest("ttft", 95, 0), [A, B], state, 1).model == "b"
    # Nobody has measured to the end.
    assert fastest.choose(Fastest("latency", 50, 0), [B, A], state, 1).reason == "unmeasured"


def test_without_measurements_the_first_is_taken_and_some_requests_still_go_to_all() -> None:
    chosen = Counter(fastest.choose(Fastest(explore=0.3), [A, B, C], EMPTY, seed_of(str(n))).model for n in range(3000))
    assert chosen["a"] == pytest.approx(3000 * 0.8, rel=0.05)
    assert chosen["b"] == pytest.approx(300, rel=0.3)
    assert chosen["c"] == pytest.approx(300, rel=0.3)


def test_a_model_that_was_never_measured_is_explored_and_never_taken_for_the_fastest() -> None:
    choices = [
        fastest.choose(Fastest(explore=0.2), [A, B], after(*measured(b=[5])), seed_of(str(n))) for n in range(500)
    ]
    assert {(choice.model, choice.reason) for choice in choices} == {("b", "fastest"), ("a", "explored")}
    assert choices[0].propensities == pytest.approx({"a": 0.1, "b": 0.9})


def test_factors_are_weighed_as_the_formula_says() -> None:
    good = upstream("good", quality=0.9, price=Price(10, 10))
    cheap = upstream("cheap", quality=0.5, price=Price(1, 1))
    state = after(Measurement("good", latency_ms=1000, load=0.5), Measurement("cheap", latency_ms=500, load=0.0))
    choice = multi_factor.choose(MultiFactor(2, 1, 1, 1), [good, cheap], needs(), state)
    assert choice.scores == pytest.approx({"good": (2 * 0.9 + 0.5 + 0.1 + 0.5) / 5, "cheap": (2 * 0.5 + 1 + 1 + 1) / 5})
    assert (choice.model, choice.reason) == ("cheap", "score")
    assert multi_factor.choose(MultiFactor(1, 0, 0, 0), [cheap, good], needs(), state).model == "good"


def test_what_is_not_known_counts_as_the_mean_of_what_is() -> None:
    state = after(Measurement("a", latency_ms=100), Measurement("b", latency_ms=400))
    scores = multi_factor.choose(MultiFactor(0, 1, 0, 0), [A, B, C], needs(), state).scores
    assert scores == pytest.approx({"a": 1, "b": 0.25, "c": 0.625})
    nobody = multi_factor.choose(MultiFactor(0, 1, 0, 1), [A, B], needs(), EMPTY).scores
    assert nobody == {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize(
    "limits",
    [Limits(min_quality=0.8), Limits(max_cost=0.001), Limits(max_latency_ms=100), Limits(max_load=0.5)],
)
def test_a_limit_excludes_and_where_it_excludes_all_the_choice_says_so(limits: Limits) -> None:
    bad = upstream("bad", quality=0.1, price=Price(1e6, 1e6))
    fine = upstream("fine", quality=0.9, price=Price(0, 0))
    state = after(Measurement("bad", latency_ms=900, load=0.9), Measurement("fine", latency_ms=90, load=0.1))
    select = MultiFactor(0, 0, 0, 1, limits)
    choice = multi_factor.choose(select, [bad, fine], needs(), state)
    assert (choice.model, choice.reason, set(choice.scores)) == ("fine", "score", {"fine"})
    alone = multi_factor.choose(select, [bad], needs(), state)
    assert (alone.model, alone.reason) == ("bad", "beyond_limits")
    # Nothing is known of it, so nothing is held against it.
    assert multi_factor.choose(select, [upstream("new")], needs(), state).reason == "score"


def test_similarity_takes_the_nearest_card_and_the_first_where_it_could_not_look() -> None:
    choice = similarity.choose([A, B], {"a": 0.1, "b": 0.4})
    assert (choice.model, choice.scores, choice.reason) == ("b", {"a": 0.1, "b": 0.4}, "similarity")
    assert similarity.choose([A, B], {"a": 0.2, "b": 0.2}).model == "a"
    blind = similarity.choose([B, A], None)
    assert (blind.model, blind.reason) == ("b", "no_similarities")


def test_elo_takes_the_winner_of_comparisons() -> None:
    state = after(*[Reward(f"r{n}", DECISION, "b", 1.0, "a") for n in range(5)])
    choice = elo.choose(Elo(0), [A, B, C], DECISION, state, 1)
    assert (choice.model, choice.reason) == ("b", "rating")
    assert choice.scores["b"] > 1500 > choice.scores["a"]
    assert choice.scores["c"] == 1500
    assert elo.choose(Elo(0), [A, B], "another", state, 1).model == "a"


def test_elo_explores_the_share_that_it_says() -> None:
    reasons = Counter(elo.choose(Elo(0.4), [A, B], DECISION, EMPTY, seed_of(str(n))).reason for n in range(2000))
    assert reasons["explored"] == pytest.approx(400, rel=0.2)


def test_the_bandit_is_even_where_nothing_is_known() -> None:
    assert bandit.best_probabilities(((1.0, 1.0),) * 4) == pytest.approx((0.25,) * 4)


@pytest.mark.parametrize(
    ("beliefs", "first"),
    [
        # P(X > Y) for Beta(a, 1) against Beta(c, 1) is a / (a + c), since ln X is exponential.
        (((3.0, 1.0), (1.0, 1.0)), 0.75),
        (((0.5, 1.0), (1.5, 1.0)), 0.25),
        (((2000.0, 1.0), (1000.0, 1.0)), 2 / 3),
        # Beta(1, b) against Beta(1, d): d / (b + d).
        (((1.0, 9.0), (1.0, 1.0)), 0.1),
        # Beta(2, 1) against two of Beta(1, 1): E[X^2] = 2 / 4.
        (((2.0, 1.0), (1.0, 1.0), (1.0, 1.0)), 0.5),
        (((0.5, 0.5), (0.5, 0.5)), 0.5),
    ],
)
def test_the_chance_to_be_best_is_the_integral(beliefs: tuple[tuple[float, float], ...], first: float) -> None:
    found = bandit.best_probabilities(beliefs)
    assert found[0] == pytest.approx(first, abs=2e-4)
    assert sum(found) == pytest.approx(1)


def test_the_bandit_agrees_with_draws_from_each_belief() -> None:
    import numpy as np

    beliefs = ((40.0, 25.0), (30.0, 15.0), (600.0, 380.0))
    random = np.random.default_rng(7)
    draws = np.stack([random.beta(a, b, 200_000) for a, b in beliefs])
    frequencies = np.bincount(draws.argmax(axis=0), minlength=3) / 200_000
    assert bandit.best_probabilities(beliefs) == pytest.approx(frequencies, abs=0.005)


def test_the_bandit_turns_to_what_is_rewarded_and_doubts_again_when_it_is_not() -> None:
    good = after(*rewarded("a", 1.0, 30), *rewarded("b", 0.0, 30))
    assert bandit.choose(Bandit(), [A, B], DECISION, good, 1).propensities["a"] > 0.999
    turned = after(*rewarded("a", 0.0, 60), *rewarded("b", 1.0, 60), start=good)
    assert bandit.choose(Bandit(), [A, B], DECISION, turned, 1).propensities["a"] < 0.01
    assert bandit.choose(Bandit(), [A, B], "another", good, 1).propensities == pytest.approx({"a": 0.5, "b": 0.5})


def test_the_bandit_draws_with_the_propensity_that_it_states() -> None:
    state = after(*rewarded("a", 1.0, 4), *rewarded("b", 1.0, 2), *rewarded("b", 0.0, 2))
    choices = [bandit.choose(Bandit(), [A, B, C], DECISION, state, seed_of(str(n))) for n in range(4000)]
    counted = Counter(choice.model for choice in choices)
    for model, share in choices[0].propensities.items():
        assert counted[model] / 4000 == pytest.approx(share, abs=0.03)


def test_a_strong_prior_needs_more_to_be_moved() -> None:
    state = after(*rewarded("a", 1.0, 3))
    weak = bandit.choose(Bandit((1, 1)), [A, B], DECISION, state, 1).propensities["a"]
    strong = bandit.choose(Bandit((100, 100)), [A, B], DECISION, state, 1).propensities["a"]
    assert weak > strong > 0.5


def test_hybrid_keeps_the_first_within_limits_and_lets_learning_pick() -> None:
    rivals = [
        upstream("a", quality=0.1),
        upstream("b", quality=0.9),
        upstream("c", quality=0.9),
        upstream("d", quality=1),
    ]
    state = after(*rewarded("c", 1.0, 50), *rewarded("b", 0.0, 50), *rewarded("a", 1.0, 50))
    choice = choose(Hybrid(Bandit(), Limits(min_quality=0.5), first=2), rivals, facts(), state, 3)
    assert choice.model == "c"
    assert choice.propensities["a"] == choice.propensities["d"] == 0
    assert choice.reason == "drawn"
    nobody = choose(Hybrid(Bandit(), Limits(min_quality=1)), rivals[:3], facts(), state, 3)
    assert nobody.reason == "drawn_beyond_limits"
    assert set(nobody.scores) == {"a", "b", "c"}
