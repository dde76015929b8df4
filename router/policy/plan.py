"""Which decisions can still win, and which signals must be asked to know.

Pure functions over bounds. The order of decisions is defined here and nowhere else: guards before routes, then the
higher tier (the priority, or the same for all routes where the policy puts confidence first), then higher confidence,
then higher priority, then the name that sorts first. Asking until `needed` is empty gives the decision that asking
everything would give.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from router.policy.bounds import Bounds, Range, bounds
from router.policy.logic import evaluate
from router.policy.model import All, Any, AtLeast, Condition, Decision, Not
from router.policy.predicate import Leaf, Truth
from router.policy.verdict import Reason, settle
from router.signals.base import Observation, SignalName


@dataclass(frozen=True, slots=True)
class Standing:
    """A decision and what can still become of it. `matched` is None while both are possible."""

    decision: Decision
    tree: Bounds
    matched: Truth
    confidence: Range
    """Confidence that it can have if it matches."""

    @property
    def rank(self) -> tuple[bool, int]:
        """What is compared first: guards before routes, then the tier."""
        return _rank(self.decision)


def standing(decision: Decision, observations: Mapping[SignalName, Observation]) -> Standing:
    """Where the decision stands, given the signals that have answered."""
    tree = bounds(decision.when, observations)
    # A match by unknown has confidence 0; where true and unknown are both possible, `true` reaches down to 0 too.
    return Standing(decision, tree, settle(decision, tree), tree.true or Range(0.0, 0.0))


def contenders(best_first: Iterable[Decision], observations: Mapping[SignalName, Observation]) -> tuple[Standing, ...]:
    """Those that can still win: not settled as missed, and not surely outdone by one that surely matches.

    Decisions come and go sorted by `by_rank`; nothing is spent on those behind a sure match.
    """
    live: list[Standing] = []
    floor: Standing | None = None
    for decision in best_first:
        if floor is not None and _rank(decision) < floor.rank:
            break
        if evaluate(decision.when, observations) is False:
            continue
        one = standing(decision, observations)
        if one.matched is not False:
            live.append(one)
        if one.matched:
            floor = one
    sure = [one for one in live if one.matched]
    return tuple(one for one in live if not any(_outdoes(other, one) for other in sure if other is not one))


def by_rank(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Guards before routes, and within each the higher tier first."""
    return tuple(sorted(decisions, key=_rank, reverse=True))


def _outdoes(sure: Standing, other: Standing) -> bool:
    if sure.rank != other.rank:
        return sure.rank > other.rank
    if sure.confidence.low > other.confidence.high:
        return True
    return sure.confidence.low == other.confidence.high and _before(sure.decision, other.decision)


def _before(one: Decision, other: Decision) -> bool:
    """Which of two decisions that are equally sure goes first."""
    return (-one.priority, one.name) < (-other.priority, other.name)


def needed(live: Sequence[Standing], observations: Mapping[SignalName, Observation]) -> frozenset[SignalName]:
    """The signals and projections whose answers can still change who wins; empty when that is settled."""
    wanted: set[SignalName] = set()
    for one in live:
        rivalled = any(other.rank == one.rank for other in live if other is not one)
        if rivalled or one.matched is None:
            wanted.update(_open_signals(one.decision.when, observations, rivalled))
    return frozenset(wanted)


def _open_signals(
    condition: Condition, observations: Mapping[SignalName, Observation], to_the_confidence: bool
) -> Iterator[SignalName]:
    tree = bounds(condition, observations)
    if tree.exact if to_the_confidence else tree.settled:
        return
    match condition:
        case Leaf(signal=signal):
            yield signal
        case Not(of=child):
            yield from _open_signals(child, observations, to_the_confidence)
        case All(of=children) | Any(of=children) | AtLeast(of=children):
            for child in children:
                yield from _open_signals(child, observations, to_the_confidence)


def winner(live: Sequence[Standing]) -> Standing | None:
    """The one that won, when nothing is needed any more."""
    return live[0] if live else None


def reason_for(won: Standing, decisions: Iterable[Decision], observations: Mapping[SignalName, Observation]) -> Reason:
    """What set the winner apart from its rivals: those of its rank, among all that were considered, that may match."""
    equals = (standing(one, observations) for one in decisions if one is not won.decision and _rank(one) == won.rank)
    rivals = [one for one in equals if one.matched is not False]
    if not rivals:
        return "priority"
    as_sure = [rival for rival in rivals if won.confidence.low <= rival.confidence.high]
    if not as_sure:
        return "confidence"
    return "priority" if all(won.decision.priority > rival.decision.priority for rival in as_sure) else "name"


def _rank(decision: Decision) -> tuple[bool, int]:
    return decision.guard, decision.tier
