from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from router.config.load import LoadedPolicy, parse_policy
from router.extproc.choosing import Chooser
from router.extproc.house import move_in
from router.extproc.pipeline import Judgement, Pipeline
from router.extproc.telling.desk import Telling
from router.policy.engine import Engine
from router.policy.model import Policy, Route
from router.request.view import RequestView
from router.selection.choice import Facts
from router.selection.learning import Reward, learn
from router.selection.select import choose
from router.selection.similarity import Cards
from router.selection.snapshot import EMPTY, Snapshot

POLICY = """\
version: 1
upstreams:
  - {model: a, cluster: x, card: code}
  - {model: b, cluster: y, card: dose}
default_model: a
encoders: {text: starter}
profiles:
  - name: own
    models: [virtual]
    decisions: [{name: one, when: {not: {conversation: has_images}}, route: {models: [a, b], select: SELECT}}]
"""


def learnt() -> Snapshot:
    state = EMPTY
    for n in range(6):
        state = learn(state, Reward(str(n), "one", "b" if n % 2 else "a", 0.25 * n / 2))
    return state


class Words:
    """Embeds a text by the word that it holds; `ways` says what else happens."""

    def __init__(self, way: str = "") -> None:
        self.way = way

    async def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.way == "hangs":
            await asyncio.Event().wait()
        if self.way == "fails":
            raise RuntimeError("CANARY")
        return np.array([["code" in text, "dose" in text] for text in texts], dtype=np.float32)


@pytest.fixture
def executor() -> Any:
    with ThreadPoolExecutor(1) as made:
        yield made


def policy(select: str) -> Policy:
    return parse_policy(POLICY.replace("SELECT", select).encode(), Path("p.yaml")).policy


class Absent:
    """Stands for `conversation/has_images`."""

    def __init__(self) -> None:
        from router.signals.base import Cost, SignalName, observed

        self.name, self.cost = SignalName("conversation", "has_images"), Cost.HEURISTIC
        self._no = observed(False)
        self.seen: list[Mapping[str, str]] = []

    async def prepare(self) -> None:
        pass

    async def observe(self, view: RequestView) -> Any:
        self.seen.append(view.headers)
        return self._no


def pipeline(
    rules: Policy,
    executor: ThreadPoolExecutor,
    snapshot: Snapshot = EMPTY,
    cards: Cards | None = None,
    budget: float = 60,
) -> Pipeline:
    chooser = Chooser(rules, executor, lambda: snapshot, cards)
    signal = Absent()
    return Pipeline(rules, Engine(rules, {signal.name: signal}), budget, executor, Telling(), chooser)


async def judged(line: Pipeline, text: str = "hello") -> Judgement:
    body = json.dumps({"model": "virtual", "messages": [{"role": "user", "content": text}]})
    return await line.judge_body("openai.chat", body.encode())


@pytest.mark.parametrize(
    "select",
    [
        "static",
        "bandit",
        "{elo: {explore: 0.5}}",
        "{fastest: {explore: 1}}",
        "{weighted: {weights: {a: 1, b: 2}}}",
        "{hybrid: {pick: bandit, first: 2}}",
    ],
)
async def test_the_records_seed_and_the_state_give_the_same_choice_again(
    executor: ThreadPoolExecutor, select: str
) -> None:
    rules, snapshot = policy(select), learnt()
    [decision] = rules.profiles[0].decisions
    assert isinstance(decision.outcome, Route)
    line = pipeline(rules, executor, snapshot)
    for n in range(20):
        record = (await judged(line, f"hello {n}")).record
        row = json.loads(json.dumps(record.summary(), allow_nan=False))
        selection = row["selection"]
        assert record.resolution
        facts = Facts(row["decision"], record.resolution.needs)
        candidates = [rules.upstream(one["model"]) for one in selection["candidates"]]
        again = choose(decision.outcome.select, candidates, facts, snapshot, int(selection["seed"], 16))
        assert again.model == row["model"]
        assert selection["propensity"] == pytest.approx(again.propensities[again.model], abs=1e-6)
        reads_state = not select.startswith(("static", "{weighted"))
        assert selection.get("state") == ({"version": 6, "digest": ""} if reads_state else None)


