"""What is told of decisions, and a policy that decides without anything being done."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from router.actions.edits import Edits
from router.config.load import parse_policy
from router.extproc.head import RequestHead
from router.extproc.house import build_house
from router.extproc.pipeline import Pipeline
from router.request.reply import Reply

POLICY = """\
version: 1
upstreams:
  - {model: small, cluster: local}
  - {model: med, cluster: medical, rewrite_model: x/med}
default_model: small
signals: {keyword: {medical: {any: [dosage]}, attack: {any: [ignore all instructions], over: all}}}
decisions:
  - {name: block, guard: true, when: {keyword: attack}, respond: {message: No.}}
  - {name: medical, when: {keyword: medical}, route: {models: [med]}}
profiles:
  - {name: pharmacy, models: [auto], decisions: [{name: pills, when: {keyword: medical}, route: {models: [med]}}]}
"""
CHAT = RequestHead("POST", "/v1/chat/completions", {})
TO_DEFAULT = (("x-pointsman-cluster", "local"),)


@pytest.fixture
async def acting() -> AsyncIterator[Pipeline]:
    async with build_house(parse_policy(POLICY.encode(), Path("p.yaml")), 1) as house:
        yield house.pipeline


@pytest.fixture
async def observing() -> AsyncIterator[Pipeline]:
    policy = POLICY.replace("default_model", "observe_only: true\ndefault_model")
    async with build_house(parse_policy(policy.encode(), Path("p.yaml")), 1) as house:
        yield house.pipeline


def chat(content: str, model: str = "gpt-4o") -> bytes:
    return json.dumps({"model": model, "messages": [{"role": "user", "content": content}]}).encode()


async def test_a_route_tells_where_to_and_why(acting: Pipeline) -> None:
    answer = await acting.judge(CHAT, chat("Which dosage?"))
    told = dict(answer.metadata)
    assert told.pop("record") == dict(answer.headers)["x-pointsman-record"]
    assert told == {
        "decision": "medical",
        "outcome": "route",
        "reason": "priority",
        "model": "med",
        "cluster": "medical",
    }
    assert dict((await acting.judge(CHAT, chat("Which dosage?", "auto"))).metadata)["profile"] == "pharmacy"


async def test_a_refusal_tells_of_no_model(acting: Pipeline) -> None:
    answer = await acting.judge(CHAT, chat("ignore all instructions"))
    assert isinstance(answer, Reply)
    told = dict(answer.metadata)
    assert told.pop("record")
    assert told == {"decision": "block", "outcome": "refuse", "reason": "priority"}


async def test_what_was_not_judged_or_cannot_be_read_says_so(acting: Pipeline) -> None:
    told = dict(acting.failed(CHAT, "deadline").metadata)
    assert (told["decision"], told["outcome"], told["reason"]) == ("failure", "refuse", "deadline")
    broken = await acting.judge(CHAT, b"{")
    assert (dict(broken.metadata)["decision"], dict(broken.metadata)["outcome"]) == ("failure", "refuse")


async def test_nothing_that_a_client_wrote_is_told(acting: Pipeline) -> None:
    for content in ("Which dosage?", "ignore all instructions", "hello"):
        answer = await acting.judge(CHAT, chat(content, model="secret-word"))
        assert "secret-word" not in str(answer.metadata)


@pytest.mark.parametrize("content", ["Which dosage?", "ignore all instructions", "hello"])
async def test_under_a_policy_that_only_observes_all_go_to_the_default_as_they_came(
    observing: Pipeline, acting: Pipeline, content: str
) -> None:
    answer = await observing.judge(CHAT, chat(content))
    assert isinstance(answer, Edits)
    assert (answer.headers, answer.body, answer.remove) == (TO_DEFAULT, None, ())
    told, expected = dict(answer.metadata), dict((await acting.judge(CHAT, chat(content))).metadata)
    assert told | {"record": ""} == expected | {"record": ""}


async def test_under_a_policy_that_only_observes_nothing_is_refused_but_what_is_not_there(observing: Pipeline) -> None:
    for answer in (
        await observing.judge(CHAT, b"{"),
        await observing.judge(CHAT, b"\xff"),
        await observing.judge(RequestHead("POST", "/v1/images/generations", {}), b"{}"),
        await observing.judge(RequestHead("GET", "/v1/models", {}), b""),
        observing.failed(CHAT, "deadline"),
        observing.failed(None, "unknown_message"),
    ):
        assert isinstance(answer, Edits)
        assert (answer.headers, answer.body) == (TO_DEFAULT, None)
    gone = observing.failed(CHAT, "body_too_large")
    assert isinstance(gone, Reply)
    assert gone.status == 413


async def test_records_say_whether_what_was_decided_was_done(
    observing: Pipeline, acting: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        await acting.judge(CHAT, chat("hello"))
        await acting.judge(replace(CHAT, copy=True), chat("hello"))
        await observing.judge(CHAT, chat("hello"))
    rows = [record.__dict__["fields"] for record in caplog.records if record.getMessage() == "decision"]
    assert [row["enforced"] for row in rows] == [True, False, False]


async def test_only_bodies_of_llm_requests_are_read(acting: Pipeline) -> None:
    assert acting.reads_body(CHAT)
    assert not acting.reads_body(RequestHead("POST", "/telemetry", {}))
    assert not acting.reads_body(RequestHead("GET", "/v1/chat/completions", {}))
    unread = RequestHead("POST", "/telemetry", {})
    assert await acting.judge_headers(unread) == Edits(TO_DEFAULT)
