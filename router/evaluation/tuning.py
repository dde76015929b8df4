"""Which threshold would meet a wanted rate on labelled cases. Proposes; `edit.py` writes.

Rates on few cases promise little: the figures of a proposal carry their intervals.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from router.config.load import SignalSpec
from router.evaluation.report import Labelled
from router.evaluation.statistics import Figure, wilson

Wanted = Literal["fpr", "recall", "precision"]
GOALS: Final = ("fpr", "recall", "precision")

SLACK: Final = 1e-6
"""Scores come from single precision."""

MAX_DIGITS: Final = 9


class TuningError(Exception):
    """Why there is no proposal, for the policy's author."""


@dataclass(frozen=True, slots=True)
class Goal:
    """`fpr`: at most this share of negatives matches; `recall`, `precision`: at least this. `rate` is in 0-1."""

    signal: str
    wanted: Wanted
    rate: float


@dataclass(frozen=True, slots=True)
class Rates:
    """What a threshold does on the labelled cases."""

    recall: Figure | None
    false_positives: Figure | None
    precision: Figure | None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A threshold: `key` of the signal's settings, its value now and the proposed one. `note` warns, or is empty.

    `now` is None where the policy leaves it to the family or to a pack.
    """

    goal: Goal
    key: str
    now: float | None
    proposed: float
    before: Rates
    after: Rates
    note: str


@dataclass(frozen=True, slots=True)
class _Knob:
    """Which key decides, what it is compared with, whether a number must be below it, and what it may be."""

    key: str = "threshold"
    of_value: bool = False
    below: bool = False
    least: float = 0.0
    most: float = 1.0


_KNOBS: Final = {
    "agreement": _Knob("below", of_value=True, below=True),
    "complexity": _Knob(of_value=True, least=-1.0),
    "language": _Knob("min_share"),
}
_USUAL: Final = _Knob()


def parse_goal(text: str) -> Goal:
    """`family/name=fpr:0.01`; raises ValueError with what is wrong."""
    signal, equals, goal = text.partition("=")
    wanted, colon, number = goal.partition(":")
    if not (equals and colon and "/" in signal):
        raise ValueError(f"--tune takes SIGNAL=fpr:0.01, as in image/passport=fpr:0.01; not {text!r}")
    if wanted not in GOALS:
        raise ValueError(f"--tune knows {', '.join(GOALS)}; not {wanted!r}")
    try:
        rate = float(number)
    except ValueError:
        rate = math.nan
    if not 0 <= rate <= 1:
        raise ValueError(f"--tune takes a rate from 0 to 1; not {number!r}")
    return Goal(signal, wanted, rate)  # type: ignore[arg-type]  # one of GOALS


def propose(goal: Goal, spec: SignalSpec, answers: Sequence[Labelled]) -> Proposal:
    """The threshold that meets the goal and, within it, finds the most; raises TuningError."""
    knob = _KNOBS.get(spec.name.family, _USUAL)
    if knob.key not in type(spec.settings).model_fields:
        raise TuningError(f"{goal.signal} has no {knob.key} to tune")
    now: float | None = getattr(spec.settings, knob.key)
    if getattr(spec.settings, "mode", None) == "soft":
        raise TuningError(f"{goal.signal} has `mode: soft`, whose scores move with the threshold; tune it with hard")
    sign = -1.0 if knob.below else 1.0
    at = _lowest_matched(answers, knob) if now is None else sign * float(now)
    numbers = [_number(each, knob, at, goal.signal) for each in answers]
    ups = sorted(n for n, each in zip(numbers, answers, strict=True) if each.expected)
    downs = sorted(n for n, each in zip(numbers, answers, strict=True) if not each.expected)
    low, high = _gap(goal, ups, downs)
    if high == math.inf:
        raise TuningError(f"{goal.signal}: no threshold that meets {goal.wanted} {goal.rate:g} finds anything")
    ends = (-knob.most, -knob.least) if knob.below else (knob.least, knob.most)
    proposed = sign * _short(max(low, ends[0]), min(high, ends[1]))
    return Proposal(
        goal,
        knob.key,
        None if now is None else float(now),
        proposed + 0.0,  # no minus zero
        _rates(at, ups, downs),
        _rates(sign * proposed, ups, downs),
        _note(goal, len(ups), len(downs)),
    )


def _turned(answer: Labelled, knob: _Knob) -> float | None:
    """What the threshold is compared with, turned so that greater means a match."""
    number = answer.number if knob.of_value else answer.score
    return -number if knob.below and number is not None else number


def _lowest_matched(answers: Sequence[Labelled], knob: _Knob) -> float:
    """Where a threshold that nobody tells must lie, or just below: no other is seen from the answers."""
    matched = [_turned(each, knob) for each in answers if each.matched]
    return min((each for each in matched if each is not None), default=math.inf)


def _number(answer: Labelled, knob: _Knob, at: float, name: str) -> float:
    """`_turned`, with `at` as the threshold that holds now; -inf: no threshold would match it."""
    turned = _turned(answer, knob)
    if turned is None or answer.matched is None:
        return -math.inf
    if answer.matched and turned < at - SLACK:
        number = -turned if knob.below else turned
        raise TuningError(f'{name} matches "{answer.case}" at {number:g} for another reason than its {knob.key}')
    # It reaches the threshold and yet did not match: another setting, such as a label, keeps it out.
    return -math.inf if not answer.matched and turned > at + SLACK else turned


def _gap(goal: Goal, ups: Sequence[float], downs: Sequence[float]) -> tuple[float, float]:
    """Between which two neighbouring numbers the threshold has to lie."""
    if not ups or not downs:
        raise TuningError(f"{goal.signal} needs cases that say true and cases that say false")
    every = sorted({*ups, *downs} - {-math.inf})
    # The higher end of each gap, from the lowest threshold on; beyond the last nothing is found.
    met = [high for high in every if _meets(goal, high, ups, downs)]
    if not met:
        return (every[-1] if every else -math.inf, math.inf)
    high = max(met) if goal.wanted == "recall" else min(met)
    at = every.index(high)
    return (every[at - 1] if at else -math.inf, high)


def _meets(goal: Goal, threshold: float, ups: Sequence[float], downs: Sequence[float]) -> bool:
    hits, alarms = _reached(threshold, ups), _reached(threshold, downs)
    if goal.wanted == "fpr":
        return alarms <= goal.rate * len(downs) + 1e-9 and hits > 0
    if goal.wanted == "recall":
        return hits >= goal.rate * len(ups) - 1e-9 and hits > 0
    return hits > 0 and hits >= goal.rate * (hits + alarms) - 1e-9


def _reached(threshold: float, numbers: Sequence[float]) -> int:
    """How many of the numbers, in rising order, a threshold lets through."""
    return len(numbers) - bisect.bisect_left(numbers, threshold)


def _short(low: float, high: float) -> float:
    """A number of few digits above `low` and not above `high`, near their middle."""
    middle = (low + high) / 2
    for digits in range(2, MAX_DIGITS):
        number = round(middle, digits)
        if low < number < high:
            return number
    return high


def _rates(threshold: float, ups: Sequence[float], downs: Sequence[float]) -> Rates:
    hits, alarms = _reached(threshold - SLACK / 10, ups), _reached(threshold - SLACK / 10, downs)
    return Rates(wilson(hits, len(ups)), wilson(alarms, len(downs)), wilson(hits, hits + alarms))


def _note(goal: Goal, ups: int, downs: int) -> str:
    if goal.wanted == "fpr" and 0 < goal.rate < 1 / downs:
        return f"{downs} negatives can't tell {goal.rate:g} from 0; {-(-1 // goal.rate):.0f} would"
    if goal.wanted == "recall" and goal.rate < 1 and 1 - goal.rate < 1 / ups:
        return f"{ups} positives can't tell {goal.rate:g} from 1"
    return ""
