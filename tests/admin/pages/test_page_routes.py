"""Every view of the page, over decisions that were really made: what it says, and that it is sound HTML."""

from __future__ import annotations

import asyncio
import copy
import json
import re
from typing import Any

import httpx
import pytest
from page_html import Page
from page_insight import PageInsight
from page_server import page_app

from router.admin.pages.asking import AT_ONCE
from router.admin.pages.rendering import STATIC

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
VIEWS = ("/", "/decisions", "/policy", "/graph", "/playground", "/parity")


def client(insight: PageInsight) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(page_app(insight), raise_app_exceptions=True)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=BROWSER)


async def get(insight: PageInsight, path: str, status: int = 200) -> Page:
    async with client(insight) as asking:
        response = await asking.get(path)
    assert response.status_code == status
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    page = Page(response.text)
    assert page.problems == []
    return page


@pytest.mark.parametrize("path", VIEWS)
async def test_each_view_is_sound(insight: PageInsight, path: str) -> None:
    page = await get(insight, path)
    assert page.tags.count("h1") == 1
    assert "main" in page.ids


async def test_each_record_of_the_showcase_is_sound_and_says_why(insight: PageInsight) -> None:
    said = [(await get(insight, f"/decisions/{record['record']}")).text() for record in insight.records]
    assert "Sent to vault-vlm by guard identity-document because image/identity_document scored" in said[0]
    assert "over 0.50 in image 2" in said[0]
    assert "Refused by guard block-attack because jailbreak/attack scored >0.99 over 0.70" in said[4]
    assert "Sent to qwen3-8b: no decision matched, and this is the default model" in said[3]
    assert "Answered with a question by image-off-topic because" in said[5]
    # Which score it is, is the pack's business.
    assert re.search(r"and image/radiograph scored (<0\.01|0\.[0-4]\d) under 0\.50", said[5])


async def test_the_list_shows_text_and_image_evidence_alike(insight: PageInsight) -> None:
    said = (await get(insight, "/decisions")).text()
    assert "9 decisions" in said
    assert re.search(r"image/identity_document (>0\.99|0\.[5-9]\d) #2", said)
    assert "jailbreak/attack >0.99" in said


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("", 9),
        ("decision=identity-document", 3),
        ("outcome=refuse", 1),
        ("model=med-vlm", 2),
        ("signal=image/radiograph", 1),
        ("failed=1", 0),
        ("outcome=<script>", 9),
    ],
)
async def test_rows_are_filtered(insight: PageInsight, query: str, rows: int) -> None:
    page = await get(insight, f"/page/rows?{query}")
    assert page.tags.count("li") == rows
    assert (await get(insight, f"/decisions?{query}")).tags.count("time") == rows


async def test_a_filter_reaches_the_insight_whole(insight: PageInsight) -> None:
    asked = []
    plain = insight.decisions

    async def decisions(wanted: Any) -> list[dict[str, Any]]:
        asked.append(wanted)
        return await plain(wanted)

    insight.decisions = decisions  # type: ignore[method-assign]
    await get(insight, "/decisions?decision=d&outcome=route&model=m&signal=image/x&failed=1&since=15m")
    [wanted] = asked
    assert (wanted.decision, wanted.outcome, wanted.model) == ("d", "route", "m")
    assert (wanted.signal, wanted.failed, wanted.since) == ("image/x", True, "15m")


async def test_a_signal_without_an_answer_comes_first(insight: PageInsight) -> None:
    record = copy.deepcopy(insight.records[0])
    record["signals"]["image/radiograph"] = {"status": "timed_out", "matched": None, "reason": "deadline", "ms": 40.0}
    record["record"] = "late"
    insight.tell(record)
    page = await get(insight, "/page/rows?failed=1")
    assert page.tags.count("li") == 1
    assert "image/radiograph timed out" in page.text()
    said = (await get(insight, "/decisions/late")).text()
    assert "timed out" in said
    assert "deadline" in said


