from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_cases import (
    NAMES,
    Leaf,
    all_observations,
    decision,
    everything,
    leaf,
    policies,
    policy,
    signals,
    trees,
    view,
)

from router.policy.engine import Engine
from router.policy.logic import evaluate
from router.policy.model import All, Any, Clarify, Decision, Not, Policy, Profile, Refuse, Route
from router.policy.predicate import Interval
from router.policy.projection import Band, Member, Partition, ScoreInput, WeightedScore
from router.policy.proof import solver as proof_solver
from router.policy.proof.findings import Finding, Subject, findings_of
from router.policy.proof.space import Knowledge
from router.policy.resolve import default_model
from router.selection.model import Static
from router.selection.upstream import Upstream
from router.signals.base import Observation, SignalName

A, B, C = leaf("a"), leaf("b"), leaf("c")
NOTHING: Mapping[SignalName, Knowledge] = {}


def found(
    rules: Policy, knowledge: Mapping[SignalName, Knowledge] = NOTHING, *defined: SignalName
) -> set[tuple[str, str]]:
    return {(each.kind, each.subject.name) for each in findings_of(rules, knowledge, defined)}


def kinds(rules: Policy, knowledge: Mapping[SignalName, Knowledge] = NOTHING) -> set[str]:
    return {kind for kind, _ in found(rules, knowledge)}


def only(rules: Policy, kind: str, knowledge: Mapping[SignalName, Knowledge] = NOTHING) -> Finding:
    [finding] = [each for each in findings_of(rules, knowledge, ()) if each.kind == kind]
    return finding


def test_a_policy_in_which_every_decision_has_its_requests_has_no_findings() -> None:
    rules = policy(decision("aa", A, priority=2), decision("bb", B, priority=1))
    assert not kinds(rules) - {"unreached-upstream"}


def test_a_contradiction_never_matches() -> None:
    assert ("never-true", "one") in found(policy(decision("one", All((A, Not(A))))))


def test_a_decision_behind_what_it_implies_is_shadowed_and_told_by_whom() -> None:
    rules = policy(
        decision("broad", A, priority=3), decision("other", B, priority=2), decision("narrow", All((A, C)), priority=1)
    )
    finding = only(rules, "shadowed")
    assert finding.subject.name == "narrow"
    assert '"broad"' in finding.message
    assert '"other"' not in finding.message
    assert dict(finding.witness) == {"fake/a": True, "fake/c": True}


def test_two_together_may_shadow_what_neither_does_alone() -> None:
    rules = policy(
        decision("with", All((A, B)), priority=3),
        decision("without", All((A, Not(B))), priority=2),
        decision("late", A, priority=1),
    )
    assert '"with", "without"' in only(rules, "shadowed").message


def test_a_guard_shadows_a_route_of_any_priority() -> None:
    rules = policy(decision("guard", A, priority=0, guard=True), decision("route", A, priority=9))
    assert ("shadowed", "route") in found(rules)


def test_a_tautology_always_matches() -> None:
    rules = policy(decision("all", Any((A, Not(A))), priority=2), decision("rest", B, priority=1))
    assert {("always-true", "all"), ("shadowed", "rest")} <= found(rules)


def test_equals_that_can_match_together_tie_unless_they_do_the_same() -> None:
    rules = policy(decision("aa", A), decision("bb", B))
    assert ("tie", "bb") in found(rules)
    same = Route(("small",), Static())
    assert "tie" not in {
        kind for kind, _ in found(policy(decision("aa", A, outcome=same), decision("bb", B, outcome=same)))
    }
    apart = policy(decision("aa", A), decision("bb", Not(A)))
    assert "tie" not in kinds(apart)


def test_a_guard_that_sends_where_the_request_would_go_anyhow_is_without_effect() -> None:
    to_default = Route(("small",), Static())
    idle = policy(decision("guard", A, guard=True, outcome=to_default))
    assert ("guard-without-effect", "guard") in found(idle)
    useful = policy(decision("guard", A, guard=True, outcome=to_default), decision("route", B))
    assert ("guard-without-effect", "guard") not in found(useful)


