from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from policy_cases import (
    NAMES,
    FakeSignal,
    StuckSignal,
    all_observations,
    confidence,
    decision,
    everything,
    leaf,
    no,
    policies,
    policy,
    seen,
    signals,
    unknown,
    view,
    yes,
)

from router.policy.engine import Engine
from router.policy.logic import evaluate
from router.policy.model import All, Any, Clarify, Decision, Not, Policy, Profile, Refuse
from router.policy.predicate import Interval, Leaf
from router.policy.projection import Band, ScoreInput, WeightedScore
from router.policy.verdict import Verdict
from router.signals.base import Cost, Observation, SignalName

A, B, C, D = leaf("a"), leaf("b"), leaf("c"), leaf("d")
LONG = 60.0


async def decide(
    rules: Policy,
    observations: Mapping[SignalName, Observation],
    *,
    model: str | None = None,
    costs: Mapping[SignalName, Cost] | None = None,
) -> Verdict:
    return await Engine(rules, signals(observations, costs)).decide(view(model), LONG)


def by_the_book(rules: Policy, observations: Mapping[SignalName, Observation], model: str | None) -> Decision | None:
    """The winner by the words of the documentation, with every signal asked and every projection known."""
    respected = rules.respect_requested_model and model in {u.model for u in rules.upstreams}
    own = [profile for profile in rules.profiles if model in profile.models]
    matching = []
    for one in own[0].decisions if own else rules.decisions:
        value = evaluate(one.when, observations)
        if (value is True or (value is None and one.unknown_matches)) and (one.guard or not respected):
            matching.append(one)
    order = sorted(
        matching,
        key=lambda d: (not d.guard, -d.tier, -confidence(d.when, observations), -d.priority, d.name),
    )
    return order[0] if order else None


costs_of_signals = st.fixed_dictionaries(dict.fromkeys(NAMES, st.sampled_from(list(Cost))))
waits_of_signals = st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(0, 3)))
models = st.sampled_from([None, "small", "large", "stranger", "virtual"])


@settings(max_examples=400)
@given(policies(), all_observations, costs_of_signals, waits_of_signals, models)
def test_lazy_and_full_evaluation_decide_alike(
    rules: Policy,
    observations: dict[SignalName, Observation],
    costs: dict[SignalName, Cost],
    waits: dict[SignalName, int],
    model: str | None,
) -> None:
    def asked() -> dict[SignalName, FakeSignal]:
        return {name: FakeSignal(name, observations[name], costs[name], waits[name]) for name in NAMES}

    async def both() -> tuple[Verdict, Verdict]:
        lazy = await Engine(rules, asked()).decide(view(model), LONG)
        full = await Engine(replace(rules, evaluation="full"), asked()).decide(view(model), LONG)
        return lazy, full

    lazy, full = asyncio.run(both())
    every = everything(rules, observations)
    expected = by_the_book(rules, every, model)
    assert full.decision == lazy.decision == (expected.name if expected else None)
    assert full.outcome == lazy.outcome == (expected.outcome if expected else None)
    assert full.skipped == ()
    if expected:
        assert full.confidence == confidence(expected.when, every)
        assert lazy.confidence is not None
        assert lazy.confidence <= full.confidence or lazy.unknown_root
    for verdict in (lazy, full):
        known = {name: every[name] for name in verdict.observations}
        assert {name: o.took(0) for name, o in verdict.observations.items()} == known


@given(policies(), all_observations, st.data())
@example(policy(), {}, None)
def test_order_of_decisions_in_the_file_changes_nothing(
    rules: Policy, observations: dict[SignalName, Observation], data: st.DataObject | None
) -> None:
    again = replace(rules, decisions=tuple(data.draw(st.permutations(rules.decisions)) if data else ()))
    first, second = asyncio.run(decide(rules, observations)), asyncio.run(decide(again, observations))
    assert (first.decision, first.outcome) == (second.decision, second.outcome)


