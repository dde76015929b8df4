"""What can be proven about a policy's decisions, and is worth telling whoever wrote them.

Pure: a policy and what is known of its signals in, findings out. Where they stand in the file is `router.config.lint`'s
matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby, islice
from typing import Final, Literal

from router.policy.agenda import signals_below
from router.policy.logic import signals_of
from router.policy.model import All, Decision, Outcome, Policy, Route
from router.policy.plan import by_rank
from router.policy.predicate import Interval
from router.policy.proof.solver import Answer, Solver
from router.policy.proof.space import Knowledge, Space
from router.selection.upstream import Upstream
from router.signals.base import SignalName

Kind = Literal[
    "never-true",
    "shadowed",
    "always-true",
    "tie",
    "guard-without-effect",
    "incapable-candidate",
    "unproven",
    "unread-signal",
    "unread-projection",
    "unreached-upstream",
]
Level = Literal["error", "warning", "note"]

MAX_PAIRS: Final = 5_000
"""Pairs of one rank that are looked at for ties; a policy with more has one priority for everything."""

MAX_LOOKED_AT: Final = 100_000
"""Pairs of one rank among which those of one priority and different outcomes are looked for."""

SHOWN_PAIRS: Final = 20
"""Ties that are told one by one."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a finding is about: a `decision`, `signal`, `projection` or `upstream`, by its name."""

    kind: Literal["decision", "signal", "projection", "upstream"]
    name: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at. `witness` is an assignment that shows it, a leaf and whether it holds."""

    kind: Kind
    level: Level
    subject: Subject
    message: str
    witness: tuple[tuple[str, bool], ...] = ()
    sampled: bool = False


def findings_of(
    policy: Policy, knowledge: Mapping[SignalName, Knowledge], signals: Sequence[SignalName]
) -> list[Finding]:
    """Every finding, in the policy's order. `signals` are those that the policy defines."""
    space = Space(policy.projections, knowledge)
    with Solver(space.clauses) as solver:
        sets = [_Set(policy, space, solver, policy.decisions, policy.default_model, "")]
        for profile in policy.profiles:
            under = f' under the profile "{profile.name}"'
            sets.append(_Set(policy, space, solver, profile.decisions, profile.default_model, under))
        found = [finding for each in sets for finding in each.findings()]
    return [*_everywhere(found, sets), *_unread(policy, signals), *_unreached(policy)]


def _everywhere(found: Sequence[Finding], sets: Sequence[_Set]) -> Iterator[Finding]:
    """Each finding once, the mildest. What is said of a decision must hold wherever it is considered, as guards are."""
    chances = Counter(decision.name for each in sets for decision in each.decisions)
    alike: dict[tuple[Kind, Subject], list[Finding]] = {}
    for finding in found:
        alike.setdefault((finding.kind, finding.subject), []).append(finding)
    for (kind, subject), each in alike.items():
        if kind in ("tie", "unproven") or len(each) == chances[subject.name]:
            yield max(each, key=lambda finding: ("error", "warning", "note").index(finding.level))


@dataclass(frozen=True, slots=True)
class _Question:
    """A decision, and what is asked about it.

    `tree` is that its condition is true, `clear` that no condition of those `above`, which outrank it, is.
    """

    decision: Decision
    tree: int
    clear: int
    above: Sequence[Decision]


