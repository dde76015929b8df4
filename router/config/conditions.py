"""Reads a decision's `when` into a condition tree, and checks every signal that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as Anything

from router.config.problems import Location, did_you_mean
from router.policy.model import All, Any, Condition, Leaf, Not
from router.signals.base import SignalName

OPERATORS = ("all", "any", "not")
MAX_DEPTH = 64
"""Deeper than a person can read; bounds recursion."""

Report = Callable[[Location, str, bool], None]
"""Takes a location, a message, and whether the key rather than the value is to blame."""


def read_condition(
    data: Anything, location: Location, known: Mapping[str, frozenset[str]], report: Report, depth: int = 0
) -> Condition | None:
    """The tree, or None after at least one report. `known` maps a family to the names it may be asked for."""
    if depth > MAX_DEPTH:
        report(location, f"conditions nest deeper than {MAX_DEPTH}", False)
        return None
    if not isinstance(data, dict) or len(data) != 1:
        report(location, "must have exactly one key: all, any, not, or a signal family", False)
        return None
    [(key, value)] = data.items()
    here = (*location, key)
    if key in ("all", "any"):
        return _many(key, value, here, known, report, depth)
    if key == "not":
        inner = read_condition(value, here, known, report, depth + 1)
        return None if inner is None else Not(inner)
    return _leaf(key, value, here, known, report)


def _many(
    key: str, value: Anything, here: Location, known: Mapping[str, frozenset[str]], report: Report, depth: int
) -> Condition | None:
    if not isinstance(value, list) or not value:
        report(here, f"{key} takes a list of one or more conditions", False)
        return None
    children = [read_condition(item, (*here, i), known, report, depth + 1) for i, item in enumerate(value)]
    read = tuple(child for child in children if child is not None)
    if len(read) != len(children):
        return None
    return All(read) if key == "all" else Any(read)


def _leaf(
    family: str, name: Anything, here: Location, known: Mapping[str, frozenset[str]], report: Report
) -> Condition | None:
    if family not in known:
        words = [*OPERATORS, *known]
        report(here, f'"{family}" is neither an operator nor a signal family{did_you_mean(family, words)}', True)
        return None
    if not isinstance(name, str):
        report(here, f"{family} takes the name of one of the signals under signals.{family}", False)
        return None
    if name not in known[family]:
        report(here, f'no signal "{name}" under signals.{family}{did_you_mean(name, known[family])}', False)
        return None
    return Leaf(SignalName(family, name))
