from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from router.config.load import SignalSpec
from router.evaluation.report import Labelled
from router.evaluation.tuning import Goal, Proposal, TuningError, parse_goal, propose
from router.signals.agreement import AgreementSettings
from router.signals.base import SignalName
from router.signals.embedding import EmbeddingSettings
from router.signals.jailbreak import JailbreakSettings
from router.signals.keyword import KeywordSettings
from router.signals.role import RoleSettings

ATTACK = SignalSpec(SignalName("jailbreak", "attack"), JailbreakSettings(threshold=0.7))


def answer(score: float | None, expected: bool, at: float = 0.7, case: str = "c") -> Labelled:
    return Labelled(case, expected, score is not None and score >= at, score, score)


def tuned(goal: str, positives: list[float], negatives: list[float]) -> Proposal:
    answers = [*(answer(s, True) for s in positives), *(answer(s, False) for s in negatives)]
    return propose(parse_goal(f"jailbreak/attack={goal}"), ATTACK, answers)


def test_no_false_alarm_puts_the_threshold_between_the_classes() -> None:
    found = tuned("fpr:0", [0.9, 0.6], [0.2, 0.4])
    assert found.proposed == 0.5
    assert found.now == 0.7
    assert found.before.recall is not None
    assert found.after.recall is not None
    assert (found.before.recall.value, found.after.recall.value) == (0.5, 1.0)
    assert found.after.false_positives is not None
    assert found.after.false_positives.value == 0


def test_one_of_four_false_alarms_buys_a_lower_threshold() -> None:
    assert 0.3 < tuned("fpr:0.25", [0.9, 0.45], [0.1, 0.2, 0.3, 0.5]).proposed <= 0.45


def test_recall_takes_the_highest_threshold_that_finds_enough() -> None:
    assert 0.6 < tuned("recall:0.5", [0.9, 0.8, 0.5, 0.4], [0.1, 0.6]).proposed <= 0.8
    assert 0.1 < tuned("recall:1", [0.9, 0.8, 0.5, 0.4], [0.1, 0.6]).proposed <= 0.4


def test_precision_takes_the_lowest_threshold_that_is_right_often_enough() -> None:
    # From 0.4 on: 3 right, 1 wrong.
    assert 0.1 < tuned("precision:0.75", [0.9, 0.8, 0.4], [0.1, 0.6]).proposed <= 0.4
    assert 0.6 < tuned("precision:1", [0.9, 0.8, 0.4], [0.1, 0.6]).proposed <= 0.8


def test_a_rate_that_nothing_meets_is_told() -> None:
    with pytest.raises(TuningError, match="finds anything"):
        tuned("fpr:0", [0.3], [0.9])


@pytest.mark.parametrize(("positives", "negatives"), [([0.9], []), ([], [0.1]), ([], [])])
def test_one_class_alone_cannot_be_tuned(positives: list[float], negatives: list[float]) -> None:
    with pytest.raises(TuningError, match="cases that say true and cases that say false"):
        tuned("fpr:0.01", positives, negatives)


def test_too_few_negatives_are_told() -> None:
    assert "2 negatives can't tell 0.01 from 0; 100 would" in tuned("fpr:0.01", [0.9], [0.1, 0.2]).note
    assert tuned("fpr:0", [0.9], [0.1, 0.2]).note == ""


def test_an_unanswered_positive_is_a_miss_at_every_threshold() -> None:
    answers = [answer(0.9, True), Labelled("c", True, None, None, None), answer(0.1, False)]
    with pytest.raises(TuningError, match="finds anything"):
        propose(parse_goal("jailbreak/attack=recall:1"), ATTACK, answers)


def test_a_match_below_the_threshold_is_not_the_thresholds() -> None:
    answers = [Labelled("odd", True, True, 0.3, 0.3), answer(0.1, False)]
    with pytest.raises(TuningError, match=r'matches "odd" at .* for another reason'):
        propose(parse_goal("jailbreak/attack=fpr:0"), ATTACK, answers)