async def test_no_match_has_no_outcome() -> None:
    verdict = await decide(policy(decision("one", A)), seen(a=no()))
    assert (verdict.decision, verdict.outcome, verdict.reason, verdict.confidence) == (None, None, "no_match", None)


async def test_priority_goes_before_confidence_and_name() -> None:
    rules = policy(decision("low", A, priority=1), decision("zz-high", B, priority=2))
    verdict = await decide(rules, seen(a=yes(1.0), b=yes(0.6)))
    assert (verdict.decision, verdict.reason, verdict.confidence) == ("zz-high", "priority", 0.6)


async def test_equal_priorities_are_settled_by_confidence() -> None:
    rules = policy(decision("aa", A), decision("bb", B))
    verdict = await decide(rules, seen(a=yes(0.6), b=yes(0.7)))
    assert (verdict.decision, verdict.reason) == ("bb", "confidence")


async def test_equal_confidences_are_settled_by_name() -> None:
    rules = policy(decision("bb", B), decision("aa", A))
    verdict = await decide(rules, seen(a=yes(0.7), b=yes(0.7)))
    assert (verdict.decision, verdict.reason) == ("aa", "name")


async def test_a_guard_is_outranked_by_no_route() -> None:
    rules = policy(decision("route", A, priority=1000), decision("guard", B, priority=1, guard=True))
    assert (await decide(rules, seen(a=yes(), b=yes(0.5)))).decision == "guard"


async def test_a_guard_is_outranked_by_a_higher_guard() -> None:
    rules = policy(decision("low", A, priority=1, guard=True), decision("high", B, priority=2, guard=True))
    assert (await decide(rules, seen(a=yes(), b=yes()))).decision == "high"


async def test_a_guard_that_came_out_unknown_fails_closed() -> None:
    rules = policy(decision("route", A), decision("guard", B, guard=True))
    verdict = await decide(rules, seen(a=yes(), b=unknown()))
    assert (verdict.decision, verdict.unknown_root, verdict.confidence) == ("guard", True, 0.0)


async def test_a_route_that_came_out_unknown_does_not_match() -> None:
    assert (await decide(policy(decision("route", A)), seen(a=unknown()))).decision is None
    assert (await decide(policy(decision("route", Not(A))), seen(a=unknown()))).decision is None


async def test_on_unknown_overrides_guard_and_route() -> None:
    rules = policy(decision("guard", A, guard=True, unknown_matches=False), decision("route", A, unknown_matches=True))
    assert (await decide(rules, seen(a=unknown()))).decision == "route"


async def test_unknown_inside_a_tree_is_no_match_inside_it() -> None:
    tree = All((A, Any((B, C))))
    rules = policy(decision("guard", tree, guard=True))
    assert (await decide(rules, seen(a=no(), b=unknown(), c=no()))).decision is None
    assert (await decide(rules, seen(a=yes(), b=unknown(), c=no()))).unknown_root
    assert not (await decide(rules, seen(a=yes(), b=unknown(), c=yes()))).unknown_root


@pytest.mark.parametrize(
    ("respected", "model", "b", "expected", "reason", "considered"),
    [
        (False, "large", no(), "route", "priority", True),
        (True, "large", no(), None, "requested_model", False),
        (True, "large", yes(), "guard", "priority", False),
        (True, "large", unknown(), "guard", "priority", False),
        (True, "stranger", no(), "route", "priority", True),
        (True, None, no(), "route", "priority", True),
    ],
)
async def test_a_request_that_names_a_model(
    respected: bool, model: str | None, b: Observation, expected: str | None, reason: str, considered: bool
) -> None:
    rules = policy(decision("route", A), decision("guard", B, guard=True), respect_requested_model=respected)
    verdict = await decide(rules, seen(a=yes(), b=b), model=model)
    assert (verdict.decision, verdict.reason, verdict.routes_considered) == (expected, reason, considered)
    assert [trace.considered for trace in verdict.trace] == [considered, True]


