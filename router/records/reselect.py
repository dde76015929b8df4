"""Where a request would have gone that was decided again: the model, as far as its record can tell.

Who can take the request follows from its needs, which the record has. A choice among those is the recorded one where
nothing that it depends on has changed; else it is made again where it needs neither what was learnt since nor anything
that the request says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from router.actions.headers import NO_DECISION
from router.policy.model import Clarify, Policy, Refuse, Route
from router.policy.resolve import Offer, offers, shortlist
from router.policy.verdict import Verdict
from router.records.basis import TEXT_ENCODER, StoredBasis
from router.records.redecide import Redecider
from router.records.stored import StoredRecord, StoredSelection, needs_of, to_record
from router.request.view import RequestView
from router.selection.choice import Facts, seed_of
from router.selection.model import WORDS, Cheapest, Similarity, Static, Weighted, picks_by
from router.selection.select import choose
from router.selection.snapshot import EMPTY
from router.selection.upstream import Upstream

OutcomeWord = Literal["route", "refuse", "clarify", "no_capable_model"]


@dataclass(frozen=True, slots=True)
class Came:
    """What became of a request. `models` are those that may have it: one where that is known, none without a route.

    `missing` says what one would have to know to tell which.
    """

    decision: str
    outcome: OutcomeWord
    models: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.decision} → {' | '.join(self.models) or self.outcome}"


def came(stored: StoredRecord) -> Came:
    """What became of the request as it was recorded."""
    if stored.outcome == "route" and stored.model is not None:
        return Came(stored.decision, "route", (stored.model,))
    nobody = stored.selection is not None and stored.selection.choice is None
    return Came(stored.decision, "no_capable_model" if nobody else stored.outcome)


def would_come(
    stored: StoredRecord, verdict: Verdict, redecider: Redecider, basis: StoredBasis, old: Policy | None
) -> Came:
    """What would become of it by this verdict. `basis` is the record's, `old` its policy, None: not known."""
    decision = verdict.decision or NO_DECISION
    match verdict.outcome:
        case Refuse():
            return Came(decision, "refuse")
        case Clarify():
            return Came(decision, "clarify")
    policy, selection, view = redecider.policy, stored.selection, _view(stored)
    lacking = _lacking(selection, redecider.basis, basis)
    if selection is None or lacking:
        first = next(offers(policy, verdict, view))
        return Came(decision, "route", tuple(one.model for one in first.upstreams), (lacking,))
    needs = needs_of(selection.needs)
    offer = shortlist(offers(policy, verdict, view), needs).offer
    if offer is None:
        return Came(decision, "no_capable_model")
    models = tuple(one.model for one in offer.upstreams)
    if len(models) == 1:
        return Came(decision, "route", models)
    same_encoder = redecider.basis.definitions[TEXT_ENCODER] == basis.definitions.get(TEXT_ENCODER)
    if old is not None and stored.decision == decision and stored.model is not None:
        former = shortlist(offers(old, to_record(stored, old).verdict, view), needs).offer
        if former is not None and _same_choice(former, offer, same_encoder):
            return Came(decision, "route", (stored.model,))
    chosen = _chosen(stored, selection, offer, Facts(decision, needs), old)
    if chosen is None:
        return Came(decision, "route", models, (f"selection: {WORDS[type(offer.select)]}",))
    return Came(decision, "route", (chosen,))


def _lacking(selection: StoredSelection | None, new: StoredBasis, old: StoredBasis) -> str:
    """What nobody measured then and the candidates are cut by now; empty for nothing."""
    if selection is None:
        return "needs"
    return "image sizes" if selection.needs.sizes and new.sized and not old.sized else ""


def _same_choice(former: Offer, offer: Offer, same_encoder: bool) -> bool:
    """Whether a choice is made of the same candidates in the same way, so that it is the same."""
    if isinstance(picks_by(offer.select), Similarity) and not same_encoder:
        return False
    return (former.source, former.select, _judged(former)) == (offer.source, offer.select, _judged(offer))


def _judged(offer: Offer) -> list[Upstream]:
    """The candidates without what no selection looks at."""
    return [replace(one, cluster="", endpoint=None, rewrite_model="") for one in offer.upstreams]


def _chosen(
    stored: StoredRecord, selection: StoredSelection, offer: Offer, facts: Facts, old: Policy | None
) -> str | None:
    """The choice, made again; None where the record has not what that takes."""
    match offer.select:
        case Static() | Cheapest():
            seed: int | None = 0
        case Weighted() as weighted:
            seed = _seed(stored, selection, weighted, old)
        case _:
            seed = None
    return None if seed is None else choose(offer.select, offer.upstreams, facts, EMPTY, seed).model


def _seed(stored: StoredRecord, selection: StoredSelection, select: Weighted, old: Policy | None) -> int | None:
    """The key of a weighted choice: from the record's identifier, or the recorded one where it was of the same kind."""
    if select.sticky == "request":
        return seed_of("request", stored.record)
    if old is None or selection.source != "route" or selection.choice is None:
        return None
    former = next((one.outcome for one in old.all_decisions if one.name == stored.matched), None)
    if not isinstance(former, Route) or not isinstance(former.select, Weighted):
        return None
    same_key = (former.select.sticky, former.select.header) == (select.sticky, select.header)
    return int(selection.choice.seed, 16) if same_key else None


def _view(stored: StoredRecord) -> RequestView:
    """What offers depend on: the model that the request names."""
    return RequestView(
        api=stored.api,  # type: ignore[arg-type]  # written by ourselves
        requested_model=stored.requested_model,
        turns=(),
        tools=(),
        stream=stored.stream,
        body_bytes=stored.body_bytes,
        model_span=None,
    )
