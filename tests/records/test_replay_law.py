"""Replay never says anything but what the engine would have decided, and of the same policy it says nothing new."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kept_records import TEXT_NEEDS, record_of
from policy_cases import NAMES, FakeSignal, all_observations, policies, view

from router.policy.engine import Engine
from router.policy.model import Decision, Policy, Route
from router.policy.verdict import Verdict
from router.records.basis import TEXT_ENCODER, StoredBasis
from router.records.redecide import Redecider, Undecidable
from router.records.replay import compare
from router.records.reselect import would_come
from router.records.stored import StoredRecord, decode, encode, to_stored
from router.selection.model import Bandit, Cheapest, Elo, Select, Static, Weighted
from router.signals.base import Cost, Observation, SignalName

LONG = 60.0
SAME = {**{str(name): "same" for name in NAMES}, TEXT_ENCODER: "same"}

models = st.sampled_from([None, "small", "large", "stranger", "virtual"])
costs = st.fixed_dictionaries(dict.fromkeys(NAMES, st.sampled_from(list(Cost))))
waits = st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(0, 3)))
selects = st.sampled_from(
    [
        Static(),
        Cheapest(),
        Weighted({"small": 1.0, "large": 2.0}),
        Weighted({"small": 1.0, "large": 2.0}, "request"),
        Bandit(),
        Elo(0.5),
    ]
)


def basis_of(policy: Policy, definitions: Mapping[str, str] = SAME) -> StoredBasis:
    profiles = tuple((one.name, repr(sorted(one.models))) for one in policy.profiles)
    known = tuple(one.model for one in policy.upstreams)
    return StoredBasis(policy.digest, b"", dict(definitions), "apis", known, profiles, False)


def decided(
    policy: Policy,
    observations: Mapping[SignalName, Observation],
    model: str | None,
    costs: Mapping[SignalName, Cost] | None = None,
    waits: Mapping[SignalName, int] | None = None,
) -> Verdict:
    asked = {
        name: FakeSignal(name, observations[name], (costs or {}).get(name, Cost.TEXT_MODEL), (waits or {}).get(name, 0))
        for name in NAMES
    }
    return asyncio.run(Engine(policy, asked).decide(view(model), LONG))


def recorded(policy: Policy, verdict: Verdict, model: str | None) -> StoredRecord:
    return decode(encode(to_stored(record_of(policy, verdict, view(model)))))


def with_selects(policy: Policy, drawn: st.DataObject) -> Policy:
    """Each route has two candidates and some way to choose."""

    def changed(one: Decision) -> Decision:
        if not isinstance(one.outcome, Route):
            return one
        select: Select = drawn.draw(selects)
        return replace(one, outcome=Route(drawn.draw(st.permutations(["small", "large"])), select))

    own = tuple(map(changed, policy.decisions))
    by_name = {one.name: one for one in own}
    profiles = tuple(
        replace(one, decisions=tuple(by_name.get(each.name) or changed(each) for each in one.decisions))
        for one in policy.profiles
    )
    return replace(policy, decisions=own, profiles=profiles)


@pytest.mark.slow
@settings(max_examples=150)
@given(policies(), all_observations, costs, waits, models, st.data())
def test_replay_under_the_same_policy_changes_nothing(
    policy: Policy,
    observations: dict[SignalName, Observation],
    costs: dict[SignalName, Cost],
    waits: dict[SignalName, int],
    model: str | None,
    data: st.DataObject,
) -> None:
    policy = with_selects(policy, data)
    verdict = decided(policy, observations, model, costs, waits)
    stored = recorded(policy, verdict, model)
    redecider = Redecider(policy, basis_of(policy))
    again = redecider.decide(stored, basis_of(policy))
    assert isinstance(again, Verdict)
    for name in ("decision", "outcome", "reason", "confidence", "unknown_root", "routes_considered", "profile"):
        assert getattr(again, name) == getattr(verdict, name)
    assert again.skipped == verdict.skipped
    assert {name: one.took(0) for name, one in again.observations.items()} == {
        name: one.took(0) for name, one in verdict.observations.items()
    }
    compared = compare(stored, basis_of(policy), policy, redecider)
    assert (compared.changed, compared.missing) == (False, ())
    assert compared.after == compared.before


@pytest.mark.slow
@settings(max_examples=200)
@given(policies(), policies(), all_observations, models, st.sets(st.sampled_from(NAMES), max_size=3), st.booleans())
def test_what_replay_says_of_another_policy_is_what_the_engine_would_have_decided(
    old: Policy,
    new: Policy,
    observations: dict[SignalName, Observation],
    model: str | None,
    redefined: set[SignalName],
    full: bool,
) -> None:
    verdict = decided(replace(old, evaluation="full") if full else old, observations, model)
    stored = recorded(old, verdict, model)
    redecider = Redecider(new, basis_of(new, {**SAME, **{str(name): "another" for name in redefined}}))
    again = redecider.decide(stored, basis_of(old))
    if isinstance(again, Undecidable):
        signals = {name for name in again.missing if "/" in name}
        seen = {str(name) for name in verdict.observations} - {str(name) for name in redefined}
        assert not signals & seen
        assert again.missing
        return
    # What was redefined may answer anything: nothing may rest on it.
    for answer in (
        Observation("observed", True, 1.0),
        Observation("observed", False, 0.0),
        Observation("failed", None),
    ):
        expected = decided(new, {**observations, **dict.fromkeys(redefined, answer)}, model)
        assert (again.decision, again.outcome, again.profile) == (expected.decision, expected.outcome, expected.profile)
    came = would_come(stored, again, redecider, basis_of(old), old)
    expected_record = record_of(new, expected, view(model), TEXT_NEEDS, stored.record)
    if not came.missing and expected_record.outcome == "route":
        assert came.models == (expected_record.model,)
    assert came.decision == expected_record.decision


@pytest.mark.slow
@settings(max_examples=80)
@given(policies(), all_observations, st.data())
def test_a_choice_that_is_made_again_is_the_one_that_would_have_been_made(
    policy: Policy, observations: dict[SignalName, Observation], data: st.DataObject
) -> None:
    old, new = with_selects(policy, data), with_selects(policy, data)
    verdict = decided(old, observations, None)
    stored = recorded(old, verdict, None)
    redecider = Redecider(new, basis_of(new))
    again = redecider.decide(stored, basis_of(old))
    assert isinstance(again, Verdict)
    came = would_come(stored, again, redecider, basis_of(old), old)
    expected = record_of(new, decided(new, observations, None), view(), TEXT_NEEDS, stored.record)
    assert came.outcome == expected.outcome
    assert expected.model is None or expected.model in came.models
    assert len(came.models) <= 1 or came.missing
