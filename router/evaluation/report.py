"""The figures of a run, as plain values that become a table, JSON or a page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np

from router.evaluation.labels import LabelFigures, label_figures
from router.evaluation.misses import misses, truth
from router.evaluation.run import Came
from router.evaluation.statistics import (
    Bin,
    Figure,
    Floats,
    Point,
    auc_figure,
    calibration_error,
    curve,
    percentile,
    recall_figure,
    reliability,
    wilson,
)
from router.records.record import milliseconds
from router.signals.registry import FAMILIES

RATE: Final = 0.01
"""The rate of false positives at which recall is told."""

PERCENTILES: Final = (50, 90, 99)


@dataclass(frozen=True, slots=True)
class Labelled:
    """One signal's answer to one case that says what it should see."""

    case: str
    expected: bool
    matched: bool | None
    number: float | None
    score: float | None


@dataclass(frozen=True, slots=True)
class SignalFigures:
    """How a signal did on cases that say true or false of it; an unknown answer is no match.

    `auc`, `recall_at_rate` and `curve` are about its number (score, or value where the family counts), of the answers
    that have one. `bins` and `calibration_error` are there for families whose scores are probabilities.
    """

    name: str
    positives: int
    negatives: int
    unknown: int
    precision: Figure | None
    recall: Figure | None
    false_positives: Figure | None
    auc: Figure | None
    recall_at_rate: Figure | None
    curve: tuple[Point, ...] = ()
    bins: tuple[Bin, ...] = ()
    calibration_error: float | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that did not come out as expected."""

    name: str
    place: str
    label: str
    decision: str
    misses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The whole. Latencies are in seconds, by percentile; `late` took longer than the policy's deadline."""

    policy: str
    digest: str
    cases: int
    passed: Figure
    decisions: Figure | None
    by_label: Mapping[str, Figure]
    confused: Mapping[tuple[str, str], int]
    """Expected and actual decision, where they differ, and how often."""
    signals: tuple[SignalFigures, ...]
    labels: tuple[LabelFigures, ...]
    latency: Mapping[int, float]
    late: int
    deadline: float
    failures: tuple[Failure, ...]
    answers: Mapping[str, tuple[Labelled, ...]] = field(default_factory=dict, repr=False)

    def as_json(self) -> dict[str, Any]:
        """Plain values; nothing of what requests say."""
        return {
            "policy": self.policy,
            "digest": self.digest,
            "cases": self.cases,
            "passed": asdict(self.passed),
            "decision_accuracy": self.decisions and asdict(self.decisions),
            "by_label": {label: asdict(figure) for label, figure in self.by_label.items()},
            "confused": [{"expected": e, "got": g, "n": n} for (e, g), n in self.confused.items()],
            "signals": {each.name: _signal_json(each) for each in self.signals},
            "labels": {each.name: asdict(each) for each in self.labels},
            "latency_ms": {f"p{rank}": milliseconds(seconds) for rank, seconds in self.latency.items()},
            "late": self.late,
            "deadline_ms": milliseconds(self.deadline),
            "failures": [asdict(each) for each in self.failures],
        }


def report_of(policy: str, digest: str, deadline: float, run: Sequence[Came]) -> Report:
    """The figures; `deadline` is the policy's, in seconds. `run` is not empty."""
    found = [misses(came) for came in run]
    passed = [not each for each in found]
    asked = [(came.case.file.expect.decision, came.decision) for came in run if came.case.file.expect.decision]
    times = [came.seconds for came in run if came.seconds is not None]
    answers = labelled(run)
    whole = wilson(sum(passed), len(passed))
    if whole is None:
        raise ValueError("no case was run")
    return Report(
        policy=policy,
        digest=digest,
        cases=len(run),
        passed=whole,
        decisions=wilson(sum(wanted == got for wanted, got in asked), len(asked)),
        by_label=_by_label(run, passed),
        confused=dict(sorted(Counter((w, g) for w, g in asked if w != g).items())),
        signals=tuple(figures_of(name, each) for name, each in sorted(answers.items())),
        labels=label_figures(run),
        latency={rank: value for rank in PERCENTILES if (value := percentile(times, rank)) is not None},
        late=sum(seconds > deadline for seconds in times),
        deadline=deadline,
        failures=tuple(
            Failure(came.case.name, came.case.place, came.case.file.label, came.decision, each)
            for came, each in zip(run, found, strict=True)
            if each
        ),
        answers=answers,
    )


def labelled(run: Sequence[Came]) -> dict[str, tuple[Labelled, ...]]:
    """By signal, its answers to the cases that say true or false of it."""
    found: dict[str, list[Labelled]] = {}
    for came in run:
        for name, word in came.case.file.expect.signals.items():
            expected, seen = truth(word), came.observations.get(name)
            if expected is not None and seen is not None:
                number = _finite(seen.score if seen.value is None else seen.value)
                found.setdefault(name, []).append(
                    Labelled(came.case.name, expected, seen.matched, number, _finite(seen.score))
                )
    return {name: tuple(each) for name, each in found.items()}


def figures_of(name: str, answers: Sequence[Labelled]) -> SignalFigures:
    """One signal's figures."""
    positive = [each for each in answers if each.expected]
    negative = [each for each in answers if not each.expected]
    hits, alarms = sum(each.matched is True for each in positive), sum(each.matched is True for each in negative)
    family = name.partition("/")[0]
    # A value that grows against the match, such as agreement's, tells less than the score beside it.
    ups, downs = _numbers(positive, family), _numbers(negative, family)
    probable = family in FAMILIES and FAMILIES[family].scores == "probability"
    scored = [each for each in answers if each.score is not None] if probable else []
    bins = reliability([each.score or 0.0 for each in scored], [each.expected for each in scored])
    return SignalFigures(
        name=name,
        positives=len(positive),
        negatives=len(negative),
        unknown=sum(each.matched is None for each in answers),
        precision=wilson(hits, hits + alarms),
        recall=wilson(hits, len(positive)),
        false_positives=wilson(alarms, len(negative)),
        auc=auc_figure(ups, downs),
        recall_at_rate=recall_figure(ups, downs, RATE),
        curve=curve(ups, downs),
        bins=bins,
        calibration_error=calibration_error(bins),
    )


def _numbers(answers: Sequence[Labelled], family: str) -> Floats:
    scored = family in FAMILIES and FAMILIES[family].scores != "none"
    numbers = [each.score if scored else each.number for each in answers]
    return np.asarray([each for each in numbers if each is not None], np.float64)


def _by_label(run: Sequence[Came], passed: Sequence[bool]) -> dict[str, Figure]:
    inside: dict[str, list[bool]] = {}
    for came, good in zip(run, passed, strict=True):
        inside.setdefault(came.case.file.label, []).append(good)
    figures = {label: wilson(sum(each), len(each)) for label, each in sorted(inside.items()) if label}
    return {label: figure for label, figure in figures.items() if figure is not None}


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _signal_json(figures: SignalFigures) -> dict[str, Any]:
    plain = asdict(figures)
    del plain["name"]
    # JSON has no infinity: at the first point nothing is reached.
    plain["curve"] = [{**each, "threshold": _finite(each["threshold"])} for each in plain["curve"]]
    return plain
