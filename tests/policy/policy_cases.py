"""Strategies and small builders for policies and observations, shared by the tests of this folder."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from hypothesis import strategies as st

from router.policy.confidence import leaf_confidence
from router.policy.logic import evaluate
from router.policy.model import (
    All,
    Any,
    Clarify,
    Condition,
    Decision,
    Leaf,
    Not,
    Outcome,
    Policy,
    Refuse,
    Route,
    Upstream,
)
from router.request.view import RequestView
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
) -> Decision:
    settled = guard if unknown_matches is None else unknown_matches
    return Decision(name, priority, guard, settled, when, outcome or Route((f"to-{name}",), "static"))


def policy(*decisions: Decision, respect_requested_model: bool = False) -> Policy:
    models = ["small", "large", *(m for d in decisions if isinstance(d.outcome, Route) for m in d.outcome.models)]
    upstreams = tuple(Upstream(model, f"{model}-cluster", None, model, ("text",)) for model in dict.fromkeys(models))
    return Policy("0" * 64, "closed", respect_requested_model, upstreams, "small", decisions)


def confidence(condition: Condition, observations: Mapping[SignalName, Observation]) -> float:
    """Confidence of a fully observed tree by the words of `router.policy.confidence`, without bounds."""
    match condition:
        case Leaf(signal=signal):
            return leaf_confidence(observations[signal])
        case Not(of=child):
            return confidence(child, observations)
        case All(of=children):
            decisive = False
        case Any(of=children):
            decisive = True
    value = evaluate(condition, observations)
    if value is None:
        return 0.0
    if value is not decisive:
        return min((confidence(child, observations) for child in children), default=1.0)
    return max(confidence(child, observations) for child in children if evaluate(child, observations) is decisive)


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
observed_values = st.builds(lambda m, s: Observation("observed", m, s), st.booleans(), scores)
unknown_values = st.sampled_from([Observation(s, None) for s in ("failed", "timed_out", "shed")])
any_observation = st.one_of(observed_values, unknown_values)
all_observations = st.fixed_dictionaries(dict.fromkeys(NAMES, any_observation))
partial_observations = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, any_observation))

leaves = st.sampled_from(NAMES).map(Leaf)
conditions = st.recursive(
    leaves,
    lambda children: st.one_of(
        children.map(Not),
        st.lists(children, max_size=3).map(lambda of: All(tuple(of))),
        st.lists(children, max_size=3).map(lambda of: Any(tuple(of))),
    ),
    max_leaves=6,
)
outcomes = st.sampled_from([Route(("small",), "static"), Refuse(403, "no", "No."), Clarify("Which?")])


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    decisions = tuple(
        Decision(
            name=f"d{draw(st.integers(0, 9))}-{index}",
            # Few priorities, so that ties are common.
            priority=draw(st.sampled_from([1, 1, 2])),
            guard=draw(st.booleans()),
            unknown_matches=draw(st.booleans()),
            when=draw(conditions),
            outcome=draw(outcomes),
        )
        for index in range(draw(st.integers(0, 5)))
    )
    return policy(*decisions, respect_requested_model=draw(st.booleans()))