async def test_a_respected_model_spares_the_routes_signals() -> None:
    rules = policy(decision("route", A), decision("guard", B, guard=True), respect_requested_model=True)
    asked = signals(seen(a=yes(), b=no()))
    verdict = await Engine(rules, asked).decide(view("large"), LONG)
    assert asked[NAMES[0]].asked == 0
    assert verdict.skipped == (NAMES[0],)


async def test_a_cheap_signal_that_settles_the_matter_spares_the_dear_ones() -> None:
    rules = policy(decision("cheap", A, priority=2), decision("dear", B, priority=1))
    asked = signals(seen(a=yes(), b=yes()), costs={NAMES[0]: Cost.HEURISTIC})
    verdict = await Engine(rules, asked).decide(view(), LONG)
    assert verdict.decision == "cheap"
    assert asked[NAMES[1]].asked == 0
    assert verdict.skipped == (NAMES[1],)
    assert [(stage.name, stage.asked) for stage in verdict.stages] == [("heuristic", (NAMES[0],))]


async def test_a_conjunction_that_a_cheap_signal_made_false_asks_nothing_more() -> None:
    rules = policy(decision("both", All((A, B))))
    asked = signals(seen(a=no(), b=yes()), costs={NAMES[0]: Cost.HEURISTIC})
    verdict = await Engine(rules, asked).decide(view(), LONG)
    assert verdict.decision is None
    assert asked[NAMES[1]].asked == 0


async def test_what_is_unknown_does_not_spare_the_rest() -> None:
    rules = policy(decision("either", Any((A, B))))
    asked = signals(seen(a=unknown(), b=yes()), costs={NAMES[0]: Cost.HEURISTIC})
    assert (await Engine(rules, asked).decide(view(), LONG)).decision == "either"


async def test_a_tie_asks_for_what_only_changes_the_confidence() -> None:
    rules = policy(decision("aa", Any((A, B))), decision("bb", C))
    asked = signals(seen(a=yes(0.5), b=yes(0.9), c=yes(0.7)), costs={NAMES[0]: Cost.HEURISTIC})
    verdict = await Engine(rules, asked).decide(view(), LONG)
    assert (verdict.decision, verdict.confidence) == ("aa", 0.9)


async def test_learned_signals_are_asked_at_once() -> None:
    gathered = asyncio.Barrier(3)

    class Meets(FakeSignal):
        async def observe(self, view: object) -> Observation:
            await gathered.wait()
            return yes()

    rules = policy(decision("all", All((A, B, C))))
    verdict = await Engine(rules, {name: Meets(name, yes()) for name in NAMES[:3]}).decide(view(), LONG)
    assert verdict.decision == "all"
    assert [stage.name for stage in verdict.stages] == ["learned"]


async def test_a_signal_that_no_longer_matters_is_cancelled_and_not_recorded() -> None:
    rules = policy(decision("first", A, priority=2), decision("second", B, priority=1))
    stuck = StuckSignal(NAMES[1])
    verdict = await Engine(rules, {NAMES[0]: FakeSignal(NAMES[0], yes()), NAMES[1]: stuck}).decide(view(), LONG)
    assert verdict.decision == "first"
    assert (stuck.asked, stuck.cancelled) == (1, 1)
    assert verdict.skipped == (NAMES[1],)
    assert len(asyncio.all_tasks()) == 1


async def test_a_signal_that_misses_the_deadline_is_timed_out_and_the_decision_made_without_it() -> None:
    rules = policy(decision("guard", B, guard=True), decision("route", A))
    stuck = StuckSignal(NAMES[1])
    engine = Engine(rules, {NAMES[0]: FakeSignal(NAMES[0], yes()), NAMES[1]: stuck})
    verdict = await engine.decide(view(), 0.02)
    assert verdict.observations[NAMES[1]].status == "timed_out"
    assert verdict.observations[NAMES[0]].matched is True
    assert (verdict.decision, verdict.unknown_root) == ("guard", True)
    assert stuck.cancelled == 1
    assert len(asyncio.all_tasks()) == 1


