from __future__ import annotations

import pytest
from policy_cases import decision, leaf, no, policy, seen, signals, view, yes

from router.policy.engine import Engine
from router.policy.model import Clarify, Policy, Refuse, Route
from router.policy.resolve import choose_upstream
from router.signals.base import Observation


async def upstream_of(rules: Policy, a: Observation, model: str | None = None) -> str:
    verdict = await Engine(rules, signals(seen(a=a))).decide(view(model), 60.0)
    return choose_upstream(rules, verdict, view(model)).model


async def test_a_route_goes_to_its_first_candidate() -> None:
    rules = policy(decision("one", leaf("a"), outcome=Route(("large", "small"), "static")))
    assert await upstream_of(rules, yes()) == "large"


async def test_no_match_goes_to_the_default_model() -> None:
    assert await upstream_of(policy(decision("one", leaf("a"))), no()) == "small"


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
        await upstream_of(policy(decision("one", leaf("a"), outcome=outcome)), yes())