class _Set:
    """The decisions that one request may meet. `under` names the profile in messages."""

    def __init__(
        self, policy: Policy, space: Space, solver: Solver, decisions: Sequence[Decision], default: str, under: str
    ) -> None:
        self.decisions = decisions
        self._policy = policy
        self._space = space
        self._solver = solver
        self._default = default
        self._under = under
        self._ranked = by_rank(decisions)
        self._unlike: dict[Outcome, dict[tuple[bool, int], int]] = {}

    def findings(self) -> Iterator[Finding]:
        winning: list[_Question] = []
        for question in self._questions():
            subject = Subject("decision", question.decision.name)
            wins = self._solver.together((question.tree, question.clear))
            if not wins.possible:
                yield from self._never(question, wins, subject)
                continue
            winning.append(question)
            # Most guards have an effect in the very assignment that was found.
            idle = question.decision.guard and not self._shows_effect(question, self._solver.model())
            before = self._solver.given_up
            misses = self._solver.together([-question.tree])
            if not misses.possible and not misses.sampled:
                message = f"its condition holds whatever its signals say{self._under}"
                yield Finding("always-true", "warning", subject, message)
            if idle:
                yield from self._without_effect(question, subject)
            yield from self._incapable(question, subject)
            if self._solver.given_up > before:
                message = f"not all that is asked about it could be proven{self._under}; it may have more findings"
                yield Finding("unproven", "note", subject, message, (), True)
        yield from self._ties(winning)

    def _questions(self) -> Iterator[_Question]:
        """In the order of their rank, best first."""
        clear, passed = self._space.both(()), 0
        for _, equals in groupby(self._ranked, _rank):
            group = [(decision, self._space.literal(decision.when)) for decision in equals]
            above = self._ranked[:passed]
            for decision, tree in group:
                yield _Question(decision, tree, clear, above)
            clear = self._space.both((clear, *(-tree for _, tree in group)))
            passed += len(group)

    def _matched(self, decision: Decision) -> int:
        """That the decision matches, its unknown condition settled as it says."""
        if decision.unknown_matches:
            return -self._space.false(decision.when)
        return self._space.true(decision.when)

    def _wins(self, question: _Question) -> list[int]:
        """That it matches and nothing that outranks it does, answers that are missing included."""
        return [self._matched(question.decision), *(-self._matched(other) for other in question.above)]

    def _never(self, question: _Question, wins: Answer, subject: Subject) -> Iterator[Finding]:
        decision, space = question.decision, self._space
        if wins.sampled:
            message = f"no request was found with which it wins{self._under}; this is no proof"
            yield Finding("shadowed", "note", subject, message, (), True)
            return
        explained = self._solver.together([question.tree, *(-space.literal(other.when) for other in question.above)])
        blame = [other for other in question.above if -space.literal(other.when) in explained.core]
        alone = self._solver.together([question.tree])
        example = self._witness((decision, *blame)) if alone.possible else ()
        missing = self._solver.together(self._wins(question))
        by_gaps = missing.possible or missing.sampled
        if not alone.possible:
            rest = "; it matches only where an answer is missing" if by_gaps else ""
            level: Level = "warning" if by_gaps else "error"
            yield Finding("never-true", level, subject, f"its condition can never be true{rest}")
            return
        if by_gaps and decision.unknown_matches != decision.guard:
            # It is there for the answers that are missing: `on_unknown` says so.
            return
        names = ", ".join(f'"{other.name}"' for other in blame)
        so = f"so does {names}, which outranks it"
        if len(blame) != 1:
            so = f"so does one of {names}, which outrank it"
        message = f"it can never win{self._under}: whenever it matches, {so}"
        if by_gaps:
            message = f"it wins{self._under} only where an answer is missing: otherwise, whenever it matches, {so}"
        yield Finding("shadowed", "note" if by_gaps else "error", subject, message, example)

    def _shows_effect(self, question: _Question, model: frozenset[int]) -> bool:
        """Whether something else would become of the request of this assignment, which the guard wins."""
        guard = question.decision
        rest = [other for other in self._ranked[len(question.above) :] if other is not guard]
        for _, equals in groupby(rest, _rank):
            matched = [other for other in equals if self._space.literal(other.when) in model]
            if matched:
                return not all(self._same(guard.outcome, other) for other in matched)
        return not self._same_as_default(guard.outcome)

    def _without_effect(self, question: _Question, subject: Subject) -> Iterator[Finding]:
        if self._policy.respect_requested_model:
            return
        guard = question.decision
        changed = self._solver.together([*self._wins(question), self._other_without(guard)])
        if not changed.possible and not changed.sampled:
            message = f"the guard changes nothing{self._under}: without it the same would become of every request"
            yield Finding("guard-without-effect", "warning", subject, message)

    def _other_without(self, guard: Decision) -> int:
        """That something else would become of a request that the guard wins, if it were not for the guard."""
        rank = _rank(guard)
        peers = [other for other in self._ranked if other is not guard and _rank(other) == rank]
        below = self._unlike_below(guard.outcome)
        beneath = [below[each] for each in below if each < rank]
        rest = beneath[-1] if beneath else self._unlike_default(guard.outcome)
        return self._unlike_here(guard.outcome, peers, rest)

    def _unlike_below(self, outcome: Outcome) -> dict[tuple[bool, int], int]:
        """For each rank, lowest first: that what becomes of a request that gets there is another outcome."""
        made = self._unlike.get(outcome)
        if made is None:
            made = self._unlike[outcome] = {}
            rest = self._unlike_default(outcome)
            for rank, equals in groupby(reversed(self._ranked), _rank):
                made[rank] = rest = self._unlike_here(outcome, list(equals), rest)
        return made

    def _unlike_here(self, outcome: Outcome, equals: Sequence[Decision], rest: int) -> int:
        space = self._space
        others = [self._matched(each) for each in equals if not self._same(outcome, each)]
        nobody = space.both(-self._matched(each) for each in equals)
        return space.either((*others, space.both((nobody, rest))))

    def _unlike_default(self, outcome: Outcome) -> int:
        always = self._space.both(())
        return -always if self._same_as_default(outcome) else always

    def _same_as_default(self, outcome: Outcome) -> bool:
        same = isinstance(outcome, Route) and outcome.models == (self._default,) and not outcome.fallback
        return same and not self._policy.fallback

    def _same(self, outcome: Outcome, other: Decision) -> bool:
        """Whether a guard with the outcome does what the other does; only routes reach the policy's fallback."""
        reaches = bool(self._policy.fallback) and isinstance(outcome, Route) and not other.guard
        return other.outcome == outcome and not reaches

    def _incapable(self, question: _Question, subject: Subject) -> Iterator[Finding]:
        if not isinstance(question.decision.outcome, Route):
            return
        for model in dict.fromkeys(question.decision.outcome.models):
            upstream = self._policy.upstream(model)
            for level, what, without in self._needs(upstream):
                answer = self._solver.together((question.tree, question.clear, without))
                if not answer.possible and not answer.sampled:
                    yield Finding("incapable-candidate", level, subject, f'its candidate "{model}" can take {what}')

    def _needs(self, upstream: Upstream) -> Iterator[tuple[Level, str, int]]:
        """For each thing that the upstream cannot take: how sure that is, in words, and that a request comes without.

        What a file holds is the file's, so that images and sound may come to an upstream that takes files only.
        """
        some, space = Interval(1), self._space
        in_files = space.fact("files", some) if "file" in upstream.modalities else -space.both(())
        for fact, modality in (("images", "image"), ("audio", "audio"), ("files", "file")):
            if modality not in upstream.modalities:
                without = -space.fact(fact, some)
                without = without if fact == "files" else space.either((without, in_files))
                yield "error", f"none of its requests: each has {fact}, and it takes none", without
        if upstream.capabilities is not None and "tools" not in upstream.capabilities:
            what = "only those of its requests that forbid to call tools: each offers some, and it can call none"
            yield "warning", what, -space.fact("tools", some)
        if upstream.context_tokens is not None:
            more = space.fact("tokens", Interval(upstream.context_tokens, above=True))
            what = f"hardly any of its requests: each has more than the {upstream.context_tokens} tokens that it takes"
            yield "warning", what, -more

    def _ties(self, winning: Sequence[_Question]) -> Iterator[Finding]:
        """Pairs of one rank that can both match; where confidence goes first, routes are meant to."""
        shown = 0
        for one, other in islice(_equals(winning), MAX_PAIRS):
            both = self._solver.together((one.tree, other.tree, one.clear))
            if not both.possible:
                continue
            shown += 1
            if shown > SHOWN_PAIRS:
                break
            first, second = sorted((one.decision, other.decision), key=lambda decision: decision.name)
            yield Finding(
                "tie",
                "note",
                Subject("decision", second.name),
                f'it can match together with "{first.name}" of the same priority{self._under}; '
                f"the surer one wins, and of equals {first.name}",
                self._witness((first, second)),
            )

    def _witness(self, decisions: Sequence[Decision]) -> tuple[tuple[str, bool], ...]:
        """The leaves of these, as the solver's last answer has them."""
        every = All(tuple(decision.when for decision in decisions))
        return tuple((str(leaf), holds) for leaf, holds in self._space.describe(every, self._solver.model()))