async def test_a_route_goes_by_what_was_known_at_the_deadline() -> None:
    rules = policy(decision("stuck", B, priority=2), decision("known", A, priority=1))
    engine = Engine(rules, {NAMES[0]: FakeSignal(NAMES[0], yes()), NAMES[1]: StuckSignal(NAMES[1])})
    assert (await engine.decide(view(), 0.02)).decision == "known"


async def test_a_signal_that_ignores_cancellation_holds_nobody_up() -> None:
    stubborn = StuckSignal(NAMES[0], stubborn=True)
    engine = Engine(policy(decision("guard", A, guard=True)), {NAMES[0]: stubborn})
    verdict = await engine.decide(view(), 0.01)
    assert verdict.observations[NAMES[0]].status == "timed_out"
    stubborn.release.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1


async def test_a_heuristic_that_hangs_times_out_with_those_behind_it() -> None:
    rules = policy(decision("guard", All((A, B)), guard=True))
    hung = StuckSignal(NAMES[0])
    hung.cost = Cost.HEURISTIC
    behind = FakeSignal(NAMES[1], yes(), Cost.HEURISTIC)
    verdict = await Engine(rules, {NAMES[0]: hung, NAMES[1]: behind}).decide(view(), 0.02)
    assert {o.status for o in verdict.observations.values()} == {"timed_out"}
    assert verdict.decision == "guard"


@pytest.mark.parametrize("cost", list(Cost))
async def test_without_any_budget_every_signal_is_timed_out(cost: Cost) -> None:
    asked = signals(seen(a=yes()), costs={NAMES[0]: cost})
    asked[NAMES[0]].waits = 1000
    verdict = await Engine(policy(decision("guard", A, guard=True)), asked).decide(view(), 0.0)
    assert verdict.observations[NAMES[0]].status == "timed_out"
    assert verdict.decision == "guard"


@pytest.mark.parametrize("cost", list(Cost))
async def test_a_signal_that_raises_is_failed_and_says_nothing_of_the_content(
    cost: Cost, caplog: pytest.LogCaptureFixture
) -> None:
    asked = signals(seen(a=yes()), costs={NAMES[0]: cost})
    asked[NAMES[0]].answer = RuntimeError("the client's secret")
    with caplog.at_level(logging.DEBUG):
        verdict = await Engine(policy(decision("guard", A, guard=True)), asked).decide(view(), LONG)
    observation = verdict.observations[NAMES[0]]
    assert (observation.status, observation.reason) == ("failed", "RuntimeError")
    assert "fake/a" in caplog.text
    assert "secret" not in caplog.text
    assert "secret" not in repr(verdict)


@pytest.mark.parametrize("cost", list(Cost))
async def test_a_signal_whose_work_was_cancelled_from_elsewhere_is_failed(cost: Cost) -> None:
    asked = signals(seen(a=yes()), costs={NAMES[0]: cost})

    async def observe(view: object) -> Observation:
        raise asyncio.CancelledError

    asked[NAMES[0]].observe = observe  # type: ignore[method-assign,assignment]
    verdict = await Engine(policy(decision("guard", A, guard=True)), asked).decide(view(), LONG)
    assert verdict.observations[NAMES[0]].status == "failed"


async def test_a_client_that_leaves_takes_its_signals_along() -> None:
    stuck = StuckSignal(NAMES[0])
    deciding = asyncio.create_task(Engine(policy(decision("one", A)), {NAMES[0]: stuck}).decide(view(), LONG))
    await stuck.started.wait()
    deciding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deciding
    assert stuck.cancelled == 1
    assert len(asyncio.all_tasks()) == 1


