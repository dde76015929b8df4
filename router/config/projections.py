"""Reads a policy's projections: checks what they read, that rivals compare, that bands leave no gap, and that none is
its own ground; and puts them in the order in which they can be computed.

The order is that of the file, but for projections that read others, which come right after the last of those.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from router.config.conditions import Askable, Known, Report, read_interval, read_leaf
from router.config.problems import Location, did_you_mean
from router.config.schema import BandSettings, PartitionSettings, ProjectionSettings, ScoreSettings
from router.policy.predicate import Interval
from router.policy.projection import (
    NO_MEMBER,
    Band,
    By,
    Member,
    Partition,
    Projection,
    ScoreInput,
    WeightedScore,
)
from router.signals.base import SignalName
from router.signals.registry import FAMILIES

MAX_WEIGHT: Final = 1e9
"""So that no sum of a policy's summands grows beyond what can be told apart."""


@dataclass(frozen=True, slots=True)
class _Reader:
    """`numbers` is what is known, as if everything matched by itself: what adds or divides its number need not."""

    known: Known
    numbers: Known
    report: Report

    def partition(self, name: str, settings: PartitionSettings) -> Projection | None:
        here: Location = ("projections", "partition", name)
        names = [self._member(text, (*here, "of", i)) for i, text in enumerate(settings.of)]
        members = [member for member in names if member is not None]
        if len(members) != len(names):
            return None
        if len(set(members)) != len(members):
            self.report((*here, "of"), "names a member twice", False)
            return None
        kinds = {_score_kind(member): member for member in members}
        if len(kinds) > 1:
            told = ", ".join(f"{member} is a {kind}" for kind, member in sorted(kinds.items()))
            self.report((*here, "of"), f"rivals must have scores of one kind, but {told}", False)
            return None
        if settings.method == "softmax" and "none" in kinds:
            self.report((*here, "method"), f"{members[0].family} signals have no scores to share; use exclusive", False)
            return None
        if settings.method == "exclusive" and settings.model_fields_set & {"temperature", "none", "threshold"}:
            self.report(here, "temperature, none and threshold belong to method: softmax", False)
            return None
        short = [member.name for member in members]
        labels = [str(m) if short.count(m.name) > 1 or m.name == NO_MEMBER else m.name for m in members]
        return Partition(
            SignalName("partition", name),
            tuple(Member(member, label) for member, label in zip(members, labels, strict=True)),
            settings.method,
            settings.temperature,
            settings.none,
            settings.threshold,
        )

    def _member(self, text: str, here: Location) -> SignalName | None:
        family, _, name = text.partition("/")
        if family in ("partition", "band") or family not in self.known or name not in self.known[family]:
            every = [f"{f}/{n}" for f, names in self.known.items() if f not in ("partition", "band") for n in names]
            self.report(here, f'no signal "{text}", written as family/name{did_you_mean(text, every)}', False)
            return None
        return SignalName(family, name)

    def score(self, name: str, settings: ScoreSettings) -> Projection | None:
        here: Location = ("projections", "score", name)
        inputs = [self._input(data, (*here, "inputs", i)) for i, data in enumerate(settings.inputs)]
        read = tuple(each for each in inputs if each is not None)
        if len(read) != len(inputs):
            return None
        return WeightedScore(SignalName("score", name), read, settings.offset, settings.missing, settings.threshold)

    def _input(self, data: Mapping[str, Any], here: Location) -> ScoreInput | None:
        rest = dict(data)
        weight, by = rest.pop("weight", None), rest.pop("by", None)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not abs(weight) <= MAX_WEIGHT:
            self.report((*here, "weight"), "needs a weight, a number", False)
            return None
        asked = {key for key in rest if key in ("gte", "gt", "lte", "lt", "label")}
        if len(rest) - len(asked) != 1:
            self.report(here, "must name one signal or projection: {family: name, weight: 0.5}", False)
            return None
        leaf = read_leaf(rest, here, self.numbers, self.report)
        if leaf is None:
            return None
        default: By = "match" if asked else _natural(leaf.signal)
        chosen: By = default if by is None else by
        if chosen not in ("match", "score", "value"):
            self.report((*here, "by"), "must be match, score or value", False)
            return None
        if asked and chosen != "match":
            self.report((*here, "by"), "a predicate is met or not; use by: match", False)
            return None
        if chosen == "score" and not _has_score(leaf.signal):
            self.report((*here, "by"), f"{leaf.signal.family} has no scores; use by: match", False)
            return None
        if chosen == "value" and not _has_value(leaf.signal):
            self.report((*here, "by"), f"{leaf.signal.family} counts nothing; use by: score or by: match", False)
            return None
        if chosen == "match" and not asked and not self.known[leaf.signal.family][leaf.signal.name].matches:
            self.report(here, f"{leaf.signal} does not match by itself; use by: value, or ask for a label", False)
            return None
        return ScoreInput(leaf, float(weight), chosen)

    def band(self, name: str, settings: BandSettings) -> Projection | None:
        here: Location = ("projections", "band", name)
        of = {"score": settings.of} if isinstance(settings.of, str) else settings.of
        if len(of) != 1:
            self.report((*here, "of"), "takes a score's name, or {family: name}", False)
            return None
        leaf = read_leaf(of, (*here, "of") if of is settings.of else here, self.numbers, self.report)
        if leaf is None:
            return None
        if not self.known[leaf.signal.family][leaf.signal.name].measures:
            self.report((*here, "of"), f"{leaf.signal} has no number to be divided into bands", False)
            return None
        ranges = []
        for label, bounds in settings.bands.items():
            interval = read_interval(bounds.model_dump(exclude_none=True))
            if interval is None:
                self.report((*here, "bands", label), "no number lies between these bounds", False)
                return None
            ranges.append((label, interval))
        ranges.sort(key=lambda each: -float("inf") if each[1].low is None else each[1].low)
        whole = not _has_value(leaf.signal)
        trouble = _trouble(ranges, settings.gaps == "allow", whole)
        if trouble:
            self.report((*here, "bands"), trouble, False)
            return None
        return Band(SignalName("band", name), leaf.signal, tuple(ranges))


