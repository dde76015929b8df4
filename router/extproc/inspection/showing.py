"""The policy that serves and the packs that serve it, as documents for the admin address.

Plain data of the policy's author and of whoever made the packs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from router.config.load import LoadedPolicy
from router.extproc.house import House
from router.extproc.inspection.remembering import moment
from router.inference.gate import Miss
from router.inference.ledger import Checked, Ledger
from router.packs.files import Tower, towers_of
from router.packs.manifest import TextClassifier, VisionTower
from router.packs.store import Pack
from router.policy.agenda import signals_below
from router.policy.model import All, AtLeast, Clarify, Condition, Decision, Not, Refuse, Route
from router.policy.model import Any as AnyOf
from router.policy.predicate import Leaf
from router.policy.projection import Band, Partition, Projection, WeightedScore
from router.selection.model import WORDS
from router.selection.upstream import Upstream

Document = dict[str, Any]


def policy_document(loaded: LoadedPolicy) -> Document:
    """Decisions, signals, projections and upstreams; without the text and what is counted of requests."""
    policy = loaded.policy
    asked = signals_below(policy)
    profiles = {
        decision.name: profile.name
        for profile in policy.profiles
        for decision in profile.decisions
        if decision not in policy.decisions
    }
    return {
        "decisions": [_decision(one, profiles.get(one.name)) for one in policy.all_decisions],
        "default_model": policy.default_model,
        "on_failure": policy.on_failure,
        "observe_only": policy.observe_only,
        "signals": [
            {
                "name": str(spec.name),
                "family": spec.name.family,
                "threshold": getattr(spec.settings, "threshold", None),
                "matching": list(spec.settings.matching) if spec.settings.matching else None,
                "asked": spec.name in asked,
            }
            for spec in loaded.signals
        ],
        "projections": [_projection(one) for one in policy.projections],
        "upstreams": [_upstream(one) for one in policy.upstreams],
    }


def _decision(decision: Decision, profile: str | None) -> Document:
    outcome = decision.outcome
    return {
        "name": decision.name,
        "profile": profile,
        "priority": decision.priority,
        "guard": decision.guard,
        "on_unknown": "match" if decision.unknown_matches else "no_match",
        "outcome": {Route: "route", Refuse: "refuse", Clarify: "clarify"}[type(outcome)],
        "models": [*outcome.models, *outcome.fallback] if isinstance(outcome, Route) else [],
        "select": WORDS[type(outcome.select)] if isinstance(outcome, Route) else None,
        "status": outcome.status if isinstance(outcome, Refuse) else None,
        "code": outcome.code if isinstance(outcome, Refuse) else None,
        "condition": _condition(decision.when),
    }


def _condition(condition: Condition) -> Document:
    match condition:
        case Leaf(signal=signal, within=within, labels=labels):
            more: Document = {"within": str(within)} if within is not None else {}
            return {"kind": "signal", "signal": str(signal), **more, **({"labels": sorted(labels)} if labels else {})}
        case Not(of=child):
            return {"kind": "not", "children": [_condition(child)]}
        case All(of=children):
            return {"kind": "all", "children": [_condition(child) for child in children]}
        case AnyOf(of=children):
            return {"kind": "any", "children": [_condition(child) for child in children]}
        case AtLeast(least=least, of=children):
            return {"kind": "at_least", "least": least, "children": [_condition(child) for child in children]}


def _projection(projection: Projection) -> Document:
    labels: list[str] = []
    threshold = None
    match projection:
        case Partition(members=members):
            labels, threshold = [member.label for member in members], projection.threshold
        case Band(ranges=ranges):
            labels = [label for label, _ in ranges]
        case WeightedScore():
            threshold = projection.threshold
    return {
        "name": str(projection.name),
        "kind": projection.name.family,
        "of": list(dict.fromkeys(map(str, projection.reads))),
        "labels": labels,
        "threshold": threshold,
    }


def _upstream(upstream: Upstream) -> Document:
    price = upstream.price
    return {
        "model": upstream.model,
        "cluster": upstream.cluster,
        "rewrite_model": upstream.rewrite_model,
        "modalities": list(upstream.modalities),
        "context_tokens": upstream.context_tokens,
        "quality": upstream.quality,
        "price": price
        and {"input_per_million": price.input_per_million, "output_per_million": price.output_per_million},
    }


def parity_document(house: House, ledger: Ledger, misses: Sequence[Miss]) -> Document:
    """Each pack, what its export had come to, and what the last check while serving saw; `misses` shut the worker."""
    encoders, named = house.machinery.encoders, house.loaded.encoders
    packs: list[tuple[str, Pack]] = []
    if encoders.text is not None:
        packs.append((named.text.pack if named.text else "text", encoders.text.source))
    if encoders.vision is not None:
        packs.append((named.vision.pack if named.vision else "vision", encoders.vision.source))
    packs += [(reference, classifier.source) for reference, classifier in encoders.classifiers.items()]
    return {
        "interval": house.loaded.parity.interval,
        "packs": [
            {
                "reference": reference,
                "name": pack.manifest.name,
                "digest": pack.digest,
                "towers": [_tower(tower) for tower in towers_of(pack.manifest)],
                **_checked([one for one in ledger.last() if one.pack == pack.manifest.name]),
                "misses": [str(miss) for miss in misses if miss.pack == pack.manifest.name],
            }
            for reference, pack in packs
        ],
    }


def _tower(tower: Tower) -> Document:
    parity = tower.parity
    kind = "text"
    if isinstance(tower, VisionTower):
        kind = "patches" if tower.patches is not None else "vision"
    elif isinstance(tower, TextClassifier):
        kind = "classifier"
    return {
        "kind": kind,
        "precision": tower.precision,
        "measure": parity and parity.measure,
        "gate": parity and parity.gate,
        "worst": parity and parity.worst,
        "mean": parity and parity.mean,
        "drift_allowed": parity is not None and parity.drift_allowed,
    }


def _checked(checks: Sequence[Checked]) -> Document:
    cosines = [one.cosine for one in checks if one.cosine is not None]
    differences = [one.difference for one in checks if one.difference is not None]
    last = max((one.at for one in checks), default=None)
    return {
        "last_check": None if last is None else moment(int(last * 10**9)),
        "cosine": min(cosines, default=None),
        "difference": max(differences, default=None),
    }
