"""axe finds nothing serious on any view, in light and in dark, wide and narrow."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from page_insight import PageInsight
from page_server import serving_page
from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

VIEWS = (
    "list",
    "empty",
    "panel",
    "record",
    "unknown",
    "policy",
    "playground",
    "explained",
    "mistake",
    "parity",
    "none",
)
SIZES = {"wide": {"width": 1440, "height": 900}, "narrow": {"width": 360, "height": 740}}


@pytest.fixture(scope="module")
def site(decided: Any) -> Iterator[tuple[str, PageInsight]]:
    insight = PageInsight(copy.deepcopy(decided.policy), copy.deepcopy(decided.parity))
    with serving_page(insight, explaining=True) as url:
        yield url, insight


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_serious(
    browser: Browser, site: tuple[str, PageInsight], decided: Any, view: str, size: str
) -> None:
    url, insight = site
    _fill(insight, copy.deepcopy(decided.records), view)
    context = browser.new_context(viewport=SIZES[size], reduced_motion="reduce")  # type: ignore[arg-type]
    try:
        page = context.new_page()
        _show(page, url, insight, view)
        assert _grave(page, "light") == {}
        assert _grave(page, "dark") == {}
    finally:
        context.close()


def _grave(page: Page, scheme: Literal["light", "dark"]) -> dict[str, list[str]]:
    page.emulate_media(color_scheme=scheme)
    found = Axe().run(page).response["violations"]
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    return {one["id"]: [node["html"][:160] for node in one["nodes"]] for one in grave}


def _fill(insight: PageInsight, records: list[dict[str, Any]], view: str) -> None:
    insight.records = []
    assert insight.shown_policy is not None
    severities = ("error", "warning", "note")
    insight.shown_policy["findings"] = [
        {"severity": each, "kind": "k", "message": "Some finding.", "line": line, "column": 1}
        for line, each in enumerate(severities, 30)
    ]
    insight.quiet = [{"worker": 1, "why": "it took too long"}] if view == "unknown" else []
    for pack in insight.shown_parity["workers"][0]["packs"]:
        pack["misses"] = ["worst 0.97 under 0.99"] if view == "parity" else []
    if view == "empty":
        return
    for record in records:
        insight.tell(record)
    unknown = copy.deepcopy(records[0])
    unknown["record"] = "unknown"
    unknown["signals"]["image/radiograph"] = {"status": "timed_out", "matched": None, "reason": "deadline", "ms": 40.0}
    unknown["captured"] = {"text": ["words"], "images": []}
    unknown["enforced"] = False
    insight.tell(unknown)
    nothing = dict.fromkeys(("model", "cluster", "selection", "parse_ms", "decide_ms", "turns", "images"))
    insight.tell(
        {**unknown, **nothing, "record": "lost", "failure": "deadline", "signals": {}, "decisions": [], "status": 503}
    )


def _show(page: Page, url: str, insight: PageInsight, view: str) -> None:
    paths = {
        "policy": "/policy",
        "parity": "/parity",
        "none": "/decisions/none",
        "unknown": "/decisions/unknown",
        **dict.fromkeys(("playground", "explained", "mistake"), "/playground"),
        **({"record": f"/decisions/{insight.records[2]['record']}"} if view == "record" else {}),
    }
    page.goto(url + paths.get(view, "/decisions"))
    if view == "panel":
        page.locator("a.row").nth(3).click()
        page.locator(".record").wait_for()
    if view == "mistake":
        page.get_by_label("Body, as JSON").fill("{")
    if view in ("explained", "mistake"):
        page.get_by_role("button", name="Explain").click()
        page.locator(".answer .record, .answer .mistake").wait_for()
    page.evaluate("for (const each of document.querySelectorAll('main details')) each.open = true")