@pytest.fixture
async def cards() -> AsyncIterator[Cards]:
    made = Cards(Words())
    await made.prepare(policy("similarity").upstreams)
    yield made


@pytest.mark.parametrize("select", ["similarity", "{hybrid: {pick: similarity}}"])
async def test_similarity_goes_by_what_the_user_says(executor: ThreadPoolExecutor, cards: Cards, select: str) -> None:
    line = pipeline(policy(select), executor, cards=cards)
    assert (await judged(line, "which dose?")).record.model == "b"
    row = (await judged(line, "some code")).record.summary()
    assert row["model"] == "a"
    assert row["selection"]["candidates"] == [
        {"model": "a", "propensity": 1.0, "score": 1.0},
        {"model": "b", "propensity": 0.0, "score": 0.0},
    ]


@pytest.mark.parametrize(("way", "budget"), [("fails", 60.0), ("hangs", 0.05)])
async def test_without_similarities_the_first_candidate_is_taken_and_no_message_is_logged(
    executor: ThreadPoolExecutor, cards: Cards, caplog: pytest.LogCaptureFixture, way: str, budget: float
) -> None:
    cards._embed = Words(way)
    line = pipeline(policy("similarity"), executor, cards=cards, budget=budget)
    record = (await judged(line, "which dose?")).record
    assert (record.model, record.summary()["selection"]["reason"]) == ("a", "no_similarities")
    assert "CANARY" not in caplog.text + str([vars(one) for one in caplog.records])


async def test_a_choice_sees_one_state_although_another_comes_meanwhile(executor: ThreadPoolExecutor) -> None:
    states = iter([learnt(), EMPTY])
    rules = policy("bandit")
    signal = Absent()
    chooser = Chooser(rules, executor, lambda: next(states))
    line = Pipeline(rules, Engine(rules, {signal.name: signal}), 60, executor, Telling(), chooser)
    assert (await judged(line)).record.summary()["selection"]["state"]["version"] == 6


async def test_signals_are_shown_trusted_headers_only(executor: ThreadPoolExecutor) -> None:
    rules = replace(policy("static"), trusted_headers=("x-team", "x-tenant"))
    signal = Absent()
    line = Pipeline(rules, Engine(rules, {signal.name: signal}), 60, executor, Telling())
    body = b'{"model":"virtual","messages":[{"role":"user","content":"hello"}]}'
    for given in ({"x-team": "blue", "authorization": "secret", ":path": "/v1"}, {"cookie": "secret"}, {}):
        await line.judge_body("openai.chat", body, given)
    assert signal.seen == [{"x-team": "blue"}, {}, {}]


def loaded(select: str) -> LoadedPolicy:
    return parse_policy(POLICY.replace("SELECT", select).encode(), Path("p.yaml"))


async def test_a_house_chooses_by_the_newest_state_and_so_does_the_one_that_follows_it() -> None:
    states = [learnt()]
    first = await move_in(loaded("bandit"), 1, snapshot=lambda: states[-1])
    after = await move_in(loaded("{elo: {explore: 0}}"), 1, first)
    try:
        assert (await judged(first.pipeline)).record.summary()["selection"]["state"]["version"] == 6
        states.append(learn(states[-1], Reward("x", "one", "b", 1.0, "a")))
        row = (await judged(after.pipeline)).record.summary()
        assert (row["model"], row["selection"]["state"]["version"]) == ("b", 7)
    finally:
        first.machinery.close()


async def test_a_house_holds_requests_against_the_cards_with_its_own_encoder() -> None:
    house = await move_in(
        parse_policy(
            POLICY.replace("SELECT", "similarity")
            .replace("card: code", "card: writing and debugging computer programs")
            .replace("card: dose", "card: doses and side effects of medicines")
            .encode(),
            Path("p.yaml"),
        ),
        1,
    )
    try:
        texts = ("Why does my Python program raise an exception?", "What are the side effects of this medicine?")
        assert [(await judged(house.pipeline, text)).record.model for text in texts] == ["a", "b"]
    finally:
        house.machinery.close()