def _equals(questions: Sequence[_Question]) -> Iterator[tuple[_Question, _Question]]:
    """Pairs of one rank and priority with different outcomes, among the first MAX_LOOKED_AT pairs of each rank."""
    for _, group in groupby(questions, lambda question: _rank(question.decision)):
        for one, other in islice(combinations(group, 2), MAX_LOOKED_AT):
            if one.decision.priority == other.decision.priority and one.decision.outcome != other.decision.outcome:
                yield one, other


def _rank(decision: Decision) -> tuple[bool, int]:
    return decision.guard, decision.tier


def _unread(policy: Policy, signals: Sequence[SignalName]) -> Iterator[Finding]:
    read = signals_below(policy)
    for name in signals:
        if name not in read:
            yield Finding("unread-signal", "warning", Subject("signal", str(name)), "no decision reads it")
    needed = {name for decision in policy.all_decisions for name in signals_of(decision.when)}
    for projection in reversed(policy.projections):
        if projection.name in needed:
            needed.update(projection.reads)
    for projection in policy.projections:
        if projection.name not in needed:
            subject = Subject("projection", str(projection.name))
            yield Finding("unread-projection", "warning", subject, "no decision reads it")


def _unreached(policy: Policy) -> Iterator[Finding]:
    reached = {policy.default_model, *policy.fallback, *(profile.default_model for profile in policy.profiles)}
    for decision in policy.all_decisions:
        if isinstance(decision.outcome, Route):
            reached.update(decision.outcome.models, decision.outcome.fallback)
    for upstream in policy.upstreams:
        if upstream.model not in reached and not policy.respect_requested_model:
            yield Finding(
                "unreached-upstream",
                "warning",
                Subject("upstream", upstream.model),
                "no decision sends a request to it",
            )
