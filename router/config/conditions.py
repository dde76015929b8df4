"""Reads a decision's `when` into a condition tree, and checks every signal and projection that it names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any as Anything
from typing import Final

from router.config.problems import Location, did_you_mean
from router.policy.model import All, Any, AtLeast, Condition, Not
from router.policy.predicate import Interval, Leaf
from router.signals.base import SignalName

OPERATORS: Final = ("all", "any", "at_least", "not")
BOUNDS: Final = ("gte", "gt", "lte", "lt")
PREDICATES: Final = (*BOUNDS, "label")
MAX_DEPTH: Final = 64
"""Deeper than a person can read; bounds recursion."""

Report = Callable[[Location, str, bool], None]
"""Takes a location, a message, and whether the key rather than the value is to blame."""


@dataclass(frozen=True, slots=True)
class Askable:
    """What a condition may ask of a signal or projection, beyond its name.

    `matches` is False where there is no threshold that says when it matches by itself. `measures` says that it has a
    number. `labels` are those that it can have: None where nobody knows them, empty where it has none.
    """

    matches: bool = True
    measures: bool = True
    labels: frozenset[str] | None = frozenset()


Known = Mapping[str, Mapping[str, Askable]]
"""Family, then name, of everything that conditions may ask."""


def read_condition(
    data: Anything, location: Location, known: Known, report: Report, depth: int = 0
) -> Condition | None:
    """The tree, or None after at least one report."""
    if depth > MAX_DEPTH:
        report(location, f"conditions nest deeper than {MAX_DEPTH}", False)
        return None
    if not isinstance(data, dict) or not data:
        report(location, "must be a mapping such as {all: [..]}, {not: ..} or {family: name}", False)
        return None
    if "at_least" in data:
        return _at_least(data, location, known, report, depth)
    rest = {key for key in data if key in PREDICATES}
    mains = [key for key in data if key not in PREDICATES]
    if len(mains) != 1:
        report(location, "must have exactly one key: all, any, at_least, not, or a signal family", False)
        return None
    key = mains[0]
    if rest and key in OPERATORS:
        report((*location, min(rest)), f"{key} takes no predicates; they belong to a signal", True)
        return None
    here = (*location, key)
    if key in ("all", "any"):
        read = _many(key, data[key], here, known, report, depth)
        return None if read is None else All(read) if key == "all" else Any(read)
    if key == "not":
        inner = read_condition(data[key], here, known, report, depth + 1)
        return None if inner is None else Not(inner)
    return read_leaf(data, location, known, report)


def _many(
    key: str, value: Anything, here: Location, known: Known, report: Report, depth: int
) -> tuple[Condition, ...] | None:
    if not isinstance(value, list) or not value:
        report(here, f"{key} takes a list of one or more conditions", False)
        return None
    children = [read_condition(item, (*here, i), known, report, depth + 1) for i, item in enumerate(value)]
    read = tuple(child for child in children if child is not None)
    return read if len(read) == len(children) else None


def _at_least(
    data: Mapping[str, Anything], location: Location, known: Known, report: Report, depth: int
) -> Condition | None:
    if set(data) != {"at_least", "of"}:
        report(location, "at_least goes with `of`: {at_least: 2, of: [..]}", False)
        return None
    children = _many("of", data["of"], (*location, "of"), known, report, depth)
    if not isinstance(data["of"], list):
        return None
    least = data["at_least"]
    if not isinstance(least, int) or isinstance(least, bool) or not 1 <= least <= len(data["of"] or ()):
        report((*location, "at_least"), "at_least takes a whole number from 1 to the number of conditions", False)
        return None
    return None if children is None else AtLeast(least, children)


def read_leaf(data: Mapping[str, Anything], location: Location, known: Known, report: Report) -> Leaf | None:
    """A signal or projection with its predicates, or None after at least one report. `data` has one other key."""
    [family] = [key for key in data if key not in PREDICATES]
    name = data[family]
    here = (*location, family)
    if family not in known:
        words = [*OPERATORS, *known]
        report(here, f'"{family}" is neither an operator nor a signal family{did_you_mean(str(family), words)}', True)
        return None
    section = "projections" if family in ("partition", "score", "band") else "signals"
    if not isinstance(name, str):
        report(here, f"{family} takes the name of one of those under {section}.{family}", False)
        return None
    if name not in known[family]:
        hint = did_you_mean(name, known[family])
        report(here, f'no {section.removesuffix("s")} "{name}" under {section}.{family}{hint}', False)
        return None
    askable = known[family][name]
    within = _interval(data, location, askable, report)
    labels = _labels(data, location, askable, report)
    if isinstance(within, bool) or labels is None:
        return None
    if within is None and not askable.matches and not (labels and askable.labels):
        need = "a label" if askable.labels else "a number, such as gte: 0.5, or a threshold of its own"
        report(here, f'{family} "{name}" does not match by itself; ask for {need}', False)
        return None
    return Leaf(SignalName(family, name), within, labels)


def _interval(
    data: Mapping[str, Anything], location: Location, askable: Askable, report: Report
) -> Interval | bool | None:
    """None without bounds, False after a report."""
    bounds = {key: data[key] for key in BOUNDS if key in data}
    if not bounds:
        return None
    for key, value in bounds.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            report((*location, key), f"{key} takes a number", False)
            return False
    if not askable.measures:
        report((*location, min(bounds)), "it has no number to compare; ask for its name alone", True)
        return False
    interval = read_interval(bounds)
    if interval is None:
        report((*location, min(bounds)), "no number lies between these bounds", False)
        return False
    return interval


def read_interval(bounds: Mapping[str, float]) -> Interval | None:
    """The range that `gte`, `gt`, `lte` and `lt` leave; None where they leave nothing or say the same end twice."""
    if {"gte", "gt"} <= bounds.keys() or {"lte", "lt"} <= bounds.keys():
        return None
    low, high = bounds.get("gte", bounds.get("gt")), bounds.get("lte", bounds.get("lt"))
    interval = Interval(low, high, above="gt" in bounds, closed="lte" in bounds)
    if low is None or high is None or low < high:
        return interval
    return interval if low == high and interval.closed and not interval.above else None


def _labels(
    data: Mapping[str, Anything], location: Location, askable: Askable, report: Report
) -> frozenset[str] | None:
    """None after a report."""
    if "label" not in data:
        return frozenset()
    here = (*location, "label")
    asked = data["label"] if isinstance(data["label"], list) else [data["label"]]
    if not asked or not all(isinstance(label, str) and label for label in asked):
        report(here, "label takes a word or a list of words", False)
        return None
    if askable.labels is not None:
        if not askable.labels:
            report(here, "it has no labels to tell apart; ask for its name alone", True)
            return None
        for label in asked:
            if label not in askable.labels:
                known = ", ".join(sorted(askable.labels))
                hint = did_you_mean(label, askable.labels) or f"; it has {known}"
                report(here, f'it never has the label "{label}"{hint}', False)
                return None
    return frozenset(asked)