async def test_a_request_that_could_not_be_judged_is_shown(insight: PageInsight) -> None:
    nothing = dict.fromkeys(
        ("requested_model", "model", "cluster", "profile", "selection", "turns", "images", "stream", "parse_ms")
    )
    insight.tell(
        {
            **nothing,
            "record": "lost",
            "policy": insight.records[0]["policy"],
            "api": "openai.chat",
            "decision": "failure",
            "outcome": "refuse",
            "enforced": True,
            "reason": "deadline",
            "failure": "deadline",
            "signals": {},
            "skipped": [],
            "decide_ms": None,
            "duration_ms": 2000.0,
            "body_bytes": 12,
            "decisions": [],
            "status": 503,
        }
    )
    assert "failed not judged deadline" in (await get(insight, "/page/rows")).text()
    assert "Refused without being judged: deadline." in (await get(insight, "/decisions/lost")).text()


async def test_no_decision_yet_says_what_to_do(insight: PageInsight) -> None:
    insight.records.clear()
    assert "No decision yet Send an LLM request through Envoy" in (await get(insight, "/")).text()
    assert "No decision matches these filters" in (await get(insight, "/decisions?outcome=refuse")).text()


async def test_a_record_that_nobody_knows_is_told_of(insight: PageInsight) -> None:
    assert "No record of that name" in (await get(insight, "/decisions/none", 404)).text()
    assert "No record of that name" in (await get(insight, "/page/record/none", 404)).text()


async def test_workers_that_are_silent_are_named(insight: PageInsight) -> None:
    insight.quiet = [{"worker": 1, "why": "it took too long"}]
    assert "1 worker did not answer" in (await get(insight, "/decisions")).text()
    assert "worker 1 (it took too long)" in (await get(insight, "/policy")).text()


async def test_nobody_answering_is_no_error_of_the_page(insight: PageInsight) -> None:
    insight.shown_policy = None
    assert "No worker answers" in (await get(insight, "/policy", 503)).text()
    await get(insight, "/decisions")
    said = (await get(insight, f"/decisions/{insight.records[0]['record']}")).text()
    assert "thresholds are not drawn" in said
    insight.shown_parity = {"workers": []}
    assert "Nobody answers" in (await get(insight, "/parity")).text()


async def test_thresholds_of_another_policy_are_not_drawn(insight: PageInsight) -> None:
    insight.records[0]["policy"] = "0" * 64
    said = (await get(insight, f"/decisions/{insight.records[0]['record']}")).text()
    assert "Decided by another policy than the one that serves now" in said
    assert "over 0.50" not in said


async def test_the_policy_has_its_graph_its_text_and_where_findings_stand(insight: PageInsight) -> None:
    assert insight.shown_policy is not None
    insight.shown_policy["findings"] = [
        {"severity": "warning", "kind": "dead", "message": "never read", "line": 36, "column": 3}
    ]
    page = await get(insight, "/policy")
    assert "graph" in page.ids
    assert "L36" in page.ids
    said = page.text()
    assert "warning never read line 36:3" in said
    assert "identity-document guard, priority 300" in said
    assert "any of image/identity_document keyword/identity_words" in said
    assert "3 hits" in said


async def test_captured_content_is_shown_where_there_is_any(insight: PageInsight) -> None:
    record = insight.records[0]
    record["captured"] = {
        "text": ["What was <b>said</b>"],
        "images": [
            {"index": 1, "media_type": "image/png", "data_base64": "iVBORw0KGgo="},
            {"index": 0, "media_type": "image/svg+xml", "data_base64": "PHN2Zz4="},
        ],
    }
    async with client(insight) as asking:
        text = (await asking.get(f"/decisions/{record['record']}")).text
    page = Page(text)
    assert page.problems == []
    assert page.tags.count("img") == 1
    assert "What was <b>said</b>" in page.text()
    assert "PHN2Zz4=" not in text


async def test_machines_get_json_at_the_same_paths(insight: PageInsight) -> None:
    async with client(insight) as asking:
        for path in ("/decisions", f"/decisions/{insight.records[0]['record']}", "/policy", "/parity"):
            response = await asking.get(path, headers={"accept": "application/json"})
            assert response.headers["content-type"] == "application/json", path
            page = await asking.get(path)
            assert page.headers["vary"] == "accept"


