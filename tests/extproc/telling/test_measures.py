"""What is counted of requests and responses, and that no client can make a series."""

from __future__ import annotations

import ast
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider

import router
from router.config.load import LoadedPolicy, parse_policy
from router.extproc.exchange import FailureKind
from router.extproc.head import RequestHead
from router.extproc.house import House, move_in
from router.extproc.reading import ResponseFacts
from router.extproc.telling.desk import Desk
from router.extproc.telling.handled import Handled
from router.extproc.telling.measures import (
    APIS,
    CODES,
    COUNTED_BEFORE,
    OPERATIONS,
    PASSED,
    Prices,
    admit,
    begin,
    measure,
    measure_response,
)
from router.extproc.telling.teller import Teller
from router.extproc.usage import Usage
from router.telemetry.histograms import Histograms
from router.telemetry.instruments import Instruments, create_instruments
from router.telemetry.names import MOST_NAMES, Names
from router.telemetry.tally import Pace
from router.telemetry.views import MOST_SERIES, views
from tests.telemetry.histogram_reader import HistogramReader

POLICY = """\
version: 1
on_failure: open
upstreams:
  - {model: small, cluster: a, price: {input_per_million: 2, output_per_million: 10}}
  - {model: med, cluster: b, modalities: [text, image]}
default_model: small
signals: {keyword: {medical: {any: [dosage]}, attack: {any: [ignore all instructions], over: all}}}
projections: {score: {risk: {inputs: [{keyword: attack, weight: 1}]}}}
decisions:
  - {name: block, guard: true, when: {keyword: attack}, respond: {message: No.}}
  - {name: risky, when: {score: risk, gte: 0.5}, route: {models: [med]}}
  - {name: medical, when: {keyword: medical}, route: {models: [med]}}
"""
CHAT = RequestHead("POST", "/v1/chat/completions", {})

Point = tuple[dict[str, Any], Any]


