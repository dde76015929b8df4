"""Findings about a loaded policy, each with its place in the file; `router.policy.proof` shows what is true of them.

The policy holds together already; what is found here is sound and yet hardly what its author meant.
"""

from __future__ import annotations

from dataclasses import dataclass

from router.config.answers import read_by_checks
from router.config.load import LoadedPolicy, SignalSpec
from router.config.problems import Location, Problem
from router.policy.predicate import Interval
from router.policy.proof.findings import Finding, Subject, findings_of
from router.policy.proof.space import Knowledge
from router.signals.registry import FAMILIES


@dataclass(frozen=True, slots=True)
class Lint:
    """A finding and its place."""

    finding: Finding
    problem: Problem


def lint(loaded: LoadedPolicy) -> tuple[Lint, ...]:
    """Every finding, in the order of the file."""
    written = [spec for spec in loaded.signals if spec.name.name not in FAMILIES[spec.name.family].builtins]
    knowledge = {spec.name: knowledge_of(spec) for spec in loaded.signals}
    checked = read_by_checks(loaded.checks, loaded.policy.projections)
    findings = [
        finding
        for finding in findings_of(loaded.policy, knowledge, [spec.name for spec in written])
        if not (finding.kind in ("unread-signal", "unread-projection") and finding.subject.name in checked)
    ]
    placed = [Lint(finding, _place(loaded, finding)) for finding in findings]
    return tuple(sorted(placed, key=lambda each: (each.problem.line, each.problem.column, each.finding.kind)))


def knowledge_of(spec: SignalSpec) -> Knowledge:
    """What the signal's settings say about when it matches."""
    settings = spec.settings
    counted = settings.counted
    scored = not FAMILIES[spec.name.family].counts
    matching = settings.matching
    if scored and matching is not None and matching[0] == 0:
        # Where nothing is there to be judged the score is 0 as well, and that is no match.
        matching = None
    return Knowledge(
        equals=None if counted is None else {fact: _closed(*ends) for fact, ends in counted.items()},
        within=None if matching is None else _closed(*matching),
        implies={fact: _closed(*ends) for fact, ends in settings.implied.items()},
        scored=scored,
    )


def _closed(low: float | None, high: float | None) -> Interval:
    return Interval(low, high, closed=high is not None)


def _place(loaded: LoadedPolicy, finding: Finding) -> Problem:
    location = _location(loaded, finding.subject)
    return loaded.source.problem(location, finding.message, at_key=finding.subject.kind in ("signal", "projection"))


def _location(loaded: LoadedPolicy, subject: Subject) -> Location:
    match subject.kind:
        case "decision":
            return (*loaded.places[subject.name], "name")
        case "upstream":
            index = [upstream.model for upstream in loaded.policy.upstreams].index(subject.name)
            return ("upstreams", index, "model")
        case "signal":
            return ("signals", *subject.name.split("/", 1))
        case "projection":
            return ("projections", *subject.name.split("/", 1))
