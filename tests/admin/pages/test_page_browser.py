"""The page in a real browser: clicks through every view, the keyboard alone, what arrives live, a dropped image."""

from __future__ import annotations

import base64
import copy
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from page_insight import PageInsight
from page_server import serving_page
from playwright.sync_api import Browser, Page, expect

from models.rendering import BUNDLED_FONT, FIRST_UNSEEN_SEED, render

pytestmark = pytest.mark.slow

NARROW, WIDE = {"width": 360, "height": 740}, {"width": 1440, "height": 900}
Open = Callable[..., Page]

DROP = """([data, name]) => {
  const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name, { type: "image/jpeg" }));
  const drop = document.getElementById("drop");
  for (const kind of ["dragenter", "dragover", "drop"])
    drop.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: transfer }));
}"""


@dataclass
class Site:
    """A running page and what it shows."""

    url: str
    insight: PageInsight


@pytest.fixture(scope="module")
def running(decided: Any) -> Iterator[Site]:
    insight = PageInsight(decided.policy, decided.parity)
    with serving_page(insight, explaining=True) as url:
        yield Site(url, insight)


@pytest.fixture
def site(running: Site, decided: Any) -> Site:
    """The same page for every test, with nothing but the showcase."""
    running.insight.records = []
    running.insight.asked = []
    running.insight.shown_policy = copy.deepcopy(decided.policy)
    for age, record in zip(range(90, 0, -10), copy.deepcopy(decided.records), strict=True):
        running.insight.tell(record, age)
    return running


