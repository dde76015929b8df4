from __future__ import annotations

from dataclasses import replace

import pytest
from policy_cases import decision, leaf, no, policy, seen, signals, view, yes

from router.policy.engine import Engine
from router.policy.model import Clarify, Policy, Profile, Refuse, Route
from router.policy.resolve import Resolution, offers, resolve, shortlist
from router.request.view import RequestView
from router.selection.model import Static, Weighted
from router.selection.needs import measure
from router.signals.base import Observation

TOOLS = frozenset({"tools"})


async def resolution(rules: Policy, a: Observation, request: RequestView | None = None) -> Resolution:
    request = request or view()
    verdict = await Engine(rules, signals(seen(a=a))).decide(request, 60.0)
    return resolve(shortlist(offers(rules, verdict, request), measure(request, False)), verdict, request, "record")


async def upstream_of(rules: Policy, a: Observation, model: str | None = None) -> str:
    upstream = (await resolution(rules, a, view(model))).upstream
    assert upstream is not None
    return upstream.model


def without_tools(rules: Policy, *models: str, **changes: object) -> Policy:
    """The policy, where these models can't call tools."""
    upstreams = tuple(replace(one, capabilities=frozenset()) if one.model in models else one for one in rules.upstreams)
    return replace(rules, upstreams=upstreams, **changes)


def two_ways(guard: bool = False, fallback: tuple[str, ...] = ()) -> Policy:
    return policy(
        decision("one", leaf("a"), guard=guard, outcome=Route(("first", "second"), Static(), fallback)),
        decision("more", leaf("a"), priority=1, outcome=Route(("spare", "reserve"), Static())),
    )


NEEDS_TOOLS = replace(view(), needs=TOOLS)


async def test_a_route_goes_to_its_first_candidate() -> None:
    rules = policy(decision("one", leaf("a"), outcome=Route(("large", "small"), Static())))
    assert await upstream_of(rules, yes()) == "large"


async def test_no_match_goes_to_the_default_model() -> None:
    assert await upstream_of(policy(decision("one", leaf("a"))), no()) == "small"


async def test_no_match_under_a_profile_goes_to_the_profiles_default_model() -> None:
    rules = policy(
        decision("one", leaf("a")),
        profiles=(Profile("own", frozenset({"virtual"}), "", frozenset(), (decision("p", leaf("a")),), "large"),),
    )
    assert await upstream_of(rules, no(), "virtual") == "large"
    assert await upstream_of(rules, no(), "other") == "small"


async def test_a_requested_model_that_is_not_respected_goes_to_the_default_model() -> None:
    assert await upstream_of(policy(decision("one", leaf("a"))), no(), "large") == "small"


async def test_a_respected_model_is_where_the_request_goes() -> None:
    rules = policy(decision("one", leaf("a")), respect_requested_model=True)
    assert await upstream_of(rules, yes(), "large") == "large"


async def test_a_model_that_the_policy_does_not_know_is_not_respected() -> None:
    rules = policy(decision("one", leaf("a")), respect_requested_model=True)
    assert await upstream_of(rules, no(), "stranger") == "small"
    assert await upstream_of(rules, yes(), "stranger") == "to-one"


async def test_a_guard_takes_a_respected_request_where_it_says() -> None:
    rules = policy(decision("one", leaf("a"), guard=True), respect_requested_model=True)
    assert await upstream_of(rules, yes(), "large") == "to-one"


@pytest.mark.parametrize("outcome", [Refuse(403, "no", "No."), Clarify("Which?")])
async def test_an_answer_has_no_upstream(outcome: Refuse | Clarify) -> None:
    with pytest.raises(ValueError, match="answers by itself"):
        await resolution(policy(decision("one", leaf("a"), outcome=outcome)), yes())


async def test_a_candidate_that_can_t_take_the_request_is_passed_over_and_named() -> None:
    found = await resolution(without_tools(two_ways(), "first"), yes(), NEEDS_TOOLS)
    assert found.upstream and found.upstream.model == "second"
    assert {model: [need.word for need in unmet] for model, unmet in found.filtered.items()} == {
        "first": ["ability:tools"]
    }
    assert found.source == "route"


@pytest.mark.parametrize(
    ("unable", "fallback", "of_policy", "model", "source"),
    [
        (("first", "second"), ("spare",), ("reserve",), "spare", "fallback"),
        (("first", "second", "spare"), ("spare", "large"), ("reserve",), "large", "fallback"),
        (("first", "second", "spare"), ("spare",), ("reserve",), "reserve", "policy_fallback"),
        (("first", "second"), (), ("spare", "reserve"), "spare", "policy_fallback"),
    ],
)
async def test_what_no_candidate_takes_goes_to_the_routes_fallback_and_then_to_the_policys(
    unable: tuple[str, ...], fallback: tuple[str, ...], of_policy: tuple[str, ...], model: str, source: str
) -> None:
    rules = without_tools(two_ways(fallback=fallback), *unable, fallback=of_policy)
    found = await resolution(rules, yes(), NEEDS_TOOLS)
    assert found.upstream and (found.upstream.model, found.source) == (model, source)
    assert found.choice and found.choice.reason == "first"


async def test_where_no_fallback_can_either_there_is_no_upstream_and_everyone_is_named() -> None:
    rules = without_tools(two_ways(fallback=("spare",)), "first", "second", "spare", "reserve", fallback=("reserve",))
    found = await resolution(rules, yes(), NEEDS_TOOLS)
    assert (found.upstream, found.choice, found.source) == (None, None, None)
    assert set(found.filtered) == {"first", "second", "spare", "reserve"}


async def test_a_guard_falls_back_to_its_own_fallback_and_never_to_the_policys() -> None:
    rules = without_tools(two_ways(guard=True, fallback=("spare",)), "first", "second", fallback=("reserve",))
    found = await resolution(rules, yes(), NEEDS_TOOLS)
    assert found.upstream and found.upstream.model == "spare"
    stuck = await resolution(without_tools(rules, "spare"), yes(), NEEDS_TOOLS)
    assert stuck.upstream is None


async def test_the_default_and_a_respected_model_are_held_to_the_needs_too() -> None:
    rules = without_tools(two_ways(), "small", "large", fallback=("reserve",))
    found = await resolution(rules, no(), NEEDS_TOOLS)
    assert found.upstream and (found.upstream.model, found.source) == ("reserve", "policy_fallback")
    asked = replace(NEEDS_TOOLS, requested_model="large")
    found = await resolution(replace(rules, respect_requested_model=True), no(), asked)
    assert found.upstream and (found.upstream.model, found.source) == ("reserve", "policy_fallback")


async def test_selection_sees_only_those_who_can() -> None:
    select = Weighted({"first": 1000.0, "second": 1.0})
    rules = policy(decision("one", leaf("a"), outcome=Route(("first", "second"), select)))
    found = await resolution(without_tools(rules, "first"), yes(), NEEDS_TOOLS)
    assert found.choice and found.choice.propensities == {"second": 1.0}
    assert found.select == "weighted"


async def test_a_model_that_is_listed_twice_is_one_candidate() -> None:
    rules = policy(decision("one", leaf("a"), outcome=Route(("large", "large"), Static())))
    found = await resolution(rules, yes())
    assert found.choice and found.choice.propensities == {"large": 1.0}