async def test_many_requests_are_decided_at_once_without_mixing() -> None:
    class Echo(FakeSignal):
        async def observe(self, view: object) -> Observation:
            await asyncio.sleep(0)
            return Observation("observed", view.requested_model == "large")  # type: ignore[attr-defined]

    engine = Engine(policy(decision("one", A)), {NAMES[0]: Echo(NAMES[0], yes())})
    verdicts = await asyncio.gather(*(engine.decide(view(m), LONG) for m in ("large", "small") * 20))
    assert [v.decision for v in verdicts] == ["one", None] * 20


async def test_a_signal_shared_by_decisions_is_asked_once() -> None:
    asked = signals(seen(a=no()))
    rules = policy(decision("one", A), decision("two", All((A, A))), decision("three", A, guard=True))
    await Engine(replace(rules, evaluation="full"), asked).decide(view(), LONG)
    assert asked[NAMES[0]].asked == 1


def test_a_policy_whose_signal_was_not_built_is_refused_at_once() -> None:
    with pytest.raises(KeyError):
        Engine(policy(decision("one", A)), {})


async def test_durations_and_stage_times_come_from_the_clock() -> None:
    ticks = iter(range(1000))
    asked = signals(seen(a=yes(), b=yes()), costs={NAMES[0]: Cost.HEURISTIC})
    engine = Engine(policy(decision("one", All((A, B)))), asked, clock=lambda: float(next(ticks)))
    verdict = await engine.decide(view(), 500.0)
    assert all(o.duration > 0 for o in verdict.observations.values())
    assert all(stage.seconds > 0 for stage in verdict.stages)
    assert verdict.seconds > sum(stage.seconds for stage in verdict.stages)


async def test_the_trace_has_each_nodes_value() -> None:
    tree = All((A, Not(B), Any((C, D))))
    rules = policy(decision("one", tree, outcome=Refuse(403, "no", "No.")), decision("never", B, outcome=Clarify("?")))
    verdict = await decide(rules, seen(a=yes(0.9), b=no(0.2), c=unknown(), d=yes(0.7)))
    one, never = verdict.trace
    assert (one.name, one.matched, one.tree.kind, one.tree.state) == ("one", True, "all", "true")
    assert one.tree.confidence == pytest.approx(0.7)
    first, second, third = one.tree.children
    assert (first.kind, first.state, first.leaf, first.confidence) == ("signal", "true", A, 0.9)
    assert (second.kind, second.state, second.children[0].state) == ("not", "true", "false")
    assert [child.state for child in third.children] == ["unknown", "true"]
    assert (never.matched, never.tree.state) == (False, "false")


async def test_the_trace_says_what_stayed_open() -> None:
    rules = policy(decision("cheap", A, priority=2), decision("dear", All((A, B)), priority=1))
    asked = signals(seen(a=yes(), b=yes()), costs={NAMES[0]: Cost.HEURISTIC})
    verdict = await Engine(rules, asked).decide(view(), LONG)
    dear = verdict.trace[1]
    assert (dear.matched, dear.tree.state, dear.tree.confidence) == (None, "open", None)
    assert [child.state for child in dear.tree.children] == ["true", "open"]


async def test_full_evaluation_asks_every_signal_of_the_policy() -> None:
    rules = policy(decision("route", A), decision("guard", B, guard=True), respect_requested_model=True)
    asked = signals(seen(a=yes(), b=no()))
    verdict = await Engine(replace(rules, evaluation="full"), asked).decide(view("large"), LONG)
    assert verdict.skipped == ()
    assert verdict.reason == "requested_model"
    assert [signal.asked for signal in asked.values()] == [1, 1]