def test_what_is_known_of_numbers_is_used() -> None:
    score = SignalName("fake", "a")
    rules = policy(
        decision("high", Leaf(score, Interval(0.5)), priority=2),
        decision("higher", Leaf(score, Interval(0.9)), priority=1),
        decision("beyond", Leaf(score, Interval(1.5)), priority=9),
    )
    scored = {score: Knowledge(scored=True)}
    assert {("shadowed", "higher"), ("never-true", "beyond")} <= found(rules, scored)
    assert ("never-true", "beyond") not in found(rules)


def test_a_signals_own_threshold_is_compared_with_bounds_in_conditions() -> None:
    name = SignalName("fake", "a")
    known = {name: Knowledge(within=Interval(0.7), scored=True)}
    rules = policy(decision("plain", A, priority=2), decision("bounded", Leaf(name, Interval(0.8)), priority=1))
    assert ("shadowed", "bounded") in found(rules, known)


def test_counts_of_the_request_are_compared_across_signals() -> None:
    few, many = SignalName("fake", "a"), SignalName("fake", "b")
    known = {few: Knowledge(equals={"images": Interval(1)}), many: Knowledge(equals={"images": Interval(3)})}
    assert ("shadowed", "many") in found(policy(decision("few", A, priority=2), decision("many", B, priority=1)), known)


def test_a_bound_on_a_count_is_compared_with_that_count_elsewhere() -> None:
    few, many = SignalName("fake", "a"), SignalName("fake", "b")
    known = {few: Knowledge(equals={"images": Interval(1)}), many: Knowledge(equals={"images": Interval(3)})}
    rules = policy(decision("few", Leaf(few, Interval(2, above=True)), priority=2), decision("many", B, priority=1))
    assert ("shadowed", "many") in found(rules, known)


def test_a_partition_has_one_winner_and_a_band_one_label() -> None:
    rivals = Partition(SignalName("partition", "p"), (Member(NAMES[0], "a"), Member(NAMES[1], "b")), "exclusive")
    level = Band(SignalName("band", "l"), NAMES[0], (("low", Interval(None, 0.5)), ("high", Interval(0.5))))

    def labelled(name: SignalName, label: str) -> Leaf:
        return Leaf(name, labels=frozenset((label,)))

    rules = policy(
        decision("both", All((labelled(rivals.name, "a"), labelled(rivals.name, "b"))), priority=9),
        decision("loser", All((labelled(rivals.name, "a"), Not(A))), priority=8),
        decision("nobody", All((labelled(rivals.name, "none"), A)), priority=7),
        decision("levels", All((labelled(level.name, "low"), Leaf(NAMES[0], Interval(0.6)))), priority=6),
        decision("fine", labelled(rivals.name, "b"), priority=5),
        projections=(rivals, level),
    )
    assert {name for kind, name in found(rules) if kind == "never-true"} == {"both", "loser", "nobody", "levels"}


def test_a_sum_that_cannot_reach_a_bound_never_does() -> None:
    risk = WeightedScore(SignalName("score", "r"), (ScoreInput(A, 0.5, "match"), ScoreInput(B, 0.4, "score")))
    rules = policy(decision("far", Leaf(risk.name, Interval(0.95))), projections=(risk,))
    assert ("never-true", "far") in found(rules)
    assert ("never-true", "far") not in found(
        policy(decision("far", Leaf(risk.name, Interval(0.9))), projections=(risk,))
    )


def test_a_candidate_that_can_take_no_request_of_its_decision_is_told() -> None:
    known = {NAMES[0]: Knowledge(implies={"images": Interval(1)})}
    finding = only(policy(decision("pictures", All((A, B)))), "incapable-candidate", known)
    assert finding.subject.name == "pictures"
    assert (
        finding.message
        == 'its candidate "to-pictures" can take none of its requests: each has images, and it takes none'
    )
    assert "incapable-candidate" not in kinds(policy(decision("some", Any((A, B)))), known)


