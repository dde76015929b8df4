"""From a verdict to the upstream that serves it: who may, who can, and which of those does.

Candidates that do not meet what the request needs are dropped before any is selected. The choice itself is
`router.selection`'s matter; what the client is told where nobody can is the pipeline's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from router.policy.model import Policy, Route
from router.policy.verdict import Verdict
from router.request.view import RequestView
from router.selection.choice import Choice, Facts
from router.selection.model import WORDS, Select, Similarity, Static, picks_by, reads_state
from router.selection.needs import Needs, Unmet
from router.selection.select import choose, seed_for
from router.selection.snapshot import EMPTY, Snapshot
from router.selection.upstream import Upstream

Source = Literal["route", "fallback", "policy_fallback", "requested_model", "default_model"]
"""Whose candidates they are: the decision's, its fallback's, the policy's fallback's, or, without a decision, the
request's own wish or the policy's or profile's default."""


_FIRST = Static()


@dataclass(frozen=True, slots=True)
class Offer:
    """Models that may take the request, and how one of them is selected. Not empty."""

    source: Source
    upstreams: tuple[Upstream, ...]
    select: Select = _FIRST


@dataclass(frozen=True, slots=True)
class Shortlist:
    """Who can take the request: the first offer that holds anyone who can, cut to those.

    `offer` is None where nobody can. `filtered` are those that cannot, of every offer up to there, with what they miss.
    """

    offer: Offer | None
    filtered: Mapping[str, tuple[Unmet, ...]]
    needs: Needs


@dataclass(frozen=True, slots=True)
class Resolution:
    """Who takes the request and how that came about; `upstream` and `choice` are None where nobody can.

    `source` is whose candidates were chosen from, `select` how (a word of the policy). `seed` and the state's `version`
    and `digest` are all that chance and learning had a say with; 0 and empty where the selection reads no state.
    """

    upstream: Upstream | None
    choice: Choice | None
    source: Source | None
    select: str
    seed: int
    state_version: int
    state_digest: str
    filtered: Mapping[str, tuple[Unmet, ...]]
    needs: Needs


def offers(policy: Policy, verdict: Verdict, view: RequestView) -> Iterator[Offer]:
    """Who may take the request, best first. ValueError for a verdict that answers by itself.

    A guard's request never goes anywhere but where the guard says: the policy's fallback is not for it.
    """
    bound = False
    match verdict.outcome:
        case Route(models=models, select=select, fallback=fallback):
            yield Offer("route", _upstreams(policy, models), select)
            if fallback:
                yield Offer("fallback", _upstreams(policy, fallback))
            bound = any(one.guard for one in verdict.decisions if one.name == verdict.decision)
        case None if verdict.reason == "requested_model" and view.requested_model is not None:
            yield Offer("requested_model", _upstreams(policy, (view.requested_model,)))
        case None:
            yield Offer("default_model", _upstreams(policy, (default_model(policy, verdict),)))
        case _:
            raise ValueError("this verdict answers by itself")
    if policy.fallback and not bound:
        yield Offer("policy_fallback", _upstreams(policy, policy.fallback))


def default_model(policy: Policy, verdict: Verdict) -> str:
    """Where a request goes that nothing matched: by the profile that it has, else by the policy."""
    own = (profile.default_model for profile in policy.profiles if profile.name == verdict.profile)
    return next(own, policy.default_model)


def shortlist(offered: Iterator[Offer], needs: Needs) -> Shortlist:
    """The first offer with anyone who can take the request."""
    filtered: dict[str, tuple[Unmet, ...]] = {}
    for offer in offered:
        unmet = {one.model: needs.unmet(one) for one in offer.upstreams}
        filtered.update((model, missing) for model, missing in unmet.items() if missing)
        able = tuple(one for one in offer.upstreams if not unmet[one.model])
        if able:
            return Shortlist(Offer(offer.source, able, offer.select), filtered, needs)
    return Shortlist(None, filtered, needs)


def resolve(
    able: Shortlist,
    verdict: Verdict,
    view: RequestView,
    record: str,
    snapshot: Snapshot = EMPTY,
    similarities: Mapping[str, float] | None = None,
) -> Resolution:
    """Choose one of those who can. Depends on nothing but its arguments; of the record only on its identifier."""
    if able.offer is None:
        return Resolution(None, None, None, "", 0, 0, "", able.filtered, able.needs)
    select = able.offer.select
    read = snapshot if reads_state(select) else EMPTY
    seed = seed_for(select, view, record)
    facts = Facts(verdict.decision or "", able.needs, similarities)
    choice = choose(select, able.offer.upstreams, facts, read, seed)
    [upstream] = {one.model: one for one in able.offer.upstreams if one.model == choice.model}.values()
    return Resolution(
        upstream=upstream,
        choice=choice,
        source=able.offer.source,
        select=WORDS[type(select)],
        seed=seed,
        state_version=read.version,
        state_digest=read.digest,
        filtered=able.filtered,
        needs=able.needs,
    )


def reads_cards(policy: Policy) -> bool:
    """Whether a route compares requests with models' cards."""
    return any(isinstance(picks_by(route.select), Similarity) for route in routes(policy))


def routes(policy: Policy) -> Iterator[Route]:
    """The routes of all decisions, of every profile."""
    return (one.outcome for one in policy.all_decisions if isinstance(one.outcome, Route))


def _upstreams(policy: Policy, models: Sequence[str]) -> tuple[Upstream, ...]:
    return tuple(policy.upstream(model) for model in dict.fromkeys(models))
