"""What holds for every way to select."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selection_cases import candidates, needs, request, seeds, selects, similarities, snapshots

from router.selection.choice import Facts, draw, seed_of, unit
from router.selection.model import Select, Static, Weighted
from router.selection.select import choose, seed_for
from router.selection.snapshot import Snapshot
from router.selection.state_file import decode, encode
from router.selection.upstream import Upstream


@given(selects, candidates(), snapshots, seeds, st.none() | similarities)
def test_the_same_arguments_give_the_same_choice_also_after_the_state_went_through_its_file(
    select: Select,
    rivals: tuple[Upstream, ...],
    snapshot: Snapshot,
    seed: int,
    similar: Mapping[str, float] | None,
) -> None:
    facts = Facts("one", needs(), similar)
    first = choose(select, rivals, facts, snapshot, seed)
    assert choose(select, rivals, facts, snapshot, seed) == first
    assert choose(select, rivals, facts, decode(encode(snapshot)), seed) == first


@given(selects, candidates(), snapshots, seeds, st.none() | similarities)
def test_the_chosen_is_a_candidate_that_could_be_chosen_and_propensities_sum_to_one(
    select: Select,
    rivals: tuple[Upstream, ...],
    snapshot: Snapshot,
    seed: int,
    similar: Mapping[str, float] | None,
) -> None:
    choice = choose(select, rivals, Facts("one", needs(), similar), snapshot, seed)
    names = [one.model for one in rivals]
    assert choice.model in names
    assert list(choice.propensities) == names
    assert sum(choice.propensities.values()) == pytest.approx(1)
    assert all(share >= 0 for share in choice.propensities.values())
    assert choice.propensities[choice.model] > 0
    assert choice.reason
    assert set(choice.scores) <= set(names)


@given(selects, snapshots, seeds)
def test_one_candidate_is_chosen_whatever_the_rest(select: Select, snapshot: Snapshot, seed: int) -> None:
    [only] = [Upstream("a", "c", None, "a", ("text",))]
    choice = choose(select, [only], Facts("one", needs()), snapshot, seed)
    assert choice.model == "a"
    assert choice.propensities == {"a": pytest.approx(1)}


@given(seeds, st.text(max_size=5))
def test_chance_lies_strictly_between_0_and_1_and_comes_again(seed: int, word: str) -> None:
    assert 0 < unit(seed, word) < 1
    assert unit(seed, word) == unit(seed, word)


def test_chance_is_even_over_seeds() -> None:
    numbers = [unit(seed, "x") for seed in range(4000)]
    tenths = [sum(n / 10 <= number < (n + 1) / 10 for number in numbers) for n in range(10)]
    assert all(320 < count < 480 for count in tenths)


def test_words_are_told_apart_wherever_they_end() -> None:
    assert len({seed_of("ab", "c"), seed_of("a", "bc"), seed_of("abc"), seed_of("abc", "")}) == 4
    assert seed_of("\ud800") != seed_of("")


@given(seeds, st.dictionaries(st.sampled_from("abcd"), st.floats(0.001, 1), min_size=1))
def test_a_draw_never_falls_beside_the_names_however_shares_are_rounded(seed: int, raw: dict[str, float]) -> None:
    total = sum(raw.values())
    assert draw({name: share / total for name, share in raw.items()}, seed) in raw


def test_a_name_without_a_share_is_never_drawn() -> None:
    assert {draw({"a": 0.0, "b": 1.0, "c": 0.0}, seed) for seed in range(500)} == {"b"}


def test_the_seed_is_the_records_but_for_a_key_that_sticks() -> None:
    view = request(("user", "hello"))
    assert seed_for(Static(), view, "r1") != seed_for(Static(), view, "r2")
    sticky = Weighted({"a": 1.0})
    assert seed_for(sticky, view, "r1") == seed_for(sticky, view, "r2")