@dataclass(frozen=True)
class Counted:
    """Instruments and what they counted."""

    instruments: Instruments
    reader: HistogramReader

    def points(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        metrics = [metric for r in data.resource_metrics for s in r.scope_metrics for metric in s.metrics]
        return {metric.name: list(metric.data.data_points) for metric in metrics}

    def of(self, name: str) -> list[Point]:
        """The series of a metric that are not 0: a value, or a histogram's count and sum."""
        points = self.points().get(name, [])
        values = [(dict(p.attributes), p.value if hasattr(p, "value") else (p.count, p.sum)) for p in points]
        return [(labels, value) for labels, value in values if value]

    @property
    def series(self) -> dict[str, int]:
        return {name: len(points) for name, points in self.points().items()}


@pytest.fixture
def counted() -> Iterator[Counted]:
    histograms = Histograms()
    reader = HistogramReader(histograms)
    provider = MeterProvider([reader], views=views(), shutdown_on_exit=False)
    yield Counted(create_instruments(provider.get_meter("pointsman"), histograms), reader)
    provider.shutdown()


def policy(text: str = POLICY) -> LoadedPolicy:
    return parse_policy(text.encode(), Path("p.yaml"))


@asynccontextmanager
async def told(counted: Counted, text: str = POLICY) -> AsyncIterator[House]:
    """A house whose requests have all been counted once this is left."""
    loaded = policy(text)
    admit(counted.instruments, loaded)
    teller = Teller((partial(measure, counted.instruments),), counted.instruments.telemetry_dropped, limit=10**6)
    teller.start()
    house = await move_in(loaded, 1, desk=Desk(teller))
    try:
        yield house
    finally:
        house.machinery.close()
        teller.close()


def chat(content: str, **rest: Any) -> bytes:
    return json.dumps({"model": "any", "messages": [{"role": "user", "content": content}], **rest}).encode()


async def test_a_decision_is_counted_with_its_signals_sizes_and_images(counted: Counted) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    linked = {"type": "image_url", "image_url": {"url": "https://somewhere.test/a.png"}}
    body = json.dumps({"messages": [{"role": "user", "content": [{"type": "text", "text": "dosage"}, image, linked]}]})
    async with told(counted) as house:
        await house.pipeline.judge(CHAT, body.encode())
    labels = {"decision": "medical", "outcome": "route", "model": "med", "api": "openai.chat", "enforced": "true"}
    assert counted.of("pointsman.requests") == [(labels, 1)]
    [(labels, (count, seconds))] = counted.of("pointsman.decision.duration")
    assert (labels, count) == ({"decision": "medical", "outcome": "route"}, 1)
    assert 0 < seconds < 60
    api = {"api": "openai.chat"}
    assert counted.of("pointsman.request.body.size") == [(api, (1, len(body)))]
    assert counted.of("pointsman.request.images") == [(api, (1, 2))]
    assert counted.of("pointsman.request.image.size") == [(api, (1, 8))]
    asked = {"family": "keyword", "signal": "medical", "status": "observed"}
    observations = counted.of("pointsman.signal.observations")
    assert ({**asked, "matched": "true"}, 1) in observations
    assert ({**asked, "signal": "attack", "matched": "false"}, 1) in observations
    assert ({**asked, "family": "score", "signal": "risk", "matched": "false"}, 1) in observations
    timed = [labels for labels, _ in counted.of("pointsman.signal.duration")]
    assert asked in timed
    assert all(labels["family"] == "keyword" for labels in timed)


async def test_times_of_signals_are_those_of_a_sample_and_everything_else_is_exact(counted: Counted) -> None:
    counted = replace(counted, instruments=replace(counted.instruments, pace=Pace(3, lambda: 0.0)))
    async with told(counted) as house:
        for _ in range(10):
            await house.pipeline.judge(CHAT, chat("dosage"))
    asked = {"family": "keyword", "signal": "medical", "status": "observed"}
    assert ({**asked, "matched": "true"}, 10) in counted.of("pointsman.signal.observations")
    assert [count for labels, (count, _) in counted.of("pointsman.signal.duration") if labels == asked] == [3]
    assert [count for _, (count, _) in counted.of("pointsman.decision.duration")] == [10]


async def test_what_was_not_judged_is_counted_by_its_reason(counted: Counted) -> None:
    async with told(counted) as house:
        await house.pipeline.judge(CHAT, b"{")
        await house.pipeline.judge(CHAT, chat("hello", messages=7))
        await house.pipeline.judge(RequestHead("POST", "/v1/moderations", {}), b"{}")
        await house.pipeline.judge(RequestHead("POST", "/v1/completions", {}), b'{"prompt": [1, 2]}')
        house.pipeline.failed(CHAT, "deadline")
        house.pipeline.failed(None, "body_before_headers")
    api = {"api": "openai.chat"}
    unreadable = [({"code": "invalid_json", **api}, 1), ({"code": "invalid_type", **api}, 1)]
    assert counted.of("pointsman.requests.unreadable") == unreadable
    # The exchange has counted the others itself.
    kinds = [({"kind": "unsupported_api"}, 1), ({"kind": "unreadable_prompt"}, 1)]
    assert counted.of("pointsman.exchange.failures") == kinds
    rest = {"decision": "failure", "model": "", "enforced": "true"}
    assert counted.of("pointsman.requests") == [
        ({**rest, "outcome": "refuse", **api}, 2),
        ({**rest, "outcome": "route", "api": ""}, 2),
        ({**rest, "outcome": "route", "api": "openai.completions"}, 1),
        ({**rest, "outcome": "route", **api}, 1),
    ]


async def test_under_a_policy_that_only_observes_nothing_is_said_to_be_enforced(counted: Counted) -> None:
    async with told(counted, POLICY.replace("on_failure: open", "on_failure: open\nobserve_only: true")) as house:
        await house.pipeline.judge(CHAT, chat("dosage"))
        await house.pipeline.judge(RequestHead("POST", "/v1/moderations", {}), b"{}")
        await house.pipeline.judge(CHAT, b"{")
    assert {labels["enforced"] for labels, _ in counted.of("pointsman.requests")} == {"false"}


HOSTILE = ("x" * 3000, 'a"b\\n{}', "other", "\u202e\0", "gpt-4-{number}", "default", "block/{number}", "{number}" * 40)


@pytest.mark.slow
async def test_ten_thousand_hostile_requests_make_no_new_series(counted: Counted) -> None:
    async with told(counted) as house:

        async def send(number: int) -> None:
            word = HOSTILE[number % len(HOSTILE)].replace("{number}", str(number))
            head = RequestHead("POST", f"/v1/chat/completions?{word}", {"x-pointsman-model": word, word: word})
            await house.pipeline.judge(head, chat("dosage " * (number % 2), model=word, **{word: word}))
            await house.pipeline.judge(RequestHead("POST", f"/{word}/v1/moderations", {}), b"{}")
            await house.pipeline.judge(CHAT, chat(word, messages=[{"role": word, "content": word}]))
            await house.pipeline.judge(replace(CHAT, headers={"content-encoding": word}), b"{}")

        for number in range(50):
            await send(number)
    before = counted.series
    async with told(counted) as house:
        for number in range(50, 2500):
            await send(number)
    assert counted.series == before
    assert sum(count for _, count in counted.of("pointsman.requests")) == 10_000


@given(st.lists(st.text(max_size=30), min_size=1, max_size=20))
def test_words_that_no_policy_has_are_one_series(words: list[str]) -> None:
    histograms = Histograms()
    reader = HistogramReader(histograms)
    provider = MeterProvider([reader], views=views(), shutdown_on_exit=False)
    counted = Counted(create_instruments(provider.get_meter("pointsman"), histograms), reader)
    admit(counted.instruments, policy())
    try:
        for word in words:
            # Whoever tells of requests has these from the policy; a mistake there must not open the door.
            handled: Any = Handled(
                kind="failure",
                api=f"?{word}",  # type: ignore[arg-type]
                identifier=word,
                record=None,
                policy=word,
                outcome=f"?{word}",  # type: ignore[arg-type]
                began=0,
                seconds=0.1,
                failure=f"?{word}",
            )
            measure(counted.instruments, handled)
            measure(counted.instruments, replace(handled, kind="unreadable"))
            facts = ResponseFacts(f"?{word}", f"?{word}", word, len(word), True, Usage(1, 2), 0.1, 0.2, "")
            measure_response(counted.instruments, Prices(), facts)
        assert counted.of("pointsman.exchange.failures") == [({"kind": "other"}, len(words))]
        assert [labels for labels, _ in counted.of("pointsman.requests.unreadable")] == [
            {"code": "other", "api": "other"}
        ]
        labels = {"decision": "failure", "outcome": "other", "model": "", "api": "other", "enforced": "true"}
        assert counted.of("pointsman.requests") == [(labels, 2 * len(words))]
        assert {labels["model"] for labels, _ in counted.of("pointsman.responses")} == {"other"}
    finally:
        provider.shutdown()


def test_policies_that_follow_each_other_do_not_grow_the_series_without_bound(counted: Counted) -> None:
    names = counted.instruments.names
    for number in range(300):
        text = POLICY
        for word in ("small", "med", "block", "medical", "attack", "risk"):
            text = text.replace(word, f"{word}{number}").replace(f"{word}{number}y", f"{word}y")
        loaded = policy(text)
        admit(counted.instruments, loaded)
        for decision in loaded.policy.all_decisions:
            for model in loaded.policy.upstreams:
                labels = names.of("decision", decision.name), "route", names.of("model", model.model), "", "true"
                counted.instruments.requests.add(*labels)
    series = counted.series
    assert series["pointsman.requests"] <= MOST_SERIES + 1
    assert series["pointsman.signal.observations"] <= MOST_SERIES + 1
    assert sum(count for _, count in counted.of("pointsman.requests")) == 300 * 3 * 2


@given(st.lists(st.lists(st.text(max_size=3), max_size=8), max_size=8), st.integers(0, 10))
def test_no_more_names_are_admitted_than_there_is_room_for(given_names: list[list[str]], most: int) -> None:
    names = Names(most)
    for each in given_names:
        names.admit("decision", each)
    wanted = list(dict.fromkeys(name for each in given_names for name in each))
    known = [name for name in wanted if name != "other" and names.of("decision", name) == name]
    assert len(known) <= most
    assert known == [name for name in wanted[:most] if name != "other"]
    assert all(names.of("model", name) == "other" for name in wanted)


def test_there_is_room_for_a_thousand_names() -> None:
    names = Names()
    names.admit("signal", (f"keyword/{number}" for number in range(MOST_NAMES + 5)))
    assert names.of("signal", f"keyword/{MOST_NAMES - 1}") != "other"
    assert names.of("signal", f"keyword/{MOST_NAMES}") == "other"


def test_what_alerts_look_at_is_0_before_anything_happened(counted: Counted) -> None:
    begin(counted.instruments)
    admit(counted.instruments, policy())
    points = counted.points()
    kinds = {point.attributes["kind"] for point in points["pointsman.exchange.failures"]}
    assert kinds == {*get_args(FailureKind), *PASSED}
    statuses = [dict(point.attributes) for point in points["pointsman.signal.observations"]]
    asked = {"family": "keyword", "signal": "attack", "status": "timed_out", "matched": "unknown"}
    assert asked in statuses
    assert all(point.value == 0 for each in points.values() for point in each)


def test_a_failure_is_counted_once() -> None:
    assert not COUNTED_BEFORE & PASSED
    assert set(get_args(FailureKind)) <= COUNTED_BEFORE | PASSED


def test_the_codes_that_are_known_are_those_that_errors_have() -> None:
    assert set(codes_in_the_code()) == CODES


def codes_in_the_code() -> Iterator[str]:
    """The second argument of each RequestError that is made; where it is put together, what can come out."""
    [folder] = router.__path__
    for file in [*Path(folder, "request").glob("*.py"), *Path(folder, "extproc").rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "RequestError":
                match node.args[1]:
                    case ast.Constant(value=str(code)):
                        yield code
                    case made:
                        assert ast.unparse(made) == "f'too_many_{what}'"
                        yield from ("too_many_parts", "too_many_images")
    yield "unreadable_prompt"


def response(**changes: Any) -> ResponseFacts:
    usage = Usage(1000, 500)
    facts = ResponseFacts("small", "medical", "r", 200, True, usage, 0.5, 2.5, "", api="openai.chat")
    return replace(facts, **changes)


def test_a_response_is_counted_with_tokens_times_speed_and_cost(counted: Counted) -> None:
    loaded, prices = policy(), Prices()
    admit(counted.instruments, loaded)
    prices.take(loaded)
    measure_response(counted.instruments, prices, response())
    operation = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "small"}
    assert counted.of("gen_ai.client.token.usage") == [
        ({**operation, "gen_ai.token.type": "input"}, (1, 1000)),
        ({**operation, "gen_ai.token.type": "output"}, (1, 500)),
    ]
    assert counted.of("gen_ai.client.operation.duration") == [(operation, (1, 2.5))]
    assert counted.of("gen_ai.client.operation.time_to_first_chunk") == [(operation, (1, 0.5))]
    assert counted.of("pointsman.response.tokens") == [({"model": "small"}, (1, 250))]
    [(labels, cost)] = counted.of("pointsman.response.cost")
    assert labels == {"model": "small", "decision": "medical"}
    assert cost == pytest.approx(0.007)
    labels = {"model": "small", "decision": "medical", "status": "2xx", "unread": ""}
    assert counted.of("pointsman.responses") == [(labels, 1)]


def test_a_response_that_says_nothing_costs_nothing(counted: Counted) -> None:
    loaded, prices = policy(), Prices()
    admit(counted.instruments, loaded)
    prices.take(loaded)
    silent = response(status=503, usage=Usage(), first=None, whole=1.0, unread="kind", api=None)
    measure_response(counted.instruments, prices, silent)
    measure_response(counted.instruments, prices, response(model="med", first=None, whole=None, unread="broken_off"))
    assert counted.of("pointsman.response.cost") == []
    [(labels, _)] = counted.of("gen_ai.client.operation.duration")
    assert (labels["error.type"], labels["gen_ai.operation.name"]) == ("5xx", "other")
    assert {(labels["status"], labels["unread"]) for labels, _ in counted.of("pointsman.responses")} == {
        ("5xx", "kind"),
        ("2xx", "broken_off"),
    }


def test_every_api_has_its_operation() -> None:
    assert OPERATIONS.keys() == APIS


def test_without_an_sdk_nothing_is_counted_and_nothing_fails() -> None:
    instruments = create_instruments(NoOpMeterProvider().get_meter("pointsman"))
    begin(instruments)
    admit(instruments, policy())
    measure_response(instruments, Prices(), response())
