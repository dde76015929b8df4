"""Upstreams, needs and states as the tests of this folder need them, and hypothesis strategies for them."""

from __future__ import annotations

from hypothesis import strategies as st

from router.request.view import RequestView, Role, TextPart, Turn
from router.selection.choice import Facts
from router.selection.learning import Measurement, Reward, learn
from router.selection.model import (
    Bandit,
    Cheapest,
    Elo,
    Fastest,
    Hybrid,
    Limits,
    MultiFactor,
    Select,
    Similarity,
    Static,
    Weighted,
)
from router.selection.needs import Needs
from router.selection.snapshot import EMPTY, Snapshot
from router.selection.upstream import Price, Upstream

MODELS = ("a", "b", "c", "d", "e")
DECISION = "one"


def upstream(model: str, **rest: object) -> Upstream:
    return Upstream(model, f"{model}-cluster", None, model, ("text",), **rest)  # type: ignore[arg-type]


def needs(
    text_tokens: int = 100,
    output_tokens: int | None = None,
    inputs: frozenset[str] = frozenset({"text"}),
    outputs: frozenset[str] = frozenset({"text"}),
    abilities: frozenset[str] = frozenset(),
    sizes: tuple[tuple[int, int] | None, ...] = (),
) -> Needs:
    return Needs(inputs, outputs, abilities, text_tokens, output_tokens, sizes)


def facts(decision: str = DECISION, wanted: Needs | None = None, **similarities: float) -> Facts:
    return Facts(decision, wanted or needs(), similarities or None)


def after(*events: Reward | Measurement, start: Snapshot = EMPTY) -> Snapshot:
    for event in events:
        start = learn(start, event)
    return start


def rewarded(model: str, reward: float, times: int = 1, decision: str = DECISION) -> list[Reward]:
    return [Reward(f"r{n}", decision, model, reward) for n in range(times)]


def request(*turns: tuple[Role, str], **rest: object) -> RequestView:
    said = tuple(Turn(f"/{i}", role, (TextPart(f"/{i}/content", text),)) for i, (role, text) in enumerate(turns))
    return RequestView("openai.chat", None, said, (), False, 0, None, **rest)  # type: ignore[arg-type]


prices = st.builds(Price, st.floats(0, 100), st.floats(0, 100))
shares = st.floats(0, 1)
times = st.floats(0.0, 1e6)
seeds = st.integers(0, 2**64 - 1)


@st.composite
def candidates(draw: st.DrawFn, least: int = 1) -> tuple[Upstream, ...]:
    names = draw(st.lists(st.sampled_from(MODELS), min_size=least, max_size=5, unique=True))
    return tuple(upstream(name, price=draw(prices), quality=draw(shares), card=name) for name in names)


events = st.one_of(
    st.builds(Reward, st.uuids().map(str), st.sampled_from([DECISION, "two"]), st.sampled_from(MODELS), shares),
    st.builds(Reward, st.uuids().map(str), st.just(DECISION), st.just("a"), shares, st.sampled_from(MODELS[1:])),
    st.builds(Measurement, st.sampled_from(MODELS), st.none() | times, st.none() | times, st.none() | shares),
)
snapshots = st.lists(events, max_size=30).map(lambda found: after(*found))
limits = st.builds(
    Limits,
    st.none() | shares,
    st.none() | st.floats(0, 0.1),
    st.none() | st.floats(0.1, 1e6),
    st.none() | shares,
)
weightings = st.fixed_dictionaries({model: st.floats(0, 100) for model in MODELS})
picks = st.one_of(
    st.builds(Bandit, st.tuples(st.floats(0.5, 50), st.floats(0.5, 50))),
    st.builds(Elo, shares),
    st.just(Similarity()),
    st.builds(Fastest, st.sampled_from(["ttft", "latency"]), st.floats(0, 100), shares),
)
selects: st.SearchStrategy[Select] = st.one_of(
    st.just(Static()),
    st.builds(Weighted, weightings),
    st.just(Cheapest()),
    st.builds(MultiFactor, *[st.floats(0.1, 5)] * 4, limits),
    picks,
    st.builds(Hybrid, picks, limits, st.none() | st.integers(1, 5)),
)
similarities = st.fixed_dictionaries({model: st.floats(-1, 1) for model in MODELS})
