from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selection_cases import MODELS, request, seeds, upstream, weightings

from router.request.view import ImagePart, Turn
from router.selection.choice import seed_of
from router.selection.model import Weighted
from router.selection.weighted import choose, sticky_seed

ALL = [upstream(model) for model in MODELS]


@given(weightings, seeds, st.sampled_from(MODELS))
def test_a_model_that_goes_moves_only_the_keys_that_it_held(weights: dict[str, float], seed: int, gone: str) -> None:
    select = Weighted(weights)
    rest = [one for one in ALL if one.model != gone]
    if not sum(weights[one.model] for one in rest):
        return
    before = choose(select, ALL, seed).model
    if before != gone:
        assert choose(select, rest, seed).model == before


@given(weightings, seeds, st.sampled_from(MODELS), st.floats(1, 10))
def test_more_weight_for_one_moves_keys_to_it_alone(
    weights: dict[str, float], seed: int, heavier: str, factor: float
) -> None:
    if not any(weights.values()):
        return
    before = choose(Weighted(weights), ALL, seed).model
    after = choose(Weighted({**weights, heavier: weights[heavier] * factor}), ALL, seed).model
    assert after in (before, heavier)


@given(weightings, seeds, st.randoms(use_true_random=False))
def test_the_order_of_candidates_has_no_say(weights: dict[str, float], seed: int, shuffle: object) -> None:
    mixed = list(ALL)
    shuffle.shuffle(mixed)  # type: ignore[attr-defined]
    if any(weights.values()):
        assert choose(Weighted(weights), mixed, seed).model == choose(Weighted(weights), ALL, seed).model


def test_frequencies_are_the_weights() -> None:
    select = Weighted({"a": 6.0, "b": 3.0, "c": 1.0, "d": 0.0, "e": 0.0})
    counted = Counter(choose(select, ALL, seed_of(str(n))).model for n in range(6000))
    assert counted["a"] / 6000 == pytest.approx(0.6, abs=0.02)
    assert counted["b"] / 6000 == pytest.approx(0.3, abs=0.02)
    assert counted["c"] / 6000 == pytest.approx(0.1, abs=0.02)
    assert not counted["d"] + counted["e"]
    assert choose(select, ALL, 1).propensities == pytest.approx({"a": 0.6, "b": 0.3, "c": 0.1, "d": 0, "e": 0})


def test_where_only_models_without_weight_are_left_the_first_takes_it() -> None:
    choice = choose(Weighted({"a": 0.0, "b": 0.0, "c": 1.0}), ALL[:2], 5)
    assert (choice.model, choice.propensities) == ("a", {"a": 1.0, "b": 0.0})


BY_CONVERSATION = Weighted({"a": 1.0})
BY_HEADER = Weighted({"a": 1.0}, "header", "x-user")
START = (("system", "You help."), ("user", "Why is the sky blue?"))


def test_a_conversation_keeps_its_key_as_it_grows() -> None:
    first = sticky_seed(BY_CONVERSATION, request(*START), "r1")
    grown = request(*START, ("assistant", "Scattering."), ("user", "And at night?"), ("system", "Be brief."))
    assert sticky_seed(BY_CONVERSATION, grown, "r2") == first
    assert sticky_seed(BY_CONVERSATION, request(START[0], ("user", "Why is the sea blue?")), "r1") != first
    assert sticky_seed(BY_CONVERSATION, request(("system", "You mock."), START[1]), "r1") != first


def test_the_first_turns_images_belong_to_the_key() -> None:
    view = request(*START)
    user = view.turns[1]
    seeds = set()
    for data in (b"one", b"two"):
        shown = Turn(user.pointer, "user", (*user.parts, ImagePart("/i", "inline", data)))
        seeds.add(sticky_seed(BY_CONVERSATION, replace(view, turns=(view.turns[0], shown)), "r"))
    assert len(seeds) == 2


def test_a_header_is_the_key_whatever_is_said_and_without_it_the_conversation_is() -> None:
    one = sticky_seed(BY_HEADER, request(("user", "a"), headers={"x-user": "ann"}), "r1")
    assert sticky_seed(BY_HEADER, request(("user", "b"), headers={"x-user": "ann"}), "r2") == one
    assert sticky_seed(BY_HEADER, request(("user", "a"), headers={"x-user": "bob"}), "r1") != one
    for headers in ({}, {"x-user": ""}, {"x-other": "ann"}):
        bare = request(*START, headers=headers)
        assert sticky_seed(BY_HEADER, bare, "r1") == sticky_seed(BY_CONVERSATION, bare, "r9")


def test_a_request_by_itself_has_its_records_key() -> None:
    select = Weighted({"a": 1.0}, "request")
    assert sticky_seed(select, request(*START), "r1") != sticky_seed(select, request(*START), "r2")


def test_a_conversation_without_a_user_or_without_turns_has_a_key_too() -> None:
    assert sticky_seed(BY_CONVERSATION, request(("system", "x")), "r") != sticky_seed(BY_CONVERSATION, request(), "r")