@pytest.fixture
def open_page(browser: Browser, site: Site) -> Iterator[Open]:
    """`open_page("/policy")`: a page. At the end nothing may have been logged as an error, no policy broken."""
    contexts, wrong = [], []

    def opened(path: str, **options: Any) -> Page:
        context = browser.new_context(**{"viewport": WIDE, "reduced_motion": "reduce", **options})
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda told: wrong.append(told.text) if told.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: None if _is_ours(asked.url, site.url) else wrong.append(asked.url))
        page.goto(site.url + path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


def _is_ours(url: str, base: str) -> bool:
    return url.startswith((base, "data:", "blob:"))


def rows(page: Page) -> Any:
    return page.locator("#rows > li:not([hidden])")


def passport() -> str:
    buffer = io.BytesIO()
    render("passport", FIRST_UNSEEN_SEED + 1, fonts=BUNDLED_FONT).save(buffer, "JPEG", quality=88)
    return base64.b64encode(buffer.getvalue()).decode()


def test_clicks_lead_through_every_view(open_page: Open) -> None:
    page = open_page("/", viewport={"width": 1000, "height": 800})
    expect(rows(page)).to_have_count(9)
    page.get_by_role("link", name="block-attack").click()
    expect(page.get_by_role("heading", name="Refused by guard block-attack")).to_be_visible()
    page.get_by_role("link", name="Policy").click()
    expect(page.get_by_role("heading", name="policy.yaml")).to_be_visible()
    page.get_by_role("link", name="line 66").click()
    expect(page.locator("#L66:target")).to_contain_text("identity-document")
    page.get_by_role("link", name="identity-document").first.click()
    expect(rows(page)).to_have_count(3)
    page.get_by_role("link", name="Playground").click()
    expect(page.get_by_role("button", name="Explain")).to_be_visible()
    page.get_by_role("link", name="Parity").click()
    expect(page.get_by_text("Every pack holds")).to_be_visible()
    page.get_by_role("link", name="Pointsman").click()
    expect(rows(page)).to_have_count(9)


def test_filters_narrow_the_list_and_stay_in_the_address(open_page: Open) -> None:
    page = open_page("/decisions")
    page.get_by_label("Outcome").select_option("refuse")
    expect(rows(page)).to_have_count(1)
    assert page.url.endswith("/decisions?outcome=refuse")
    page.reload()
    expect(page.get_by_label("Outcome")).to_have_value("refuse")
    page.locator("select[name=decision]").select_option("clinical-text")
    expect(page.get_by_text("No decision matches these filters")).to_be_visible()
    page.get_by_role("link", name="Clear").click()
    expect(rows(page)).to_have_count(9)
    page.get_by_label("not fully answered").check()
    expect(page.get_by_text("No decision matches these filters")).to_be_visible()


def test_what_arrives_takes_neither_focus_nor_selection_nor_place(open_page: Open, site: Site) -> None:
    page = open_page("/decisions")
    third = rows(page).nth(2).locator("a")
    third.focus()
    page.evaluate("window.kept = document.activeElement; getSelection().selectAllChildren(kept.querySelector('.what'))")
    selected = page.evaluate("getSelection().toString()")
    site.insight.tell({**site.insight.records[0], "record": "01990000-0000-7000-8000-000000000001"})
    expect(rows(page)).to_have_count(10)
    assert page.evaluate("document.activeElement === window.kept && window.kept.isConnected")
    assert page.evaluate("getSelection().toString()") == selected
    assert page.evaluate("[...document.querySelectorAll('a.row')].indexOf(window.kept)") == 3


def test_a_paused_list_waits_and_then_catches_up(open_page: Open, site: Site) -> None:
    page = open_page("/decisions")
    expect(page.get_by_role("status")).to_have_text("Live")
    page.keyboard.press("p")
    expect(page.get_by_role("status")).to_have_text("Paused")
    site.insight.tell({**site.insight.records[0], "record": "01990000-0000-7000-8000-000000000002"})
    with page.expect_response("**/page/rows*"):
        page.get_by_role("button", name="Go on").click()
    expect(rows(page)).to_have_count(10)
    expect(page.get_by_role("status")).to_have_text("Live")


def test_an_empty_list_fills_by_itself(open_page: Open, site: Site) -> None:
    records, site.insight.records = site.insight.records, []
    page = open_page("/")
    expect(page.get_by_text("No decision yet")).to_be_visible()
    site.insight.records = records
    expect(rows(page)).to_have_count(9)


def test_the_keyboard_alone_finds_opens_reads_and_closes(open_page: Open) -> None:
    page = open_page("/decisions")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("/")
    expect(page.get_by_label("Find in the list")).to_be_focused()
    page.keyboard.type("identity_document")
    expect(rows(page)).to_have_count(3)
    expect(page.locator("#told")).to_have_text("3 of 9 decisions")
    page.keyboard.press("ArrowDown")
    expect(rows(page).first.locator("a")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name="Record")
    expect(panel.get_by_role("heading", name="Sent to vault-vlm")).to_be_visible()
    expect(rows(page).nth(1).locator("a")).to_have_attribute("aria-current", "true")
    page.keyboard.press("ArrowDown")
    expect(rows(page).nth(2).locator("a")).to_have_attribute("aria-current", "true")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(rows(page).nth(2).locator("a")).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    expect(rows(page)).to_have_count(9)


def test_a_record_is_found_by_its_identifier(open_page: Open, site: Site) -> None:
    page = open_page("/decisions")
    identifier = site.insight.records[4]["record"]
    page.get_by_label("Find in the list").fill(identifier)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/decisions/{identifier}")
    expect(page.get_by_role("heading", name="Refused by guard block-attack")).to_be_visible()


def test_a_record_is_copied_as_json(open_page: Open, site: Site) -> None:
    import json

    identifier = site.insight.records[0]["record"]
    page = open_page(f"/decisions/{identifier}", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_text("As JSON").click()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert json.loads(page.evaluate("navigator.clipboard.readText()"))["record"] == identifier


def test_a_box_of_the_graph_lights_its_paths(open_page: Open) -> None:
    page = open_page("/policy")

    def lit() -> list[str]:
        return sorted(page.locator(".g-box.lit .g-title").all_text_contents())

    page.locator(".g-box", has_text="image-off-topic").hover()
    expect(page.locator(".graph.dim")).to_have_count(1)
    assert lit() == [
        "ask back",
        "conversation/has_images",
        "embedding/clinical_question",
        "image-off-topic",
        "image/radiograph",
    ]
    page.get_by_role("heading", name="Findings").hover()
    expect(page.locator(".graph.dim")).to_have_count(0)
    page.locator(".g-box", has_text="jailbreak/attack").focus()
    assert lit() == ["block-attack", "jailbreak/attack", "refuse"]
    page.keyboard.press("ArrowDown")
    assert "keyword/identity_words" in lit()


class TestPlayground:
    def test_a_dropped_image_is_explained(self, open_page: Open, site: Site) -> None:
        page = open_page("/playground")
        page.evaluate(DROP, [passport(), "page.jpg"])
        expect(page.locator("#dropped")).to_contain_text("page.jpg")
        expect(page.locator("#size")).to_contain_text("1 image")
        page.get_by_role("button", name="Explain").click()
        expect(page.get_by_role("heading", name="Sent to vault-vlm by guard identity-document")).to_be_visible()
        expect(page.get_by_alt_text("Image 1 of the request")).to_be_visible()
        shown = page.get_by_alt_text("Image 1 of the request")
        assert shown.evaluate("image => image.complete && image.naturalWidth > 0")
        [(path, headers, body)] = site.insight.asked
        assert (path, headers["content-type"]) == ("/v1/chat/completions", "application/json")
        assert passport().encode() in body
        assert "base64" not in page.get_by_label("Body, as JSON").input_value()

    @pytest.mark.parametrize(
        ("sample", "told"),
        [
            ("OpenAI chat", "Sent to vault-vlm"),
            ("OpenAI Responses", "Sent to vault-vlm"),
            ("Anthropic messages", "Refused by guard block-attack"),
        ],
    )
    def test_each_api_takes_images_as_it_writes_them(self, open_page: Open, sample: str, told: str) -> None:
        page = open_page("/playground")
        page.get_by_role("button", name=sample).click()
        page.evaluate(DROP, [passport(), "page.jpg"])
        page.get_by_role("button", name="Remove page.jpg").wait_for()
        page.get_by_role("button", name="Explain").click()
        expect(page.get_by_role("heading", name=told)).to_be_visible()
        expect(page.locator(".facts").filter(has_text="images")).to_contain_text("1")

    @pytest.mark.parametrize("sample", ["Completions", "Embeddings"])
    def test_an_api_without_images_says_so(self, open_page: Open, site: Site, sample: str) -> None:
        page = open_page("/playground")
        page.get_by_role("button", name=sample).click()
        page.evaluate(DROP, [passport(), "page.jpg"])
        page.get_by_role("button", name="Remove page.jpg").wait_for()
        page.get_by_role("button", name="Explain").click()
        expect(page.get_by_role("alert")).to_contain_text("no place for images")
        page.get_by_role("button", name="Remove page.jpg").click()
        page.keyboard.press("Control+Enter")
        expect(page.locator(".answer .record")).to_be_visible()
        expect(page.get_by_role("alert")).to_be_hidden()

    def test_a_mistake_is_shown_with_its_pointer(self, open_page: Open) -> None:
        page = open_page("/playground")
        page.get_by_label("Body, as JSON").fill('{"model": "auto", "messages": [{"role": "user", "content": 7}]}')
        page.keyboard.press("Control+Enter")
        expect(page.get_by_role("heading", name="The client would get 400")).to_be_visible()
        expect(page.locator(".mistake")).to_contain_text("/messages/0/content")
        page.get_by_text("Headers", exact=True).click()
        page.get_by_label("One a line").fill("no header")
        page.get_by_role("button", name="Explain").click()
        expect(page.get_by_role("alert")).to_contain_text("A header is written as name: value")

    def test_nothing_is_kept_of_what_was_tried(self, open_page: Open) -> None:
        page = open_page("/playground")
        page.get_by_role("button", name="Explain").click()
        expect(page.locator(".answer .record")).to_be_visible()
        assert page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]


class TestLook:
    PATHS = ("/", "/policy", "/playground", "/parity")

    @pytest.mark.parametrize("path", [*PATHS, "record"])
    def test_a_phone_shows_it_without_scrolling_sideways(self, open_page: Open, site: Site, path: str) -> None:
        if path == "record":
            path = f"/decisions/{site.insight.records[0]['record']}"
        page = open_page(path, viewport=NARROW)
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        cut = page.evaluate(
            """() => [...document.querySelectorAll("main *")].filter((one) => {
                const box = one.getBoundingClientRect();
                if (!box.width || one.closest("svg, .graphbox, .source, .tree, pre, .vh, [hidden]")) return false;
                return box.right > 361 || box.left < -1;
            }).map((one) => one.outerHTML.slice(0, 80))"""
        )
        assert cut == []

    def test_long_names_do_not_widen_it(self, open_page: Open, site: Site) -> None:
        record = {**site.insight.records[0], "record": "long", "decision": "d" * 4000, "model": "m" * 4000}
        record["signals"] = {
            f"image/{'s' * 4000}": {**record["signals"]["image/identity_document"], "label": "l" * 9000}
        }
        site.insight.tell(record)
        for path in ("/decisions", "/decisions/long"):
            page = open_page(path, viewport=NARROW)
            assert page.evaluate("document.documentElement.scrollWidth") == 360

    def test_colours_follow_the_system_and_the_choice_and_stay(self, open_page: Open) -> None:
        page = open_page("/", color_scheme="dark")
        colour = "getComputedStyle(document.documentElement).backgroundColor"
        dark = page.evaluate(colour)
        button = page.locator("#theme")
        expect(button).to_have_accessible_name("Colours: as the system has them")
        button.click()
        expect(button).to_have_accessible_name("Colours: light")
        light = page.evaluate(colour)
        assert light != dark
        page.goto(page.url + "policy")
        assert page.evaluate(colour) == light
        page.locator("#theme").click()
        assert page.evaluate(colour) == dark
        page.locator("#theme").click()
        assert page.evaluate("localStorage.getItem('pointsman-theme')") == "auto"

    def test_without_scripts_it_can_be_read_and_filtered(self, open_page: Open) -> None:
        page = open_page("/decisions", java_script_enabled=False)
        page.get_by_label("Outcome").select_option("refuse")
        page.get_by_role("button", name="Apply").click()
        expect(rows(page)).to_have_count(1)
        page.get_by_role("link", name="block-attack").click()
        expect(page.get_by_role("heading", name="Refused by guard block-attack")).to_be_visible()
