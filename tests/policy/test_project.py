from __future__ import annotations

import math

import pytest
from hypothesis import given
from policy_cases import NAMES, all_observations, leaf, no, seen, some_projections, unknown, yes

from router.policy.predicate import Interval, Leaf
from router.policy.project import derive, project
from router.policy.projection import NO_MEMBER, Band, Member, Partition, Projection, ScoreInput, WeightedScore
from router.signals.base import Observation, SignalName

A, B, C = NAMES[:3]
NAME = SignalName("partition", "subject")
MEMBERS = (Member(A, "a"), Member(B, "b"))
EXCLUSIVE = Partition(NAME, MEMBERS, "exclusive")
SHARES = Partition(NAME, MEMBERS, "softmax", temperature=0.5)


def test_of_those_that_matched_the_highest_score_wins() -> None:
    won = project(EXCLUSIVE, seen(a=yes(0.6), b=yes(0.7)))
    assert (won.matched, won.label, won.score) == (True, "b", 0.7)
    assert [piece.pointer for piece in won.evidence] == ["signal:fake/b"]


def test_a_member_that_did_not_match_does_not_win_whatever_its_score() -> None:
    assert project(EXCLUSIVE, seen(a=yes(0.6), b=no(0.9))).label == "a"


def test_nobody_wins_where_nobody_matched() -> None:
    nobody = project(EXCLUSIVE, seen(a=no(0.4), b=no(0.3)))
    assert (nobody.matched, nobody.label) == (False, NO_MEMBER)


def test_of_equals_the_first_in_the_policy_wins() -> None:
    assert project(EXCLUSIVE, seen(a=yes(0.7), b=yes(0.7))).label == "a"


@pytest.mark.parametrize("partition", [EXCLUSIVE, SHARES])
def test_a_partition_with_an_unknown_member_is_unknown_and_says_through_which(partition: Partition) -> None:
    answer = project(partition, seen(a=yes(0.7), b=unknown()))
    assert (answer.status, answer.reason) == ("failed", "fake/b is unknown")


def test_softmax_shares_are_those_of_the_formula() -> None:
    answer = project(SHARES, seen(a=yes(0.9), b=no(0.4)))
    powers = [math.exp(0.9 / 0.5), math.exp(0.4 / 0.5)]
    assert answer.label == "a"
    assert answer.score == pytest.approx(powers[0] / sum(powers))
    assert [piece.score for piece in answer.evidence] == pytest.approx([power / sum(powers) for power in powers])


def test_the_class_of_none_takes_what_no_member_reaches() -> None:
    partition = Partition(NAME, MEMBERS, "softmax", temperature=0.1, none=0.5)
    assert project(partition, seen(a=no(0.3), b=no(0.2))).label == NO_MEMBER
    assert project(partition, seen(a=yes(0.8), b=no(0.2))).label == "a"


def test_a_winner_below_the_threshold_is_none() -> None:
    partition = Partition(NAME, MEMBERS, "softmax", threshold=0.6)
    assert project(partition, seen(a=yes(0.5), b=yes(0.45))).label == NO_MEMBER


def test_a_weighted_sum_adds_matches_scores_and_values() -> None:
    risk = WeightedScore(
        SignalName("score", "risk"),
        (ScoreInput(leaf("a"), 2.0, "match"), ScoreInput(leaf("b"), 0.5, "score"), ScoreInput(leaf("c"), 0.1, "value")),
        offset=-1.0,
        threshold=1.5,
    )
    answer = project(risk, seen(a=yes(0.2), b=no(0.4), c=Observation("observed", True, value=4.0)))
    assert answer.value == pytest.approx(-1.0 + 2.0 + 0.2 + 0.4)
    assert (answer.matched, answer.score) == (True, 1.0)


def test_a_sum_over_something_unknown_is_unknown_unless_the_policy_skips_it() -> None:
    inputs = (ScoreInput(leaf("a"), 1.0, "score"), ScoreInput(leaf("b"), 1.0, "score"))
    name = SignalName("score", "risk")
    answers = seen(a=yes(0.4), b=unknown())
    assert project(WeightedScore(name, inputs), answers).reason == "fake/b is unknown"
    assert project(WeightedScore(name, inputs, missing="skip"), answers).value == pytest.approx(0.4)


def test_bands_name_ranges_and_leave_gaps_unnamed() -> None:
    band = Band(SignalName("band", "level"), A, (("low", Interval(None, 0.3)), ("high", Interval(0.6))))
    assert project(band, seen(a=yes(0.29))).label == "low"
    assert project(band, seen(a=yes(0.6))).label == "high"
    assert project(band, seen(a=yes(0.3))).matched is False
    assert project(band, seen(a=yes())).matched is None


@given(some_projections(), all_observations)
def test_every_projection_answers_and_the_order_of_deriving_changes_nothing(
    projections: tuple[Projection, ...], observations: dict[SignalName, Observation]
) -> None:
    at_once = dict(observations)
    derive(projections, at_once)
    assert all(projection.name in at_once for projection in projections)
    step_by_step: dict[SignalName, Observation] = {}
    for name, answer in observations.items():
        step_by_step[name] = answer
        derive(projections, step_by_step)
    assert step_by_step == at_once


@given(some_projections(), all_observations)
def test_scores_of_projections_lie_in_the_unit_interval(
    projections: tuple[Projection, ...], observations: dict[SignalName, Observation]
) -> None:
    derive(projections, observations)
    for projection in projections:
        score = observations[projection.name].score
        assert score is None or 0.0 <= score <= 1.0


def test_a_label_of_a_projection_is_an_input_like_any_other() -> None:
    score = WeightedScore(SignalName("score", "s"), (ScoreInput(Leaf(NAME, labels=frozenset("b")), 1.0, "match"),))
    observations = seen(a=no(0.1), b=yes(0.7))
    derive((EXCLUSIVE, score), observations)
    assert observations[score.name].value == 1.0