async def test_every_asset_that_a_page_names_is_there(insight: PageInsight) -> None:
    async with client(insight) as asking:
        for file in STATIC.iterdir():
            response = await asking.get(f"/page/assets/{file.name}")
            assert (response.status_code, response.content) == (200, file.read_bytes())
            assert response.headers["content-security-policy"].startswith("default-src 'none'")
        assert (await asking.get("/page/assets/../routes.py")).status_code == 404
        assert (await asking.get("/page/assets/%2e%2e/routes.py")).status_code == 404


class TestExplaining:
    async def post(self, insight: PageInsight, form: Any, kind: str = "application/json") -> httpx.Response:
        async with client(insight) as asking:
            content = form if isinstance(form, bytes) else json.dumps(form).encode()
            return await asking.post("/playground/explain", content=content, headers={"content-type": kind})

    async def test_an_answer_is_a_record_without_being_one(
        self, insight: PageInsight, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def explain(path: str, headers: dict[str, str], body: bytes) -> dict[str, Any]:
            assert (path, headers["x-team"], body) == ("/v1/chat/completions", "blue", b'{"a": 1}')
            would = {"status": None, "headers": [["x-pointsman-model", "vault-vlm"]], "body_changed": True}
            return {**insight.records[0], "would": would}

        monkeypatch.setattr(insight, "explain", explain)
        form = {"path": "/v1/chat/completions", "headers": {"X-Team": "blue"}, "body": '{"a": 1}'}
        response = await self.post(insight, form)
        page = Page(response.text)
        assert page.problems == []
        assert "html" not in page.tags
        assert "explained only: nothing was sent" in page.text()
        assert "x-pointsman-model vault-vlm" in page.text()

    @pytest.mark.parametrize(
        ("status", "told"),
        [(400, "The client would get 400"), (0, "It would pass without being judged"), (503, "cannot be explained")],
    )
    async def test_an_error_shows_its_pointer(
        self, insight: PageInsight, monkeypatch: pytest.MonkeyPatch, status: int, told: str
    ) -> None:
        async def explain(*_: Any) -> dict[str, Any]:
            return {"error": {"status": status, "code": "bad", "message": "is no text", "pointer": "/messages/0"}}

        monkeypatch.setattr(insight, "explain", explain)
        page = Page((await self.post(insight, {"path": "/v1/x", "headers": {}, "body": "{}"})).text)
        assert page.problems == []
        assert told in page.text()
        assert "/messages/0" in page.text()

    @pytest.mark.parametrize(
        "form", [b"", b"[]", b"\xff", {"path": "/v1/x"}, {"path": "", "headers": {}, "body": ""}, {"path": 1}]
    )
    async def test_a_form_that_is_none_is_refused_and_not_repeated(self, insight: PageInsight, form: Any) -> None:
        response = await self.post(insight, form)
        assert response.status_code == 422
        assert "error" in response.json()

    async def test_other_pages_cannot_ask(self, insight: PageInsight) -> None:
        form = {"path": "/v1/x", "headers": {}, "body": "{}"}
        assert (await self.post(insight, form, "text/plain")).status_code == 415

    async def test_no_more_than_a_few_are_in_hand(self, insight: PageInsight, monkeypatch: pytest.MonkeyPatch) -> None:
        waiting: asyncio.Queue[int] = asyncio.Queue()
        go_on = asyncio.Event()

        async def explain(*_: Any) -> dict[str, Any]:
            waiting.put_nowait(1)
            await go_on.wait()
            return {"error": {"status": 400, "code": "c", "message": "m", "pointer": None}}

        monkeypatch.setattr(insight, "explain", explain)
        form = {"path": "/v1/x", "headers": {}, "body": "{}"}
        async with client(insight) as asking, asyncio.timeout(20):
            asked = [asyncio.create_task(asking.post("/playground/explain", json=form)) for _ in range(AT_ONCE)]
            for _ in range(AT_ONCE):
                await waiting.get()
            assert (await asking.post("/playground/explain", json=form)).status_code == 503
            go_on.set()
            assert {(await each).status_code for each in asked} == {200}
            assert (await asking.post("/playground/explain", json=form)).status_code == 200