def test_what_nobody_reads_or_reaches_is_told() -> None:
    risk = WeightedScore(SignalName("score", "r"), (ScoreInput(C, 0.5, "match"),))
    rules = policy(decision("one", A), projections=(risk,))
    assert found(rules, NOTHING, *NAMES[:3]) == {
        ("unread-signal", "fake/b"),
        ("unread-signal", "fake/c"),
        ("unread-projection", "score/r"),
        ("unreached-upstream", "large"),
    }


def test_a_guard_that_is_shadowed_under_one_profile_only_is_alive() -> None:
    guard = decision("guard", A, guard=True)
    over = decision("over", A, guard=True, priority=200)
    profile = Profile("team", frozenset(("auto",)), "", frozenset(), (guard, over), "small")
    rules = replace(policy(guard, over), decisions=(guard,), profiles=(profile,))
    assert ("shadowed", "guard") not in found(rules)
    assert ("shadowed", "guard") in found(replace(rules, decisions=(guard, over)))


def test_every_profile_is_looked_at_by_itself() -> None:
    guard = decision("guard", A, guard=True)
    own = decision("own", All((A, B)))
    profile = Profile("team", frozenset(("auto",)), "", frozenset(), (guard, own), "small")
    rules = policy(guard, profiles=(profile,))
    upstreams = (*rules.upstreams, Upstream("to-own", "c", None, "to-own", ("text",)))
    rules = replace(rules, upstreams=upstreams)
    assert 'under the profile "team"' in only(rules, "shadowed").message


def test_a_question_that_is_too_hard_is_answered_by_tries_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with proof_solver.Solver([[1, 2], [-1, 2], [1, -2], [-1, -2]], conflicts=0) as solver:
        monkeypatch.setattr(solver, "_ask", lambda assumptions, conflicts: None)
        answer = solver.together([1])
    assert (answer.possible, answer.sampled, solver.given_up) == (False, True, 1)


def test_a_decision_of_which_not_all_was_proven_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    proven = proof_solver.Solver._ask

    def too_hard(self: proof_solver.Solver, assumptions: list[int], conflicts: int) -> proof_solver.Answer | None:
        # Whether a condition can be false is asked of it alone.
        return None if len(assumptions) == 1 else proven(self, assumptions, conflicts)

    rules = policy(decision("all", Any((A, Not(A)))))
    assert "always-true" in kinds(rules)
    monkeypatch.setattr(proof_solver.Solver, "_ask", too_hard)
    finding = only(rules, "unproven")
    assert (finding.level, finding.subject.name, finding.sampled) == ("note", "all", True)
    assert "always-true" not in kinds(rules)


plain = trees(st.sampled_from(NAMES[:4]).map(Leaf))


def rank(one: Decision) -> tuple[bool, int]:
    return one.guard, one.tier


@settings(max_examples=300)
@given(st.lists(st.tuples(plain, st.booleans(), st.sampled_from([1, 2])), max_size=5))
def test_proofs_agree_with_trying_every_assignment(rows: list[tuple[object, bool, int]]) -> None:
    decisions = [
        decision(f"d{index}", when, guard=guard, priority=priority, outcome=Clarify(f"{index}"))  # type: ignore[arg-type]
        for index, (when, guard, priority) in enumerate(rows)
    ]
    every = [
        {name: Observation("observed", value) for name, value in zip(NAMES[:4], values, strict=True)}
        for values in itertools.product((True, False), repeat=4)
    ]
    expected: set[tuple[str, str]] = set()
    for one in decisions:
        true = [each for each in every if evaluate(one.when, each)]
        above = [other for other in decisions if rank(other) > rank(one)]
        wins = [each for each in true if not any(evaluate(other.when, each) for other in above)]
        if not wins:
            expected.add(("shadowed" if true else "never-true", one.name))
        elif len(true) == len(every):
            expected.add(("always-true", one.name))
    looked_at = {"shadowed", "never-true", "always-true"}
    assert {each for each in found(policy(*decisions)) if each[0] in looked_at} == expected