def _trouble(ranges: Sequence[tuple[str, Interval]], gaps: bool, score: bool) -> str | None:
    """How the ranges, sorted, overlap or leave a gap; a score lies in 0-1, any other number anywhere."""
    first, last = ranges[0], ranges[-1]
    for (one, left), (other, right) in itertools.pairwise(ranges):
        if left.high is None or right.low is None or left.high > right.low:
            return f'"{one}" and "{other}" overlap'
        if left.high == right.low and left.closed and not right.above:
            return f'"{one}" and "{other}" both have {left.high:g}'
        if not gaps and (left.high < right.low or (right.above and not left.closed)):
            return f'between "{one}" and "{other}" there is a gap; close it, or write gaps: allow'
    low, high = first[1].low, last[1].high
    if not gaps and low is not None and not (score and low <= 0 and not first[1].above):
        return f'below "{first[0]}" there is a gap; leave its lower bound away, or write gaps: allow'
    if not gaps and high is not None and not (score and (high > 1 or (high == 1 and last[1].closed))):
        return f'above "{last[0]}" there is a gap; leave its upper bound away, or write gaps: allow'
    return None


def read_projections(
    settings: ProjectionSettings, signals: Known, report: Report
) -> tuple[tuple[Projection, ...], Known]:
    """The projections in the order of their computation, and what conditions may ask: signals and projections."""
    known: dict[str, dict[str, Askable]] = {
        **{family: dict(names) for family, names in signals.items()},
        "partition": {name: Askable(measures=True, labels=None) for name in settings.partition},
        "score": {name: Askable(matches=each.threshold is not None) for name, each in settings.score.items()},
        "band": {
            name: Askable(matches=False, measures=False, labels=frozenset(each.bands))
            for name, each in settings.band.items()
        },
    }
    reader = _Reader(known, _matching(known), report)
    read = [
        *(reader.partition(name, each) for name, each in settings.partition.items()),
        *(reader.score(name, each) for name, each in settings.score.items()),
        *(reader.band(name, each) for name, each in settings.band.items()),
    ]
    found = {each.name: each for each in read if each is not None}
    for each in found.values():
        if isinstance(each, Partition):
            labels = frozenset((NO_MEMBER, *(member.label for member in each.members)))
            measures = any(_has_score(member.signal) for member in each.members)
            known["partition"][each.name.name] = Askable(measures=measures, labels=labels)
    return tuple(_ordered(found, report)), known


def _ordered(found: Mapping[SignalName, Projection], report: Report) -> Iterator[Projection]:
    """Each after what it reads; a circle is reported once, at the first of it in the file."""
    done: set[SignalName] = set()
    for start in found:
        path: dict[SignalName, None] = {}
        stack: list[tuple[SignalName, Iterator[SignalName]]] = []
        if start not in done:
            stack.append((start, iter(found[start].reads)))
            path[start] = None
        while stack:
            name, rest = stack[-1]
            for below in rest:
                if below in path:
                    every = list(path)
                    circle = " -> ".join(map(str, [*every[every.index(below) :], below]))
                    report(("projections", below.family, below.name), f"reads itself: {circle}", True)
                    return
                if below in found and below not in done:
                    stack.append((below, iter(found[below].reads)))
                    path[below] = None
                    break
            else:
                stack.pop()
                path.popitem()
                done.add(name)
                yield found[name]


def _matching(known: Known) -> Known:
    """As if everything matched by itself."""
    return {
        family: {n: Askable(True, a.measures, a.labels) for n, a in names.items()} for family, names in known.items()
    }


def _natural(name: SignalName) -> By:
    """How a signal adds to a sum if the policy does not say."""
    if name.family == "score":
        return "value"
    return "score" if _has_score(name) else "match"


def _score_kind(name: SignalName) -> str:
    return "score" if name.family == "score" else FAMILIES[name.family].scores


def _has_score(name: SignalName) -> bool:
    return name.family in ("score", "partition") or (name.family != "band" and FAMILIES[name.family].scores != "none")


def _has_value(name: SignalName) -> bool:
    return name.family == "score" or (name.family in FAMILIES and FAMILIES[name.family].counts)
