from __future__ import annotations

import random

import pytest

from router.selection.estimate import Logged, estimate

EVEN = {"a": 0.5, "b": 0.5}
STATIC = {"a": 1.0, "b": 0.0}


def log_of(count: int, propensities: dict[str, float], earned: dict[str, float], seed: int) -> list[Logged]:
    chance = random.Random(seed)
    rows = []
    for n in range(count):
        model = chance.choices(list(propensities), list(propensities.values()))[0]
        rows.append(Logged(str(n), model, propensities, float(chance.random() < earned[model])))
    return rows


def test_a_bandit_would_have_earned_what_the_better_model_earns() -> None:
    found = estimate("one", log_of(4000, {"a": 0.8, "b": 0.2}, {"a": 0.3, "b": 0.8}, 1))
    assert found.supported
    assert found.logged and found.logged.value == pytest.approx(0.4, abs=0.03)
    assert found.ips and found.ips.low < 0.8 < found.ips.high + 0.03
    assert found.snips and found.snips.value == pytest.approx(0.8, abs=0.04)
    assert found.tried["a"] + found.tried["b"] == found.requests == 4000
    assert found.effective < 1000


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    # Both models earn the same, so every policy earns that.
    held = 0
    for seed in range(40):
        snips = estimate("one", log_of(100, {"a": 0.7, "b": 0.3}, {"a": 0.5, "b": 0.5}, seed)).snips
        assert snips
        held += snips.low <= 0.5 <= snips.high
    assert held >= 33


def test_a_static_log_supports_no_estimate_and_says_so() -> None:
    found = estimate("one", log_of(200, STATIC, {"a": 0.5, "b": 0.5}, 1))
    assert not found.supported
    assert found.unsupported > 0.05
    assert found.tried == {"a": 200}


def test_where_there_is_one_candidate_only_the_log_is_the_answer() -> None:
    found = estimate("one", [Logged(str(n), "a", {"a": 1.0}, float(n % 2)) for n in range(50)])
    assert found.supported
    assert found.effective == pytest.approx(50)
    assert found.ips == found.logged
    assert found.ips and found.ips.value == 0.5


def test_nothing_logged_says_nothing() -> None:
    found = estimate("one", [])
    assert not found.supported
    assert (found.requests, found.ips, found.snips, found.logged) == (0, None, None, None)


def test_one_request_has_an_estimate_without_ends() -> None:
    found = estimate("one", [Logged("r", "a", EVEN, 1.0)])
    assert found.ips and found.ips.value == 1.0
    assert found.ips.high == float("inf")


def test_no_reward_judges_the_belief_that_it_has_shaped() -> None:
    # Whatever the first reward is, the bandit was even when it was weighed.
    for reward in (0.0, 1.0):
        assert estimate("one", [Logged("r", "a", EVEN, reward)]).effective == 1.0
        found = estimate("one", [Logged("r", "a", {"a": 0.25, "b": 0.75}, reward)])
        assert found.ips and found.ips.value == pytest.approx(2.0 * reward)
