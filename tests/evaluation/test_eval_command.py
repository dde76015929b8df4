from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from router.cli.main import app

POLICY = """\
version: 1
# what this is for
upstreams:
  - {model: small, cluster: local, modalities: [text, image]}
  - {model: med, cluster: medical, modalities: [text, image]}
default_model: small
trusted_headers: [x-team]
signals:
  keyword:
    medical: {any: [dosage, tablet]}
    typos: {any: [prescription], method: fuzzy}
    billing: {any: [refund the invoice], method: bm25, threshold: 0.5}   # strict
    unread: {any: [nobody asks]}
  header: {vip: {name: x-team, any: [vip]}}
decisions:
  - {name: tools, priority: 9, guard: true, when: {conversation: has_tools}, respond: {status: 418, message: No tools.}}
  - {name: medical, priority: 3, when: {any: [{keyword: medical}, {keyword: typos}]}, route: {models: [med]}}
  - {name: billing, priority: 2, when: {keyword: billing}, respond: {clarify: Which invoice?}}
  - {name: vip, priority: 1, when: {header: vip}, route: {models: [med]}}
"""

GOOD = [
    {"name": "plain", "text": "hello", "label": "a", "expect": {"decision": "default", "model": "small"}},
    {"text": "which dosage?", "label": "b", "expect": {"decision": "medical", "signals": {"keyword/medical": True}}},
    {"text": "hi", "headers": {"X-Team": "vip"}, "expect": {"decision": "vip", "signals": {"header/vip": "true"}}},
    {
        "text": "hi",
        "name": "tools",
        "more": {"tools": [{"type": "function", "function": {"name": "f"}}]},
        "expect": {"decision": "tools", "outcome": "refuse", "status": 418, "signals": {"keyword/medical": False}},
    },
    {"text": "refund the invoice", "expect": {"decision": "billing", "outcome": "clarify", "status": 200}},
    {"body": {"messages": 3}, "expect": {"decision": "failure", "outcome": "unreadable", "status": 400}},
]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["eval", *(str(a) for a in arguments)])


def lay(folder: Path, cases: list[Any], policy: str = POLICY) -> Path:
    (folder / "policy.yaml").write_text(policy)
    (folder / "cases.jsonl").write_text("\n".join(json.dumps(case) for case in cases))
    return folder


def test_a_folder_whose_cases_pass_is_fine(tmp_path: Path) -> None:
    result = run(lay(tmp_path, GOOD))
    assert result.exit_code == 0, result.output
    assert "6 of 6 cases pass" in result.stdout


def test_a_policy_and_cases_can_be_named(tmp_path: Path) -> None:
    lay(tmp_path, GOOD)
    (tmp_path / "other.yaml").write_text("- {text: hello, expect: {decision: default}}\n")
    assert "1 of 1 cases pass" in run(tmp_path / "policy.yaml", tmp_path / "other.yaml").stdout


def test_what_is_not_as_expected_is_told_and_exits_1(tmp_path: Path) -> None:
    wrong = [
        {"text": "hello", "expect": {"decision": "medical", "model": "med", "signals": {"keyword/medical": True}}},
        {"text": "hello", "expect": {"signals": {"keyword/typos": "unknown"}, "evidence": {"keyword/typos": 0}}},
        {"body": {"messages": 3}, "expect": {"decision": "default"}},
        {"text": "hello", "expect": {"profile": "none such", "labels": {"keyword/medical": "x"}}},
    ]
    result = run(lay(tmp_path, wrong))
    assert result.exit_code == 1
    for told in (
        "decision default, expected medical",
        "model small, expected med",
        "keyword/medical did not match at 0.000, expected true",
        "keyword/typos did not match at 0.000, expected unknown",
        "keyword/typos names no image, expected image 0",
        "decision failure, expected default",
        "the request cannot be read",
        "profile none, expected none such",
        "keyword/medical says no label at 0.000, expected x",
        "expected medical, decided default: 1",
        "0 of 4 cases pass",
    ):
        assert told in result.stdout, told


def test_min_lets_some_cases_fail(tmp_path: Path) -> None:
    lay(tmp_path, [*GOOD, {"text": "hello", "expect": {"decision": "vip"}}])
    assert run(tmp_path).exit_code == 1
    assert run(tmp_path, "--min", "0.8").exit_code == 0
    assert run(tmp_path, "--min", "0.9").exit_code == 1


