"""Names, labels and records that were made to break a page: nothing of them becomes markup, all is shown."""

from __future__ import annotations

import copy
from typing import Any

import httpx
import pytest
from page_html import Page
from page_insight import PageInsight
from page_server import page_app

MARKUP = "<script>alert(1)</script>"
QUOTES = "\"onmouseover='alert(1)' x=\""
TEMPLATE = "{{ 77617 * 33096 }}{% raw %}"
EVALUATED = str(77617 * 33096)
"""Long, so that no count and no duration of a record is the same."""
LINK = "javascript:alert(1)"
REVERSED = "\u202egnp.exe\u2066\u200b\x07"
LONG = "w" * 10_000
HOSTILE = [MARKUP, QUOTES, TEMPLATE, LINK, REVERSED, LONG, "&lt;b&gt;", "]]>", "\ud800", "-->", "#&amp;"]


async def page(insight: PageInsight, path: str, status: int = 200) -> tuple[Page, str]:
    transport = httpx.ASGITransport(page_app(insight), raise_app_exceptions=True)
    headers = {"accept": "text/html"}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
        response = await client.get(path)
    assert response.status_code == status
    found = Page(response.text)
    assert found.problems == []
    return found, response.text


def renamed(value: Any, old: str, new: str) -> Any:
    """The same with one word replaced, in keys too."""
    if isinstance(value, dict):
        return {renamed(key, old, new): renamed(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [renamed(each, old, new) for each in value]
    return new if value == old else value


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda text: ascii(text[:12]))
@pytest.mark.parametrize(
    "word", ["identity-document", "vault-vlm", "image/identity_document", "an identity card", "openai.chat", "first"]
)
async def test_a_hostile_name_stays_text_everywhere(insight: PageInsight, hostile: str, word: str) -> None:
    insight.records = renamed(insight.records, word, hostile)
    insight.shown_policy = renamed(insight.shown_policy, word, hostile)
    for path in ("/decisions", "/page/rows", f"/decisions/{insight.records[0]['record']}", "/policy"):
        found, text = await page(insight, path)
        assert found.tags.count("script") <= 3
        assert "<script>alert" not in text
        assert "\u202e" not in text
        assert EVALUATED not in text


async def test_what_steers_a_line_is_shown_as_its_code_point(insight: PageInsight) -> None:
    insight.records = renamed(insight.records, "identity-document", REVERSED)
    _, text = await page(insight, "/page/rows")
    assert "‹U+202E›gnp.exe‹U+2066›‹U+200B›‹U+0007›" in text


async def test_hostile_findings_and_policy_text_stay_text(insight: PageInsight) -> None:
    assert insight.shown_policy is not None
    insight.shown_policy["document"] = "\n".join(HOSTILE)
    insight.shown_policy["path"] = MARKUP
    insight.shown_policy["findings"] = [
        {"severity": MARKUP, "kind": MARKUP, "message": MARKUP + QUOTES, "line": 1, "column": 1}
    ]
    found, text = await page(insight, "/policy")
    assert "<script>alert" not in text
    assert MARKUP in found.text()


async def test_hostile_packs_stay_text(insight: PageInsight) -> None:
    tower = {"kind": MARKUP, "precision": MARKUP, "measure": "cosine", "gate": 0.9, "worst": 0.99, "mean": None}
    pack = {"reference": MARKUP, "name": QUOTES, "digest": MARKUP, "towers": [tower], "misses": [MARKUP]}
    insight.shown_parity = {"workers": [{"worker": 0, "interval": 600, "packs": [{**pack, "last_check": MARKUP}]}]}
    _, text = await page(insight, "/parity")
    assert "<script>alert" not in text


async def test_a_tree_of_500_nodes_is_shown_whole(insight: PageInsight) -> None:
    leaf = {"kind": "signal", "state": "false", "confidence": 0.5, "signal": "image/radiograph"}
    wide = {"kind": "any", "state": "false", "confidence": 0.5, "children": [copy.deepcopy(leaf) for _ in range(400)]}
    deep: dict[str, Any] = wide
    for _ in range(100):
        deep = {"kind": "not", "state": "true", "confidence": 0.5, "children": [deep]}
    insight.records[0]["decisions"][0]["tree"] = deep
    found, text = await page(insight, f"/decisions/{insight.records[0]['record']}")
    assert text.count('class="node') >= 501
    assert found.text().count("image/radiograph") >= 400


async def test_27_signals_and_40_images_are_shown_whole(insight: PageInsight) -> None:
    record = insight.records[0]
    signals = {
        f"image/concept_{number}": {
            "status": "observed",
            "matched": number % 2 == 0,
            "score": number / 27,
            "evidence": [
                {"pointer": f"/messages/0/content/{image}", "label": "a thing", "score": number / 27, "image": image}
                for image in range(number % 3, 40, 3)
            ],
            "evidence_left_out": 3,
            "ms": float(number),
        }
        for number in range(27)
    }
    record["signals"], record["images"], record["skipped"] = signals, 42, [f"keyword/k{n}" for n in range(60)]
    found, _ = await page(insight, f"/decisions/{record['record']}")
    said = found.text()
    assert all(f"image/concept_{number}" in said for number in range(27))
    assert "Image 40" in said
    assert "No evidence names images 41–42." in said
    listed, _ = await page(insight, "/page/rows")
    assert "+10" in listed.text()


async def test_a_record_that_says_hardly_anything_is_shown(insight: PageInsight) -> None:
    insight.records = [{"record": "x", "decision": "d", "outcome": "route", "model": None, "signals": {}, "at": "soon"}]
    await page(insight, "/page/rows")
    await page(insight, "/decisions/x")
