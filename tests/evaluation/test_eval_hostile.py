"""Cases that mean harm, or that nobody looked through: always an answer, never a traceback, and no page or terminal
does what they say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_eval_command import GOOD, LABELLED, POLICY, STRICT, lay, run
from typer.testing import Result

from router.evaluation.markdown import plain
from router.evaluation.page import MAX_PARTS
from router.evaluation.tuning import Goal, _gap, _meets

ESCAPES = "\x1b]0;owned\x07\x9b31m\u202e\x1b[2J"


def raw(folder: Path, cases: str | bytes, name: str = "cases.jsonl") -> Path:
    (folder / "policy.yaml").write_text(POLICY)
    (folder / name).write_bytes(cases.encode() if isinstance(cases, str) else cases)
    return folder


def told(result: Result) -> str:
    """All that was said, after nothing went wrong in saying it."""
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result.output


def test_names_and_labels_do_not_instruct_the_terminal(tmp_path: Path) -> None:
    case = {
        "name": f"n{ESCAPES}",
        "label": f"l{ESCAPES}",
        "text": "hi",
        "expect": {"decision": "medical", "labels": {"keyword/medical": f"x{ESCAPES}"}},
    }
    said = told(run(lay(tmp_path, [case])))
    assert not set(ESCAPES) & set("\x1b\x07\x9b\u202e") & set(said)
    assert "expected x" in said


def test_json_of_such_names_is_read_back_and_does_not_instruct_the_terminal(tmp_path: Path) -> None:
    name = f"n{ESCAPES}\ud800"
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "cases.jsonl").write_text(json.dumps({"name": name, "text": "hi", "expect": {"decision": "medical"}}))
    said = told(run(tmp_path, "--json"))
    assert not set("\x1b\x07\x9b\u202e") & set(said)
    assert json.loads(said)["failures"][0]["name"] == name


@given(st.text())
def test_markdown_names_are_one_printable_line(text: str) -> None:
    assert plain(text).isprintable()


@pytest.mark.parametrize(
    "case",
    [
        '{"name": "\\ud800", "text": "hi", "expect": {"decision": "medical"}}',
        '{"text": "hi \\ud800", "label": "\\udfff", "expect": {"decision": "medical"}}',
        '{"body": {"messages": [{"role": "user", "content": "\\ud800"}]}, "expect": {"decision": "medical"}}',
        '{"text": "hi", "more": {"user": "\\ud800"}, "expect": {"decision": "medical"}}',
    ],
)
def test_lone_surrogates_are_told_in_every_output(tmp_path: Path, case: str) -> None:
    page, figures = tmp_path / "page.html", tmp_path / "figures.md"
    said = told(run(raw(tmp_path, case), "--html", page, "--markdown", figures))
    assert "0 of 1 cases pass" in said
    assert ", expected medical" in said
    assert "Failed cases" in page.read_text(encoding="utf-8")
    assert "0 of 1 cases pass" in figures.read_text(encoding="utf-8")


@pytest.mark.parametrize("depth", [200, 600, 900, 1_200, 50_000])
def test_nesting_is_judged_or_told(tmp_path: Path, depth: int) -> None:
    case = f'{{"body": {{"messages": {"[" * depth}{"]" * depth}}}, "expect": {{"decision": "failure"}}}}'
    said = told(run(raw(tmp_path, case), "--html", tmp_path / "page.html"))
    assert "1 of 1 cases pass" in said or "nests too deep" in said


@pytest.mark.parametrize(
    "value", ["2024-01-01", "2024-01-01T10:00:00Z", "!!binary aGk=", ".nan", ".inf", "[{a: 2024-01-01}]"]
)
def test_what_json_has_not_is_told_with_its_line(tmp_path: Path, value: str) -> None:
    cases = (
        f"- {{text: hello, expect: {{decision: default}}}}\n- {{body: {{x: {value}}}, expect: {{decision: default}}}}\n"
    )
    result = run(raw(tmp_path, cases, "cases.yaml"))
    assert "cases.yaml:2: body: holds what JSON has not" in told(result)
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("[1, 2]", "a case must be a mapping"),
        ("null", "a case must be a mapping"),
        ('{"text": "a"', "is not JSON"),
        ('{"text": "a", "text": "b"}', 'key "text" twice'),
        ('{"text": NaN}', "is no JSON number"),
        ('{"text": "a", "expect": {}}', "expects nothing"),
        ('{"text": "a", "expect": {"decision": "default"}, "extra": 1}', "extra"),
        ('{"body": {"x": ' + "9" * 5_000 + '}, "expect": {"decision": "default"}}', "is not JSON"),
        ('{"body": {"x": 1e999}, "expect": {"decision": "default"}}', "holds what JSON has not"),
        ('{"text": "a", "images": ["\\u0000"], "expect": {"decision": "default"}}', "images"),
        ('{"text": "a", "images": ["' + "a" * 5_000 + '"], "expect": {"decision": "default"}}', "cannot be read"),
        ('{"text": "a", "images": ["."], "expect": {"decision": "default"}}', "no file"),
        ('{"text": "a", "images": ["/dev/zero"], "expect": {"decision": "default"}}', "no file"),
        ('{"text": "a", "path": "/nowhere", "expect": {"decision": "default"}}', "is no path"),
    ],
)
def test_a_bad_line_is_told_with_its_number_and_nothing_runs(tmp_path: Path, line: str, says: str) -> None:
    result = run(raw(tmp_path, f'{{"text": "hi", "expect": {{"decision": "default"}}}}\n{line}\n'))
    said = told(result)
    assert "cases.jsonl:2: " in said
    assert says in said
    assert "pass" not in said
    assert result.exit_code == 1


def test_a_pipe_instead_of_an_image_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    case = {"text": "a", "images": ["pipe.png"], "expect": {"decision": "default"}}
    assert "no file" in told(run(lay(tmp_path, [case])))


def test_a_file_that_hides_its_size_is_read_up_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.evaluation.requests.MAX_IMAGE_BYTES", 10)
    case = {"text": "a", "images": ["/proc/self/status"], "expect": {"decision": "default"}}
    assert "has more than 10 bytes" in told(run(lay(tmp_path, [case])))


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    result = run(raw(tmp_path, b'\xef\xbb\xbf{"text": "hi", "expect": {"decision": "default"}}\r\n'))
    assert "1 of 1 cases pass" in told(result)


def test_cases_of_another_policy_are_told_in_a_few_lines(tmp_path: Path) -> None:
    cases = [{"text": "a", "expect": {"signals": {f"keyword/other{n}": True}}} for n in range(2_000)]
    said = told(run(lay(tmp_path, cases)))
    assert len(said.splitlines()) == 21
    assert "... and more" in said


@pytest.mark.parametrize("option", ["--html", "--markdown"])
@pytest.mark.parametrize("taken", ["policy.yaml", "cases.jsonl", ".", "link.yaml"])
def test_no_report_is_written_over_what_it_reports_on(tmp_path: Path, option: str, taken: str) -> None:
    lay(tmp_path, GOOD)
    (tmp_path / "link.yaml").symlink_to("policy.yaml")
    before = (tmp_path / "cases.jsonl").read_text()
    result = run(tmp_path, option, tmp_path / taken)
    assert (result.exit_code, "error: " in told(result)) == (2, True)
    assert ((tmp_path / "policy.yaml").read_text(), (tmp_path / "cases.jsonl").read_text()) == (POLICY, before)


def test_two_reports_need_two_files(tmp_path: Path) -> None:
    page = tmp_path / "page"
    result = run(lay(tmp_path, GOOD), "--html", page, "--markdown", page)
    assert (result.exit_code, page.exists()) == (2, False)


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        "\"'><img src=x onerror=alert(1)>",
        "</pre></article></body><iframe src=//evil>",
        "</title><svg onload=alert(1)>",
        "{{ 7 * 7 }}{% raw %}",
        "<!--<style>*{display:none}",
        "&lt;script&gt;",
    ],
)
def test_a_page_shows_attacks_as_text_wherever_they_stand(tmp_path: Path, attack: str) -> None:
    plainly, page = tmp_path / "plain", tmp_path / attack.replace("/", "_")[:60]
    for folder, said in ((plainly, "harmless"), (page, attack)):
        folder.mkdir()
        case = {
            "name": said,
            "label": said,
            "text": said,
            "expect": {"decision": "medical", "model": said, "labels": {"keyword/medical": said}},
        }
        told(run(lay(folder, [case, {**LABELLED[0]}]), "--html", folder / "page.html"))
    pages = [Elements(), Elements()]
    for each, folder in zip(pages, (plainly, page), strict=True):
        each.feed((folder / "page.html").read_text())
        each.close()
    assert pages[1].tags == pages[0].tags
    assert pages[1].attributes == pages[0].attributes
    assert "49" not in (page / "page.html").read_text().partition("<h2>Failed cases</h2>")[2]


def test_a_page_shows_some_of_a_request_of_thousands_of_texts(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": f"text {n};"} for n in range(900)]
    case = {"body": {"model": "m", "messages": [{"role": "user", "content": parts}]}, "expect": {"decision": "medical"}}
    told(run(lay(tmp_path, [case]), "--html", tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text()
    assert text.count("<pre>") == MAX_PARTS
    assert f"and {900 - MAX_PARTS} more texts and pictures" in text


def test_a_page_shows_requests_of_the_policys_own_paths(tmp_path: Path) -> None:
    policy = POLICY + "apis:\n  - {path: /vendor/talk, api: openai.chat}\n"
    body = {"model": "m", "messages": [{"role": "user", "content": "zebra"}]}
    case = {"path": "/vendor/talk", "body": body, "expect": {"decision": "medical"}}
    told(run(lay(tmp_path, [case], policy), "--html", tmp_path / "page.html"))
    assert "zebra" in (tmp_path / "page.html").read_text()


def bomb(width: int, height: int) -> bytes:
    """A PNG that says it is as large as this, in a few bytes."""
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


def test_hostile_images_have_no_thumbnail(tmp_path: Path) -> None:
    hostile = {
        "bomb.png": bomb(60_000, 60_000),
        "short.png": bomb(100, 100),
        "empty.png": b"",
        "svg.png": b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
    }
    for name, data in hostile.items():
        (tmp_path / name).write_bytes(data)
    case = {"text": "look", "images": list(hostile), "expect": {"decision": "vip"}}
    told(run(lay(tmp_path, [case]), "--html", tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text()
    assert "<img" not in text
    assert text.count("not readable") == len(hostile)


numbers = st.lists(st.one_of(st.sampled_from([0.1, 0.2, 0.5]), st.floats(-1, 1)), min_size=1, max_size=12)


@given(numbers, numbers, st.sampled_from(["fpr", "recall", "precision"]), st.floats(0, 1))
def test_thresholds_are_counted_as_one_by_one(ups: list[float], downs: list[float], wanted: str, rate: float) -> None:
    ups, downs = sorted(ups), sorted([-float("inf"), *downs])
    goal = Goal("a/b", wanted, rate)  # type: ignore[arg-type]  # one of the three

    def met(threshold: float) -> bool:
        hits, alarms = sum(n >= threshold for n in ups), sum(n >= threshold for n in downs)
        return (
            hits > 0
            and {
                "fpr": alarms <= rate * len(downs) + 1e-9,
                "recall": hits >= rate * len(ups) - 1e-9,
                "precision": hits >= rate * (hits + alarms) - 1e-9,
            }[wanted]
        )

    every = sorted({*ups, *downs} - {-float("inf")})
    assert [_meets(goal, each, ups, downs) for each in every] == [met(each) for each in every]
    assert _gap(goal, ups, downs)[1] in {*every, float("inf")}


ODD_POLICIES = {
    "comments": STRICT.replace("# strict", "# strikt \u00e9\U0001f600 \u2028 \x85"),
    "crlf": STRICT.replace("\n", "\r\n"),
    "anchor": STRICT.replace("threshold: 0.9", "threshold: &t 0.9"),
    "quoted later": STRICT.replace("any: [refund the invoice]", 'any: ["refund the invoice", "threshold: 0.9"]'),
    "tagged": STRICT.replace("threshold: 0.9", "threshold: !!float 0.9"),
    "old numbers": STRICT.replace("threshold: 0.9", "threshold: 9.0e-1"),
}


@pytest.mark.parametrize("policy", ODD_POLICIES.values(), ids=ODD_POLICIES)
def test_an_edit_changes_the_number_alone_or_nothing(tmp_path: Path, policy: str) -> None:
    lay(tmp_path, LABELLED)
    path = tmp_path / "policy.yaml"
    path.write_bytes(policy.encode())
    result = run(tmp_path, "--tune", "keyword/billing=fpr:0", "--write")
    said, after = told(result), path.read_bytes().decode()
    if after == policy:
        assert "set it by hand" in said
        assert result.exit_code == 1
        return
    before, now = policy.split("\n"), after.split("\n")
    [(old, new)] = [pair for pair in zip(before, now, strict=True) if pair[0] != pair[1]]
    start = old.index("threshold: ") + len("threshold: ")
    assert new[:start] == old[:start]
    assert new.partition("}")[2] == old.partition("}")[2]
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_a_policy_that_may_not_be_written_stays_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from router.evaluation import edit

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    lay(tmp_path, LABELLED, STRICT)
    monkeypatch.setattr(edit.shutil, "copymode", full)
    result = run(tmp_path, "--tune", "keyword/billing=fpr:0", "--write")
    assert "No space left on device" in told(result)
    assert result.exit_code == 1
    assert (tmp_path / "policy.yaml").read_text() == STRICT
    assert sorted(each.name for each in tmp_path.iterdir()) == ["cases.jsonl", "policy.yaml"]


def test_an_interrupt_ends_it_and_leaves_the_policy_as_it_is(tmp_path: Path) -> None:
    cases = [
        {"text": f"refund the invoice {n} " * 200, "expect": {"signals": {"keyword/billing": True}}}
        for n in range(20_000)
    ]
    lay(tmp_path, [*cases, *LABELLED], STRICT)
    arguments = [str(tmp_path), "--tune", "keyword/billing=fpr:0", "--write", "--html", str(tmp_path / "page.html")]
    # Who runs the tests in the background of a script has them ignore interrupts, and what they start as well.
    program = (
        "import signal, sys; from router.cli.main import main; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "
        "print('up', flush=True); sys.argv[0] = 'pointsman'; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, "eval", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        time.sleep(2.0)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert "Traceback" not in errors
    assert (tmp_path / "policy.yaml").read_text() == STRICT
    assert not (tmp_path / "page.html").exists()