def test_json_has_the_figures_and_none_of_the_content(tmp_path: Path) -> None:
    secret = "zebra-crossing"
    lay(tmp_path, [*GOOD, {"name": "odd", "text": f"{secret} hello", "label": "a", "expect": {"decision": "vip"}}])
    result = run(tmp_path, "--json")
    report = json.loads(result.stdout)
    assert secret not in result.stdout
    assert (report["cases"], report["passed"]["n"], report["decision_accuracy"]["n"]) == (7, 7, 7)
    assert report["by_label"]["a"]["value"] == 0.5
    assert report["confused"] == [{"expected": "vip", "got": "default", "n": 1}]
    assert [(f["name"], f["decision"]) for f in report["failures"]] == [("odd", "default")]
    medical = report["signals"]["keyword/medical"]
    assert (medical["positives"], medical["negatives"], medical["recall"]["value"]) == (1, 1, 1.0)
    assert set(report["latency_ms"]) == {"p50", "p90", "p99"}


class Pages(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_shows_failures_and_escapes_what_they_say(tmp_path: Path) -> None:
    Image.new("RGB", (600, 400), "red").save(tmp_path / "red.png")
    (tmp_path / "broken.png").write_bytes(b"no image")
    attack = "<script>alert(1)</script>"
    lay(
        tmp_path,
        [
            *GOOD,
            {
                "name": attack,
                "label": attack,
                "text": attack,
                "images": ["red.png", "broken.png"],
                "expect": {"decision": "vip"},
            },
        ],
    )
    page = tmp_path / "report.html"
    assert run(tmp_path, "--html", page).exit_code == 1
    text = page.read_text()
    read = Pages()
    read.feed(text)
    names = [tag for tag, _ in read.tags]
    assert "script" not in names
    assert "svg" in names
    [image] = [attributes for tag, attributes in read.tags if tag == "img"]
    assert (image["src"] or "").startswith("data:image/jpeg;base64,")
    assert "image 1: not readable" in text
    assert "&lt;script&gt;alert(1)" in text
    assert not [a for _, attributes in read.tags for a in attributes.values() if a and a.startswith("http")]


def test_names_that_the_policy_does_not_have_are_errors_with_their_line(tmp_path: Path) -> None:
    lay(
        tmp_path,
        [
            *GOOD[:1],
            {"text": "a", "expect": {"signals": {"keyword/medcal": True}}},
            {"text": "b", "expect": {"decision": "medcal"}},
            {"text": "c", "expect": {"signals": {"keyword/unread": False}}},
        ],
    )
    result = run(tmp_path)
    assert result.exit_code == 1
    assert 'cases.jsonl:2: expect: no decision reads "keyword/medcal"; did you mean "keyword/medical"?' in result.stderr
    assert 'cases.jsonl:3: expect.decision: no decision "medcal"; did you mean "medical"?' in result.stderr
    assert 'cases.jsonl:4: expect: no decision reads "keyword/unread"' in result.stderr


def test_an_image_that_is_not_there_is_an_error_with_its_line(tmp_path: Path) -> None:
    result = run(lay(tmp_path, [*GOOD, {"text": "a", "images": ["none.png"], "expect": {"decision": "vip"}}]))
    assert result.exit_code == 1
    assert "cases.jsonl:7: images: no file" in result.stderr


def test_a_broken_policy_is_told_before_any_case(tmp_path: Path) -> None:
    result = run(lay(tmp_path, GOOD, POLICY.replace("keyword:", "keywrd:", 1)))
    assert result.exit_code == 1
    assert "policy.yaml:9" in result.stderr or "policy.yaml:8" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["none"],
        ["policy.yaml"],
        ["policy.yaml", "none.jsonl"],
        ["empty"],
        [".", "--write"],
        [".", "--tune", "keyword"],
        [".", "--tune", "keyword/none=fpr:0.1"],
        [".", "--min", "2"],
        [".", "--concurrency", "0"],
        [".", "--html", "none/report.html"],
        [".", "--markdown", "none/report.md"],
    ],
)
def test_wrong_use_exits_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    (lay(tmp_path, GOOD) / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    assert run(*arguments).exit_code == 2


STRICT = POLICY.replace("threshold: 0.5", "threshold: 0.9")
LABELLED = [
    {"text": "please refund the invoice", "expect": {"signals": {"keyword/billing": True}}},
    {"text": "could you refund the last invoice of mine", "expect": {"signals": {"keyword/billing": True}}},
    {"text": "what a fine day", "expect": {"signals": {"keyword/billing": False}}},
    {"text": "the invoice came", "expect": {"signals": {"keyword/billing": False}}},
]


def test_markdown_has_the_figures_and_names_failed_cases(tmp_path: Path) -> None:
    lay(tmp_path, [{"name": "odd", "text": "hello there", "expect": {"signals": {"keyword/medical": True}}}])
    page = tmp_path / "report.md"
    assert run(tmp_path, "--markdown", page).exit_code == 1
    text = page.read_text()
    assert "0 of 1 cases pass" in text
    assert "- odd (" in text
    assert "hello there" not in text


def test_tune_proposes_and_does_not_write(tmp_path: Path) -> None:
    lay(tmp_path, LABELLED, STRICT)
    result = run(tmp_path, "--tune", "keyword/billing=fpr:0", "--json")
    [proposal] = json.loads(result.stdout)["proposals"]
    assert proposal["now"] == 0.9
    assert 0 < proposal["proposed"] < 0.9
    assert proposal["after"]["recall"]["value"] == 1
    assert (tmp_path / "policy.yaml").read_text() == STRICT


def test_tune_with_write_changes_one_number_and_then_the_cases_pass(tmp_path: Path) -> None:
    lay(tmp_path, LABELLED, STRICT)
    assert run(tmp_path).exit_code == 1
    result = run(tmp_path, "--tune", "keyword/billing=fpr:0", "--write")
    assert "threshold 0.9 ->" in result.stdout
    before, after = STRICT.splitlines(), (tmp_path / "policy.yaml").read_text().splitlines()
    [(old, new)] = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert old.partition("0.9")[0] == new[: len(old.partition("0.9")[0])]
    assert new.endswith("# strict")
    assert run(tmp_path).exit_code == 0


def test_a_goal_that_cannot_be_met_shows_the_figures_and_writes_nothing(tmp_path: Path) -> None:
    lay(tmp_path, LABELLED, STRICT)
    result = run(tmp_path, "--tune", "keyword/medical=fpr:0", "--tune", "keyword/billing=fpr:0", "--write")
    assert result.exit_code == 1
    assert "cases pass" in result.stdout
    assert "keyword/medical" in result.stderr
    assert (tmp_path / "policy.yaml").read_text() == STRICT


def test_many_cases_at_once_come_back_in_their_order(tmp_path: Path) -> None:
    cases = [
        {"name": f"case {n}", "text": f"number {n} {'dosage' if n % 3 else ''}", "expect": {"decision": "medical"}}
        for n in range(60)
    ]
    report = json.loads(run(lay(tmp_path, cases), "--json", "--concurrency", "16").stdout)
    assert [failure["name"] for failure in report["failures"]] == [f"case {n}" for n in range(0, 60, 3)]


LAZY = """\
version: 1
upstreams: [{model: small, cluster: local}, {model: med, cluster: medical}]
default_model: small
encoders: {text: starter}
signals:
  keyword: {medical: {any: [dosage]}}
  embedding: {medical: {texts: [Which dosage of this medicine is right?], threshold: 0.5}}
decisions:
  - {name: medical, when: {any: [{keyword: medical}, {embedding: medical}]}, route: {models: [med]}}
"""


def test_a_signal_that_could_not_change_the_outcome_is_judged_all_the_same(tmp_path: Path) -> None:
    both = {"keyword/medical": True, "embedding/medical": True}
    case = {"text": "Which dosage of this medicine is right?", "expect": {"decision": "medical", "signals": both}}
    result = run(lay(tmp_path, [case], LAZY))
    assert result.exit_code == 0, result.output


def test_a_policy_that_changed_meanwhile_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from router.cli import evaluate

    lay(tmp_path, LABELLED, STRICT)
    changed = STRICT + "# somebody was here\n"

    def slowly(*arguments: Any) -> Any:
        (tmp_path / "policy.yaml").write_text(changed)
        return report_of(*arguments)

    report_of = evaluate.report_of
    monkeypatch.setattr(evaluate, "report_of", slowly)
    result = run(tmp_path, "--tune", "keyword/billing=fpr:0", "--write")
    assert result.exit_code == 1
    assert "has changed meanwhile" in result.stderr
    assert (tmp_path / "policy.yaml").read_text() == changed