async def test_a_projection_is_computed_as_soon_as_what_it_reads_has_answered() -> None:
    risk = WeightedScore(SignalName("score", "risk"), (ScoreInput(A, 0.5, "match"), ScoreInput(B, 0.5, "score")))
    level = Band(SignalName("band", "level"), risk.name, (("low", Interval(None, 0.6)), ("high", Interval(0.6))))
    high = Leaf(level.name, labels=frozenset(("high",)))
    rules = policy(decision("risky", high, guard=True), projections=(risk, level))
    asked = signals(seen(a=yes(), b=no(0.3)), costs={NAMES[0]: Cost.HEURISTIC})
    verdict = await Engine(rules, asked).decide(view(), LONG)
    assert verdict.decision == "risky"
    assert verdict.observations[risk.name].value == pytest.approx(0.65)
    assert verdict.observations[level.name].label == "high"


async def test_a_guard_over_a_projection_of_a_timed_out_signal_matches_and_says_that_it_overran() -> None:
    risk = WeightedScore(SignalName("score", "risk"), (ScoreInput(A, 1.0, "score"),), threshold=0.5)
    rules = policy(decision("guard", Leaf(risk.name), guard=True), projections=(risk,))
    verdict = await Engine(rules, {NAMES[0]: StuckSignal(NAMES[0])}).decide(view(), 0.01)
    assert (verdict.decision, verdict.unknown_root, verdict.overran) == ("guard", True, True)
    assert verdict.observations[risk.name].status == "failed"


async def test_a_projection_that_cannot_matter_any_more_asks_for_nothing() -> None:
    risk = WeightedScore(SignalName("score", "risk"), (ScoreInput(B, 1.0, "score"),), threshold=0.5)
    rules = policy(decision("cheap", A, priority=2), decision("dear", Leaf(risk.name), priority=1), projections=(risk,))
    asked = signals(seen(a=yes(), b=yes(1.0)), costs={NAMES[0]: Cost.HEURISTIC})
    verdict = await Engine(rules, asked).decide(view(), LONG)
    assert verdict.decision == "cheap"
    assert asked[NAMES[1]].asked == 0
    assert verdict.skipped == (NAMES[1],)


async def test_confidence_goes_before_priority_among_routes_where_the_policy_says_so() -> None:
    rules = policy(decision("high", A, priority=9, tier=0), decision("sure", B, priority=1, tier=0))
    verdict = await decide(rules, seen(a=yes(0.6), b=yes(0.7)))
    assert (verdict.decision, verdict.reason) == ("sure", "confidence")
    verdict = await decide(rules, seen(a=yes(0.7), b=yes(0.7)))
    assert (verdict.decision, verdict.reason) == ("high", "priority")


async def test_a_profile_has_its_own_routes_and_the_policys_guards() -> None:
    guard, shared, own = decision("guard", A, guard=True), decision("shared", B), decision("own", B)
    profile = Profile("team", frozenset(("auto-team",)), "x-team", frozenset(("blue",)), (guard, own), "large")
    rules = policy(guard, shared, profiles=(profile,))
    assert (await decide(rules, seen(a=no(), b=yes()))).decision == "shared"
    verdict = await decide(rules, seen(a=no(), b=yes()), model="auto-team")
    assert (verdict.decision, verdict.profile) == ("own", "team")
    assert (await decide(rules, seen(a=yes(), b=yes()), model="auto-team")).decision == "guard"


@pytest.mark.parametrize(
    ("headers", "won"),
    [
        ({"x-team": "blue"}, "own"),
        ({"x-team": " Blue "}, "own"),
        ({"x-team": "ÃTÃ"}, "own"),
        ({"x-team": "bluest"}, "shared"),
        ({"x-team": ""}, "shared"),
        ({"x-other": "blue"}, "shared"),
        ({}, "shared"),
    ],
)
async def test_a_profile_by_header_reads_it_as_header_signals_do(headers: dict[str, str], won: str) -> None:
    shared, own = decision("shared", B), decision("own", B)
    profile = Profile("team", frozenset(), "x-team", frozenset(("blue", "été")), (own,), "large")
    rules = policy(shared, profiles=(profile,))
    verdict = await Engine(rules, signals(seen(a=no(), b=yes()))).decide(replace(view(), headers=headers), LONG)
    assert verdict.decision == won