def test_what_another_setting_keeps_out_stays_out() -> None:
    answers = [answer(0.9, True), Labelled("c", False, False, 0.95, 0.95), answer(0.2, False)]
    found = propose(parse_goal("jailbreak/attack=fpr:0"), ATTACK, answers)
    assert 0.2 < found.proposed <= 0.9


def test_agreement_matches_below_its_key() -> None:
    spec = SignalSpec(SignalName("agreement", "off"), AgreementSettings(below=0.15))
    answers = [
        Labelled("c", True, True, 0.05, 0.95),
        Labelled("c", True, False, 0.2, 0.8),
        Labelled("c", False, False, 0.4, 0.6),
    ]
    found = propose(parse_goal("agreement/off=fpr:0"), spec, answers)
    assert found.key == "below"
    assert 0.2 < found.proposed <= 0.4


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        ("role/a", RoleSettings(header="x-roles", any=("a",)), "has no threshold"),
        ("embedding/a", EmbeddingSettings(texts=("a",), mode="soft"), "mode: soft"),
        ("keyword/a", KeywordSettings(any=("a",), method="exact"), "cases that say true"),
    ],
)
def test_signals_without_a_plain_threshold_are_refused(name: str, settings: object, told: str) -> None:
    spec = SignalSpec(SignalName(*name.split("/")), settings)  # type: ignore[arg-type]
    with pytest.raises(TuningError, match=told):
        propose(parse_goal(f"{name}=fpr:0.01"), spec, [])


def test_goals_are_read() -> None:
    assert parse_goal("image/pass=fpr:0.01") == Goal("image/pass", "fpr", 0.01)


@pytest.mark.parametrize(
    "text", ["", "a", "a=fpr:0.1", "a/b=fpr", "a/b=0.1", "a/b=auc:0.1", "a/b=fpr:x", "a/b=fpr:2", "a/b=fpr:nan"]
)
def test_other_goals_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="--tune"):
        parse_goal(text)


some = st.lists(st.integers(0, 1000).map(lambda n: n / 1000), min_size=1, max_size=25)


@given(some, some, st.sampled_from(["fpr", "recall", "precision"]), st.floats(0, 1))
def test_a_proposal_meets_its_goal_when_it_is_applied(
    positives: list[float], negatives: list[float], wanted: str, rate: float
) -> None:
    try:
        found = tuned(f"{wanted}:{rate}", positives, negatives)
    except TuningError:
        assume(False)
    hits = sum(score >= found.proposed for score in positives)
    alarms = sum(score >= found.proposed for score in negatives)
    assert 0 <= found.proposed <= 1
    assert hits > 0
    got = {"fpr": alarms / len(negatives), "recall": hits / len(positives), "precision": hits / (hits + alarms)}[wanted]
    assert got <= rate + 1e-9 if wanted == "fpr" else got >= rate - 1e-9
    assert found.after.recall is not None
    assert found.after.recall.value == hits / len(positives)


@given(some, some, st.floats(0, 1))
def test_no_threshold_within_the_rate_finds_more(positives: list[float], negatives: list[float], rate: float) -> None:
    try:
        found = tuned(f"fpr:{rate}", positives, negatives)
    except TuningError:
        assume(False)
    hits = sum(score >= found.proposed for score in positives)
    for threshold in {*positives, *negatives}:
        if sum(score >= threshold for score in negatives) <= rate * len(negatives):
            assert sum(score >= threshold for score in positives) <= hits


def test_a_threshold_that_the_policy_leaves_to_a_pack_is_tuned_too() -> None:
    spec = SignalSpec(SignalName("jailbreak", "attack"), JailbreakSettings())
    answers = [answer(0.9, True, 0.83), answer(0.6, True, 0.83), answer(0.2, False, 0.83), answer(0.4, False, 0.83)]
    found = propose(parse_goal("jailbreak/attack=fpr:0"), spec, answers)
    assert (found.now, found.proposed) == (None, 0.5)
    assert found.before.recall is not None
    assert found.before.recall.value == 0.5
