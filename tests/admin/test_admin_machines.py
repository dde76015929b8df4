"""What machines get in JSON: decisions, records, the policy, parity, metrics; and what of `/explain` is read."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from told_insight import ToldInsight, admin_app

from router.admin import playing
from router.admin.insight import Filter
from router.admin.playing import AT_ONCE, ENVELOPE

FOUND = [{"record": f"r{n}", "decision": "one"} for n in range(3)]
JSON = {"content-type": "application/json"}


async def ask(insight: ToldInsight, path: str, method: str = "GET", **more: Any) -> httpx.Response:
    transport = httpx.ASGITransport(admin_app(insight=insight))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.request(method, path, **more)


@pytest.mark.parametrize("path", ["/decisions", "/api/decisions"])
async def test_decisions_are_listed_with_who_is_silent(path: str) -> None:
    insight = ToldInsight(FOUND)
    answer = await ask(insight, path, headers={"accept": "application/json"})
    assert answer.json() == {"decisions": FOUND, "silent": [{"worker": 1, "why": "it did not answer in time"}]}
    assert insight.asked == [Filter()]


async def test_every_word_of_a_filter_is_passed_on() -> None:
    insight = ToldInsight()
    query = "decision=d&outcome=route&model=m&signal=image%2Fa&failed=true&since=90m&limit=7"
    assert (await ask(insight, f"/api/decisions?{query}")).status_code == 200
    assert insight.asked == [Filter("d", "route", "m", "image/a", True, "90m", 7)]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=x", "limit=99999", "limit=-1", "limit=1e3", "failed=perhaps", "since=never", "modle=m"]
)
async def test_what_is_no_filter_is_refused(query: str) -> None:
    answer = await ask(ToldInsight(FOUND), f"/api/decisions?{query}")
    assert (answer.status_code, set(answer.json())) == (400, {"error"})


async def test_one_record_or_404() -> None:
    assert (await ask(ToldInsight(FOUND), "/api/decisions/r1")).json() == FOUND[1]
    assert (await ask(ToldInsight(FOUND), "/api/decisions/r9")).status_code == 404


async def test_a_browser_gets_the_page_and_others_json_at_the_same_path() -> None:
    page = await ask(ToldInsight(FOUND), "/policy", headers={"accept": "text/html,*/*"})
    assert page.headers["content-type"].startswith("text/html")
    insight = ToldInsight(policies={"digest": "d"}, parities={"workers": []})
    assert (await ask(insight, "/policy")).json() == {"served": [], "refused": [], "digest": "d"}
    assert (await ask(insight, "/api/parity")).json()["workers"] == []


async def test_when_nobody_answers_it_is_said() -> None:
    assert (await ask(ToldInsight(), "/api/policy")).status_code == 503
    assert (await ask(ToldInsight(), "/api/parity")).status_code == 503


async def test_metrics_are_those_of_the_workers_and_collected_once_for_all_who_ask() -> None:
    insight = ToldInsight(text=b"m 1\n", hold=asyncio.Event())
    transport = httpx.ASGITransport(admin_app(insight=insight))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        asking = [asyncio.create_task(client.get("/metrics")) for _ in range(5)]
        await insight.entered.get()
        # The others are on their way to the same.
        for _ in range(20):
            await asyncio.sleep(0)
        assert insight.hold is not None
        insight.hold.set()
        answers = await asyncio.gather(*asking)
    assert {(one.status_code, one.text) for one in answers} == {(200, "m 1\n")}
    assert answers[0].headers["content-type"].startswith("text/plain; version=0.0.4")
    assert insight.asked == ["metrics"]


async def test_a_body_is_explained_as_it_was_sent() -> None:
    insight = ToldInsight(explained={"decision": "one"})
    sent = b'{"a":  1.0, "b": "\\u00e9"}'
    answer = await ask(insight, "/explain?path=/v1/messages", "POST", content=sent, headers=JSON)
    assert (answer.status_code, answer.json()) == (200, {"decision": "one"})
    assert insight.asked == [("/v1/messages", JSON, sent)]


async def test_an_envelope_has_path_headers_and_body() -> None:
    insight = ToldInsight(explained={"decision": "one"})
    envelope = b'{"path": "/v1/messages", "headers": {"X-Team": "blue"}, "body": {"a":  1.0}}'
    await ask(insight, "/explain", "POST", content=envelope, headers={"content-type": ENVELOPE})
    packed = json.dumps({"body_base64": base64.b64encode(b"\x1f\x8b").decode()})
    await ask(insight, "/explain", "POST", content=packed, headers={"content-type": ENVELOPE})
    assert insight.asked == [
        ("/v1/messages", {"x-team": "blue"}, b'{"a":  1.0}'),
        ("/v1/chat/completions", {}, b"\x1f\x8b"),
    ]


@pytest.mark.parametrize(
    "envelope",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"body": 1, "body_base64": ""}',
        b'{"body_base64": "%%%"}',
        b'{"body": 1, "headers": {"a": 7}}',
        b'{"body": 1, "path": ""}',
        b'{"body": 1, "SECRET": 2}',
        b"[" * 100_000,
        json.dumps({"body": 1, "headers": {str(n): "" for n in range(65)}}).encode(),
    ],
)
async def test_what_is_no_envelope_is_refused_without_being_repeated(envelope: bytes) -> None:
    insight = ToldInsight()
    answer = await ask(insight, "/explain", "POST", content=envelope, headers={"content-type": ENVELOPE})
    assert (answer.status_code, insight.asked) == (422, [])
    assert "SECRET" not in answer.text


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_what_a_form_could_send_is_not_explained(kind: str) -> None:
    assert (
        await ask(ToldInsight(), "/explain", "POST", content=b"{}", headers={"content-type": kind})
    ).status_code == 415


async def test_more_than_the_policy_takes_is_refused_while_it_comes() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 100
            yield b" " * 100

    answer = await ask(ToldInsight(), "/explain", "POST", content=endless(), headers=JSON)
    assert (answer.status_code, sent <= 1200) == (413, True)
    packed = json.dumps({"body_base64": base64.b64encode(b" " * 1001).decode()})
    answer = await ask(ToldInsight(), "/explain", "POST", content=packed, headers={"content-type": ENVELOPE})
    assert answer.status_code == 413


async def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "BODY_SECONDS", 0.01)

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    assert (await ask(ToldInsight(), "/explain", "POST", content=never(), headers=JSON)).status_code == 408


@pytest.mark.parametrize(
    ("code", "status"),
    [("invalid_json", 422), ("no_llm_request", 422), ("busy", 503), ("not_ready", 503), ("deadline", 504)],
)
async def test_errors_say_whose_they_are(code: str, status: int) -> None:
    told = {"error": {"status": 400, "code": code, "message": "why", "pointer": None}}
    answer = await ask(ToldInsight(explained=told), "/explain", "POST", content=b"{}", headers=JSON)
    assert (answer.status_code, answer.json()) == (status, told)
    assert ("retry-after" in answer.headers) == (status == 503)


async def test_only_so_many_are_read_at_once() -> None:
    insight = ToldInsight(explained={}, hold=asyncio.Event())
    transport = httpx.ASGITransport(admin_app(insight=insight))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        running = [asyncio.create_task(client.post("/explain", content=b"{}", headers=JSON)) for _ in range(AT_ONCE)]
        for _ in range(AT_ONCE):
            await insight.entered.get()
        assert (await client.post("/explain", content=b"{}", headers=JSON)).status_code == 503
        assert insight.hold is not None
        insight.hold.set()
        assert {(await one).status_code for one in running} == {200}
        assert (await client.post("/explain", content=b"{}", headers=JSON)).status_code == 200