@settings(max_examples=300)
@given(policies(), all_observations)
def test_what_is_said_to_never_win_wins_under_no_observation(
    rules: Policy, observations: dict[SignalName, Observation]
) -> None:
    findings = findings_of(rules, NOTHING, ())
    for model in (None, "virtual"):
        verdict = asyncio.run(Engine(rules, signals(observations)).decide(view(model), 60.0))
        told = [each for each in findings if each.subject == Subject("decision", verdict.decision or "")]
        assert "error" not in {each.level for each in told if each.kind in ("never-true", "shadowed")}
        if "guard-without-effect" in {each.kind for each in told}:
            rest = _without(rules, verdict.decision)
            instead = asyncio.run(Engine(rest, signals(observations)).decide(view(model), 60.0))
            to_default = Route((default_model(rules, verdict),), Static())
            assert (instead.outcome or to_default) == verdict.outcome
        if all(each.matched is not None for each in everything(rules, verdict.observations).values()):
            assert not {"never-true", "shadowed"} & {each.kind for each in told} or _some_unknown(rules, observations)


def _without(rules: Policy, name: str | None) -> Policy:
    def rest(decisions: tuple[Decision, ...]) -> tuple[Decision, ...]:
        return tuple(each for each in decisions if each.name != name)

    profiles = tuple(replace(each, decisions=rest(each.decisions)) for each in rules.profiles)
    return replace(rules, decisions=rest(rules.decisions), profiles=profiles)


def _some_unknown(rules: Policy, observations: Mapping[SignalName, Observation]) -> bool:
    """An answer without a score leaves a bound on it unknown."""
    every = everything(rules, observations)
    return any(evaluate(each.when, every) is None for each in rules.all_decisions)


def test_a_decision_for_missing_answers_is_not_said_to_be_shadowed() -> None:
    sure = decision("sure", A, priority=2)
    spare = decision("spare", A, priority=1, unknown_matches=True)
    assert ("shadowed", "spare") not in found(policy(sure, spare))


def test_a_decision_that_wins_only_where_an_answer_is_missing_is_told_so_mildly() -> None:
    hard, easy = decision("hard", All((A, B)), priority=3), decision("easy", All((A, Not(B))), priority=2)
    finding = only(policy(hard, easy, decision("rest", A, priority=1)), "shadowed")
    assert (finding.level, finding.subject.name) == ("note", "rest")
    assert "only where an answer is missing" in finding.message


def test_a_contradictory_guard_is_told_of_though_a_missing_answer_makes_it_match() -> None:
    finding = only(policy(decision("guard", All((A, Not(A))), guard=True)), "never-true")
    assert finding.level == "warning"
    assert finding.message.endswith("it matches only where an answer is missing")


def test_a_guard_beside_a_route_that_does_the_same_matters_where_the_answer_is_missing() -> None:
    local = Route(("large",), Static())
    rules = policy(decision("guard", A, guard=True, outcome=local), decision("route", A, outcome=local))
    assert "guard-without-effect" not in kinds(rules)


def test_a_guard_keeps_requests_from_the_policys_fallback() -> None:
    to_default = Route(("small",), Static())
    idle = policy(decision("guard", A, guard=True, outcome=to_default))
    assert "guard-without-effect" in kinds(idle)
    assert "guard-without-effect" not in kinds(replace(idle, fallback=("large",)))


