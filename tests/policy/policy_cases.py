"""Strategies and small builders for policies and observations, shared by the tests of this folder."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Literal

from hypothesis import strategies as st

from router.policy.logic import evaluate
from router.policy.model import (
    All,
    Any,
    AtLeast,
    Clarify,
    Condition,
    Decision,
    Not,
    Outcome,
    Policy,
    Profile,
    Refuse,
    Route,
)
from router.policy.predicate import Interval, Leaf, leaf_confidence
from router.policy.project import derive
from router.policy.projection import Band, Member, Partition, Projection, ScoreInput, WeightedScore
from router.request.view import RequestView
from router.selection.model import Static
from router.selection.upstream import Upstream
from router.signals.base import Cost, Observation, SignalName

NAMES = tuple(SignalName("fake", letter) for letter in "abcdef")


def view(model: str | None = None) -> RequestView:
    return RequestView("openai.chat", model, (), (), False, 0, None)


def leaf(letter: str) -> Leaf:
    return Leaf(SignalName("fake", letter))


def yes(score: float | None = None) -> Observation:
    return Observation("observed", True, score)


def no(score: float | None = None) -> Observation:
    return Observation("observed", False, score)


def unknown() -> Observation:
    return Observation("failed", None, reason="truncated")


def seen(**letters: Observation) -> dict[SignalName, Observation]:
    return {SignalName("fake", letter): observation for letter, observation in letters.items()}


def decision(
    name: str,
    when: Condition,
    *,
    priority: int = 100,
    guard: bool = False,
    unknown_matches: bool | None = None,
    outcome: Outcome | None = None,
    tier: int | None = None,
) -> Decision:
    settled = guard if unknown_matches is None else unknown_matches
    tier = priority if tier is None else tier
    return Decision(name, priority, guard, settled, when, outcome or Route((f"to-{name}",), Static()), tier)


def policy(
    *decisions: Decision,
    respect_requested_model: bool = False,
    projections: tuple[Projection, ...] = (),
    profiles: tuple[Profile, ...] = (),
    evaluation: Literal["lazy", "full"] = "lazy",
) -> Policy:
    models = ["small", "large", *(m for d in decisions if isinstance(d.outcome, Route) for m in d.outcome.models)]
    upstreams = tuple(Upstream(model, f"{model}-cluster", None, model, ("text",)) for model in dict.fromkeys(models))
    return Policy(
        "0" * 64,
        "closed",
        respect_requested_model,
        upstreams,
        "small",
        decisions,
        projections=projections,
        profiles=profiles,
        evaluation=evaluation,
    )


def confidence(condition: Condition, observations: Mapping[SignalName, Observation]) -> float:
    """Confidence of a fully observed tree by the words of `router.policy.confidence`, without bounds."""
    match condition:
        case Leaf(signal=signal):
            return leaf_confidence(condition, observations[signal])
        case Not(of=child):
            return confidence(child, observations)
        case All(of=children):
            least = len(children)
        case Any(of=children):
            least = 1
        case AtLeast(least=least, of=children):
            pass
    value = evaluate(condition, observations)
    if value is None:
        return 0.0
    wanted = least if value else len(children) - least + 1
    sure = sorted(confidence(child, observations) for child in children if evaluate(child, observations) is value)
    return sure[-wanted] if wanted else 1.0


class FakeSignal:
    """Answers what it is told, after `waits` turns of the event loop; remembers whether it was asked and cancelled."""

    def __init__(
        self, name: SignalName, answer: Observation | Exception, cost: Cost = Cost.TEXT_MODEL, waits: int = 1
    ) -> None:
        self.name = name
        self.cost = cost
        self.answer = answer
        self.waits = waits
        self.asked = 0
        self.cancelled = 0
        self.finished = 0

    async def prepare(self) -> None:
        """Nothing to do."""

    async def observe(self, view: RequestView) -> Observation:
        self.asked += 1
        try:
            for _ in range(self.waits):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.finished += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class StuckSignal(FakeSignal):
    """Never answers; `stubborn` swallows cancellation until it is released."""

    def __init__(self, name: SignalName, stubborn: bool = False) -> None:
        super().__init__(name, yes())
        self.stubborn = stubborn
        self.started = asyncio.Event()
        self.release = asyncio.Event()

    async def observe(self, view: RequestView) -> Observation:
        self.asked += 1
        self.started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            if not self.stubborn:
                raise
        await self.release.wait()
        return self.answer


def signals(
    observations: Mapping[SignalName, Observation], costs: Mapping[SignalName, Cost] | None = None
) -> dict[SignalName, FakeSignal]:
    costs = costs or {}
    return {
        name: FakeSignal(name, observation, costs.get(name, Cost.TEXT_MODEL))
        for name, observation in observations.items()
    }


# Few distinct scores, so that ties of confidence are common.
scores = st.sampled_from([None, 0.0, 0.3, 0.5, 0.5, 0.9, 1.0])
observed_values = st.builds(
    lambda m, s, label: Observation("observed", m, s, label=label), st.booleans(), scores, st.sampled_from("xyz")
)
unknown_values = st.sampled_from([Observation(s, None) for s in ("failed", "timed_out", "shed")])
any_observation = st.one_of(observed_values, unknown_values)
all_observations = st.fixed_dictionaries(dict.fromkeys(NAMES, any_observation))
partial_observations = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, any_observation))

PARTITION, SHARES = SignalName("partition", "rivals"), SignalName("partition", "shares")
SCORE, SECOND_SCORE, BAND = SignalName("score", "risk"), SignalName("score", "sum"), SignalName("band", "level")
NUMBERS = (0.0, 0.3, 0.5, 0.9)


@st.composite
def some_projections(draw: st.DrawFn) -> tuple[Projection, ...]:
    """Projections of every kind, some of which read others."""
    members = tuple(Member(name, name.name) for name in draw(st.permutations(NAMES))[: draw(st.integers(2, 4))])
    weights = st.sampled_from([-1.0, 0.3, 0.5, 2.0])
    missing = st.sampled_from(["unknown", "skip"])
    threshold = st.sampled_from([None, 0.0, 0.5])
    first = tuple(
        ScoreInput(Leaf(name), draw(weights), draw(st.sampled_from(["match", "score"]))) for name in NAMES[:3]
    )
    cut = draw(st.sampled_from(NUMBERS))
    return (
        Partition(PARTITION, members, "exclusive"),
        Partition(
            SHARES,
            members,
            "softmax",
            draw(st.sampled_from([0.1, 1.0])),
            draw(threshold),
            draw(st.sampled_from(NUMBERS)),
        ),
        WeightedScore(SCORE, first, draw(weights), draw(missing), draw(threshold)),
        WeightedScore(
            SECOND_SCORE,
            (
                ScoreInput(Leaf(SCORE), draw(weights), "value"),
                ScoreInput(Leaf(PARTITION, labels=frozenset("a")), 1.0, "match"),
            ),
            0.0,
            draw(missing),
        ),
        Band(BAND, SECOND_SCORE, (("low", Interval(None, cut)), ("high", Interval(cut + 0.1, None)))),
    )


intervals = st.builds(
    lambda low, high, above, closed: Interval(
        low, None if low is not None and high is not None and high <= low else high, above, closed
    ),
    st.sampled_from([None, *NUMBERS]),
    st.sampled_from([None, *NUMBERS]),
    st.booleans(),
    st.booleans(),
)
leaves = st.one_of(
    st.sampled_from(NAMES).map(Leaf),
    st.builds(Leaf, st.sampled_from(NAMES), intervals),
    st.builds(
        lambda name, label: Leaf(name, labels=frozenset((label,))), st.sampled_from(NAMES), st.sampled_from("xy")
    ),
)
derived_leaves = st.one_of(
    leaves,
    st.builds(Leaf, st.sampled_from([SCORE, SECOND_SCORE, SHARES]), intervals),
    st.builds(
        lambda name, label: Leaf(name, labels=frozenset((label,))),
        st.sampled_from([PARTITION, SHARES]),
        st.sampled_from([*"abc", "none"]),
    ),
    st.builds(lambda label: Leaf(BAND, labels=frozenset((label,))), st.sampled_from(["low", "high"])),
)


def trees(of: st.SearchStrategy[Leaf]) -> st.SearchStrategy[Condition]:
    return st.recursive(
        of,
        lambda children: st.one_of(
            children.map(Not),
            st.lists(children, max_size=3).map(lambda of: All(tuple(of))),
            st.lists(children, max_size=3).map(lambda of: Any(tuple(of))),
            st.lists(children, min_size=1, max_size=4).flatmap(
                lambda of: st.integers(1, len(of)).map(lambda least: AtLeast(least, tuple(of)))
            ),
        ),
        max_leaves=6,
    )


conditions = trees(leaves)
derived_conditions = trees(derived_leaves)
outcomes = st.sampled_from([Route(("small",), Static()), Refuse(403, "no", "No."), Clarify("Which?")])


@st.composite
def some_decisions(draw: st.DrawFn, prefix: str, confidence_first: bool, most: int) -> tuple[Decision, ...]:
    result = []
    for index in range(draw(st.integers(0, most))):
        # Few priorities, so that ties are common.
        priority, guard = draw(st.sampled_from([1, 1, 2])), draw(st.booleans())
        result.append(
            Decision(
                name=f"{prefix}{draw(st.integers(0, 9))}-{index}",
                priority=priority,
                guard=guard,
                unknown_matches=draw(st.booleans()),
                when=draw(derived_conditions),
                outcome=draw(outcomes),
                tier=priority if guard or not confidence_first else 0,
            )
        )
    return tuple(result)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    confidence_first = draw(st.booleans())
    decisions = draw(some_decisions("d", confidence_first, 5))
    own = draw(some_decisions("p", confidence_first, 2))
    guards = tuple(decision for decision in decisions if decision.guard)
    profile = Profile("own", frozenset(("virtual",)), "", frozenset(), (*guards, *own), "large")
    return policy(
        *decisions,
        respect_requested_model=draw(st.booleans()),
        projections=draw(some_projections()),
        profiles=(profile,) if draw(st.booleans()) else (),
    )


def everything(rules: Policy, observations: Mapping[SignalName, Observation]) -> dict[SignalName, Observation]:
    """The observations, and what is derived from them."""
    every = dict(observations)
    derive(rules.projections, every)
    return every
