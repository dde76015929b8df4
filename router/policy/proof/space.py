"""The Boolean space of a policy's conditions: every leaf a formula over few variables, with what is known about them.

What is known: numbers are ordered, so that a score above 0.9 is also above 0.5; a partition has one winner and a band
one label; a band's label is a range of its number; a weighted sum has a least and a greatest value; some signals say
what they count. `literal` takes all signals as observed; `true` and `false` leave each of them open to be unknown too.
What is left out here makes more seem possible than is, never less, so that what is impossible here never happens.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from router.policy.logic import leaves_of
from router.policy.model import All, Any, AtLeast, Condition, Not
from router.policy.predicate import Interval, Leaf
from router.policy.projection import NO_MEMBER, Band, Partition, Projection, WeightedScore
from router.signals.base import SignalName

Literal = int
"""A variable, or its negation as a negative number."""

Quantity = tuple[str, str]
"""A number that is ordered: of a signal or projection (its name), or a fact of the request (`fact` and what it is)."""

Cut = tuple[float, bool]
"""A border on a number line: the number, and whether only what is above it counts."""

Ends = tuple[float, float] | None
"""The least and the greatest that a number can be; None where nobody knows."""

MAX_COUNTING: Final = 50_000
"""Conditions of an `at_least` times its number, beyond which it is taken as something that may or may not hold."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known of one signal.

    `equals`: it matches exactly when each of these facts of the request lies in its range; None where nothing so plain
    can be said. `within`: it matches exactly when its number lies there. `implies`: when it matches, these hold.
    `scored` says that its number is a score in 0-1.
    """

    equals: Mapping[str, Interval] | None = None
    within: Interval | None = None
    implies: Mapping[str, Interval] = field(default_factory=dict)
    scored: bool = False


class Space:
    """Clauses over numbered variables. `literal` makes the literal of a condition; the clauses grow with it."""

    def __init__(self, projections: Sequence[Projection], knowledge: Mapping[SignalName, Knowledge]) -> None:
        self.clauses: list[list[Literal]] = []
        self._projections = {projection.name: projection for projection in projections}
        self._knowledge = knowledge
        self._count = 0
        self._true = self._new()
        self.clauses.append([self._true])
        self._made: dict[Condition, Literal] = {}
        self._known_true: dict[Condition, tuple[Literal, Literal]] = {}
        self._unknown: dict[tuple[SignalName, bool], Literal] = {}
        self._ands: dict[frozenset[Literal], Literal] = {}
        self._cuts: dict[Quantity, dict[Cut, Literal]] = {}
        self._ordered: dict[Quantity, list[Cut]] = {}
        self._matches: dict[SignalName, Literal] = {}
        self._labels: dict[SignalName, dict[str, Literal]] = {}
        self._some_label: dict[SignalName, Literal] = {}
        self._sums: dict[SignalName, Ends] = {}
        for projection in projections:
            # Each comes after what it reads.
            if isinstance(projection, WeightedScore):
                self._sums[projection.name] = self._ends_of_sum(projection)

    def literal(self, condition: Condition) -> Literal:
        """True in an assignment exactly when the condition is."""
        made = self._made.get(condition)
        if made is None:
            made = self._made[condition] = self._make(condition)
        return made

    def true(self, condition: Condition) -> Literal:
        """That the condition is known to be true, whatever is unknown below it."""
        return self._settled(condition)[0]

    def false(self, condition: Condition) -> Literal:
        """That the condition is known to be false, whatever is unknown below it."""
        return self._settled(condition)[1]

    def _settled(self, condition: Condition) -> tuple[Literal, Literal]:
        made = self._known_true.get(condition)
        if made is None:
            made = self._known_true[condition] = self._settle(condition)
        return made

    def _settle(self, condition: Condition) -> tuple[Literal, Literal]:
        """Kleene's logic: each value has a literal of its own, and unknown is neither."""
        match condition:
            case Leaf(signal=signal, within=within):
                holds = self.literal(condition)
                answered = [-self._missing(signal, number=False)]
                if within is not None:
                    answered.append(-self._missing(signal, number=True))
                return self._and((holds, *answered)), self._and((-holds, *answered))
            case Not(of=child):
                return self.false(child), self.true(child)
            case All(of=children):
                least = len(children)
            case Any(of=children):
                least = 1
            case AtLeast(least=least, of=children):
                pass
        return (
            self._at_least(least, [self.true(child) for child in children]),
            self._at_least(len(children) - least + 1, [self.false(child) for child in children]),
        )

    def _missing(self, name: SignalName, number: bool) -> Literal:
        """That there is no answer, or none with a number; projections may miss theirs as signals do."""
        made = self._unknown.get((name, number))
        if made is None:
            made = self._unknown[name, number] = self._new()
        return made

    def fact(self, name: str, interval: Interval) -> Literal:
        """That a fact of the request lies in the range."""
        return self._within(("fact", name), interval)

    def both(self, literals: Iterable[Literal]) -> Literal:
        """The conjunction of these."""
        return self._and(literals)

    def either(self, literals: Iterable[Literal]) -> Literal:
        """The disjunction of these."""
        return -self._and(-literal for literal in literals)

    def _new(self) -> Literal:
        self._count += 1
        return self._count

    def _make(self, condition: Condition) -> Literal:
        match condition:
            case Leaf():
                return self._leaf(condition)
            case Not(of=child):
                return -self.literal(child)
            case All(of=children):
                return self._and(self.literal(child) for child in children)
            case Any(of=children):
                return self.either(self.literal(child) for child in children)
            case AtLeast(least=least, of=children):
                return self._at_least(least, [self.literal(child) for child in children])

    def _and(self, literals: Iterable[Literal]) -> Literal:
        of = frozenset(literal for literal in literals if literal != self._true)
        if -self._true in of or any(-literal in of for literal in of):
            return -self._true
        if not of:
            return self._true
        if len(of) == 1:
            return next(iter(of))
        made = self._ands.get(of)
        if made is None:
            made = self._ands[of] = self._new()
            ordered = sorted(of)
            self.clauses += [[-made, literal] for literal in ordered]
            self.clauses.append([made, *(-literal for literal in ordered)])
        return made

    def _at_least(self, least: int, literals: Sequence[Literal]) -> Literal:
        """By dynamic programming: enough among the rest, or this one and one less among the rest."""
        if least <= 0:
            return self._true
        if least > len(literals):
            return -self._true
        if least == len(literals):
            return self._and(literals)
        if least == 1:
            return self.either(literals)
        if least * len(literals) > MAX_COUNTING:
            return self._new()
        # enough[k]: at least k among those that were seen.
        enough = [self._true] + [-self._true] * least
        for literal in literals:
            enough = [
                self._true,
                *(self.either((enough[k], self._and((literal, enough[k - 1])))) for k in range(1, least + 1)),
            ]
        return enough[least]

    def _leaf(self, leaf: Leaf) -> Literal:
        met = self._match(leaf.signal) if leaf.within is None else self._number(leaf.signal, leaf.within)
        if not leaf.labels:
            return met
        label = self.either(self._label(leaf.signal, name) for name in sorted(leaf.labels))
        return self._and((met, label)) if leaf.within is not None or not self._labelled(leaf.signal) else label

    def _labelled(self, name: SignalName) -> bool:
        """Whether a label stands for a match by itself."""
        return isinstance(self._projections.get(name), Partition | Band)

    def _match(self, name: SignalName) -> Literal:
        made = self._matches.get(name)
        if made is not None:
            return made
        projection = self._projections.get(name)
        match projection:
            case Partition():
                made = -self._label(name, NO_MEMBER)
            case Band():
                made = self.either(self._label(name, label) for label, _ in projection.ranges)
            case WeightedScore(threshold=threshold):
                made = -self._true if threshold is None else self._number(name, Interval(threshold))
            case None:
                made = self._signal(name)
        self._matches[name] = made
        return made

    def _signal(self, name: SignalName) -> Literal:
        known = self._knowledge.get(name, Knowledge())
        if known.equals is not None:
            made = self._and(self.fact(fact, known.equals[fact]) for fact in sorted(known.equals))
        elif known.within is not None:
            made = self._number(name, known.within)
        else:
            made = self._new()
        self.clauses += [[-made, self.fact(fact, known.implies[fact])] for fact in sorted(known.implies)]
        return made

    def _number(self, name: SignalName, interval: Interval) -> Literal:
        known = self._knowledge.get(name)
        if known is not None and known.equals is not None and len(known.equals) == 1:
            # What counts one thing has that count as its number.
            return self.fact(next(iter(known.equals)), interval)
        return self._within(("of", str(name)), interval, self._range_of(name))

    def _range_of(self, name: SignalName) -> Ends:
        if name in self._sums:
            return self._sums[name]
        known = self._knowledge.get(name)
        scored = isinstance(self._projections.get(name), Partition) or (known is not None and known.scored)
        return (0.0, 1.0) if scored else None

    def _ends_of_sum(self, score: WeightedScore) -> Ends:
        low = high = score.offset
        for each in score.inputs:
            amounts = (0.0, 1.0) if each.by != "value" else self._sums.get(each.leaf.signal)
            if amounts is None:
                return None
            ends = sorted((each.weight * amounts[0], each.weight * amounts[1]))
            if score.missing == "skip":
                ends = [min(ends[0], 0.0), max(ends[1], 0.0)]
            low, high = low + ends[0], high + ends[1]
        # Sums beyond all numbers have no ends that could be told.
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None

    def _within(self, quantity: Quantity, interval: Interval, ends: Ends = None) -> Literal:
        parts = []
        if interval.low is not None:
            parts.append(self._beyond(quantity, (interval.low, interval.above), ends))
        if interval.high is not None:
            parts.append(-self._beyond(quantity, (interval.high, interval.closed), ends))
        return self._and(parts)

    def _beyond(self, quantity: Quantity, cut: Cut, ends: Ends) -> Literal:
        """That the number lies at or above the cut, or above it only; ordered with every other cut of the number."""
        number, only_above = cut
        if ends is not None and (number < ends[0] or (number == ends[0] and not only_above)):
            return self._true
        if ends is not None and (number > ends[1] or (number == ends[1] and only_above)):
            return -self._true
        if quantity[0] == "fact":
            # Facts are counts, of which the least is 0: above 2 is from 3 on, and from 0 on are all.
            whole = float(math.floor(number) + 1 if only_above else math.ceil(number))
            if whole <= 0:
                return self._true
            cut = (whole, False)
        cuts = self._cuts.setdefault(quantity, {})
        if cut in cuts:
            return cuts[cut]
        made = cuts[cut] = self._new()
        ordered = self._ordered.setdefault(quantity, [])
        place = bisect_left(ordered, cut)
        if place > 0:
            self.clauses.append([-made, cuts[ordered[place - 1]]])
        if place < len(ordered):
            self.clauses.append([-cuts[ordered[place]], made])
        ordered.insert(place, cut)
        return made

    def _label(self, name: SignalName, label: str) -> Literal:
        labels = self._labels.get(name)
        if labels is None:
            labels = self._labels[name] = dict(self._labels_of(name))
        if label not in labels:
            # A signal's own label: it has one at a time, but nobody knows which there are.
            made = self._new()
            others = self._some_label.get(name, -self._true)
            self.clauses.append([-made, -others])
            self._some_label[name] = self.either((others, made))
            labels[label] = made
        return labels[label]

    def _labels_of(self, name: SignalName) -> Iterator[tuple[str, Literal]]:
        match self._projections.get(name):
            case Partition() as partition:
                yield from self._rivals(partition)
            case Band(of=of, ranges=ranges):
                for label, interval in ranges:
                    yield label, self._number(of, interval)
            case _:
                return

    def _rivals(self, partition: Partition) -> Iterator[tuple[str, Literal]]:
        won = {member.label: self._new() for member in partition.members}
        nobody = self._new()
        every = [*won.values(), nobody]
        self.clauses.append(every)
        before = -self._true
        for one in every:
            self.clauses.append([-one, -before])
            before = self.either((before, one))
        if partition.method == "exclusive":
            matched = [self._match(member.signal) for member in partition.members]
            self.clauses += [[-won[m.label], literal] for m, literal in zip(partition.members, matched, strict=True)]
            self.clauses += [[-nobody, -literal] for literal in matched]
        elif partition.none is None and partition.threshold == 0:
            self.clauses.append([-nobody])
        yield from won.items()
        yield NO_MEMBER, nobody

    def describe(self, condition: Condition, model: frozenset[Literal]) -> Iterator[tuple[Leaf, bool]]:
        """Each leaf of the condition with its value in a model, once."""
        for leaf in dict.fromkeys(leaves_of(condition)):
            yield leaf, self.literal(leaf) in model