def test_images_in_files_may_go_where_files_are_taken() -> None:
    known = {NAMES[0]: Knowledge(equals={"images": Interval(1)})}
    rules = policy(decision("pictures", A))
    assert "incapable-candidate" in kinds(rules, known)
    with_files = tuple(replace(each, modalities=("text", "file")) for each in rules.upstreams)
    assert "incapable-candidate" not in kinds(replace(rules, upstreams=with_files), known)


def test_tools_that_must_not_be_called_need_no_ability() -> None:
    known = {NAMES[0]: Knowledge(equals={"tools": Interval(1)})}
    rules = policy(decision("agents", A))
    plain = tuple(replace(each, capabilities=frozenset()) for each in rules.upstreams)
    assert only(replace(rules, upstreams=plain), "incapable-candidate", known).level == "warning"


def test_counts_below_nothing_and_between_two_are_rounded_the_right_way() -> None:
    count = SignalName("fake", "a")
    known = {count: Knowledge(equals={"images": Interval(1)})}

    def never(interval: Interval) -> bool:
        return "never-true" in kinds(policy(decision("one", Leaf(count, interval))), known)

    assert not never(Interval(-0.5))
    assert not never(Interval(-0.5, 0.5))
    assert not never(Interval(0.5, 1.5))
    assert never(Interval(0.2, 0.8))
    assert never(Interval(None, -0.5))


def test_sums_of_sums_are_bounded_however_deep_they_go() -> None:
    def sums(index: int) -> WeightedScore:
        below = (
            ScoreInput(A, 1.0, "match")
            if not index
            else ScoreInput(Leaf(SignalName("score", f"s{index - 1}")), 0.5, "value")
        )
        return WeightedScore(SignalName("score", f"s{index}"), (below, below) if index else (below,))

    every = tuple(sums(index) for index in range(3000))
    last = every[-1].name
    assert ("never-true", "far") in found(policy(decision("far", Leaf(last, Interval(1.5))), projections=every))


def test_a_hard_question_ends_and_is_answered_by_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof_solver, "CONFLICTS", 200)
    monkeypatch.setattr(proof_solver, "CONFLICTS_IN_ALL", 3_000)
    holes = 9
    sits = [[Leaf(SignalName("fake", f"{one}-{hole}")) for hole in range(holes)] for one in range(holes + 1)]
    apart = [
        Not(All((sits[one][hole], sits[other][hole])))
        for hole in range(holes)
        for one, other in itertools.combinations(range(holes + 1), 2)
    ]
    crowd = All((*(Any(tuple(row)) for row in sits), *apart))
    rows = [decision(f"d{index}", All((crowd, row[index])), priority=index) for index, row in enumerate(sits[:holes])]
    findings = [each for each in findings_of(policy(*rows), NOTHING, ()) if each.kind == "shadowed"]
    assert {(each.level, each.sampled) for each in findings} == {("note", True)}
    assert len(findings) == holes


def test_a_thousand_equals_and_guards_are_looked_at_in_no_more_than_steps_for_each() -> None:
    rows = [
        decision(
            f"d{index}",
            Leaf(SignalName("fake", f"s{index}")),
            priority=index if guard else 0,
            guard=guard,
            outcome=Clarify(f"{index}"),
        )
        for guard in (True, False)
        for index in range(500 * guard, 500 + 500 * guard)
    ]
    assert kinds(policy(*rows)) == {"tie", "unreached-upstream"}


def test_the_outcome_kinds_are_all_compared() -> None:
    refuse = Refuse(403, "no", "No.")
    rules = policy(decision("aa", A, outcome=refuse), decision("bb", B, outcome=refuse))
    assert "tie" not in kinds(rules)


def test_hundreds_of_decisions_are_proven_one_by_one() -> None:
    decisions = [decision(f"d{index}", Leaf(SignalName("fake", f"s{index}")), priority=index) for index in range(100)]
    decisions.append(decision("late", All((Leaf(SignalName("fake", "s7")), A)), priority=-1))
    assert kinds(policy(*decisions)) == {"shadowed", "unreached-upstream"}
