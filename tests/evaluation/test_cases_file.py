from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.evaluation.cases import Case, CasesError, read_cases


def read(folder: Path, text: str | bytes, name: str = "cases.yaml") -> tuple[Case, ...]:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_cases(path)


def problems(folder: Path, text: str | bytes, name: str = "cases.yaml") -> list[str]:
    with pytest.raises(CasesError) as caught:
        read(folder, text, name)
    return [line.removeprefix(f"{folder}/") for line in caught.value.lines]


def test_cases_of_both_forms_are_the_same(tmp_path: Path) -> None:
    yaml = read(tmp_path, "- {name: a, text: hi, expect: {decision: x}}\n\n- {text: ho, expect: {status: 400}}\n")
    lines = read(
        tmp_path,
        '{"name": "a", "text": "hi", "expect": {"decision": "x"}}\n\n{"text": "ho", "expect": {"status": 400}}\n',
        "cases.jsonl",
    )
    assert [case.file for case in yaml] == [case.file for case in lines]
    assert [(case.name, case.line) for case in yaml] == [(case.name, case.line) for case in lines]
    assert [(case.name, case.line) for case in yaml] == [("a", 1), ("line 3", 3)]


def test_unknown_keys_are_told_with_their_line_and_the_nearest_known_one(tmp_path: Path) -> None:
    told = problems(tmp_path, "- text: hi\n  expect:\n    decision: x\n    singals: {}\n- text: a\n  expct: {}\n")
    assert told == [
        'cases.yaml:4: expect.singals: unknown key "singals"; did you mean "signals"?',
        'cases.yaml:5: expect: needs the key "expect"',
        'cases.yaml:6: expct: unknown key "expct"; did you mean "expect"?',
    ]


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("{expect: {decision: x}}", "needs a request"),
        ("{text: hi, expect: {}}", "expects nothing"),
        ("{text: hi, body: {}, expect: {decision: x}}", "body goes without text"),
        ("{text: hi, turns: [{user: a}], expect: {decision: x}}", "turns go without text and images"),
        ("{turns: [{user: a, assistant: b}], expect: {decision: x}}", "exactly one of user, assistant and system"),
        ("{turns: [{assistant: b, images: [x.png]}], expect: {decision: x}}", "images belong to a user"),
        ("{text: hi, more: {messages: []}, expect: {decision: x}}", "keys beside messages"),
        ("{text: hi, expect: {outcome: lost}}", "must be"),
        ("{text: hi, expect: {signals: {keyword/a: maybe}}}", "must be"),
        ("{text: 3, expect: {decision: x}}", "must be text"),
        ("[a]", "a case must be a mapping"),
        ("text", "a case must be a mapping"),
    ],
)
def test_a_case_that_makes_no_sense_is_told_with_its_line(tmp_path: Path, case: str, told: str) -> None:
    [line] = problems(tmp_path, f"# a comment\n- {case}\n")
    assert line.startswith("cases.yaml:2: ")
    assert told in line


def test_two_cases_of_one_name_are_told(tmp_path: Path) -> None:
    one = "- {name: a, text: hi, expect: {decision: x}}\n"
    assert problems(tmp_path, one + one) == ['cases.yaml:2: name: "a" is the case at line 1 already']


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"{", "is not JSON"),
        (b"\xff", "is not UTF-8"),
        (b"[" * 100_000, "nests too deep"),
        (b'{"text": "a", "text": "b", "expect": {"decision": "x"}}', 'key "text" twice'),
        (b'{"text": NaN}', "no JSON number"),
        (b"[1, 2]", "must be a mapping"),
        (b"null", "must be a mapping"),
    ],
)
def test_a_broken_line_is_told_and_the_others_are_read(tmp_path: Path, line: bytes, told: str) -> None:
    good = b'{"text": "hi", "expect": {"decision": "x"}}\n'
    [problem] = problems(tmp_path, good + line + b"\n" + good.replace(b"hi", b"ho"), "cases.jsonl")
    assert problem.startswith("cases.jsonl:2: ")
    assert told in problem


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("a: 1\n", "must be a list"),
        ("[]\n", "holds no case"),
        ("- [\n", "is not YAML"),
        ("- &a {text: hi, expect: *a}\n", "alias"),
    ],
)
def test_yaml_that_holds_no_cases_is_told(tmp_path: Path, text: str, told: str) -> None:
    assert told in problems(tmp_path, text)[0]


def test_a_yaml_bomb_is_refused(tmp_path: Path) -> None:
    levels = "".join(f"  - &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))
    assert problems(tmp_path, f"- - &a0 [x, x, x, x, x, x, x, x, x, x]\n{levels}")


@pytest.mark.parametrize("name", ["cases.txt", "cases"])
def test_other_files_are_refused(tmp_path: Path, name: str) -> None:
    assert "cases are .jsonl, .yaml or .yml" in problems(tmp_path, "x", name)[0]


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.jsonl"):
        with pytest.raises(CasesError):
            read_cases(path)


def test_a_file_of_errors_is_told_in_part(tmp_path: Path) -> None:
    told = problems(tmp_path, "x\n" * 50, "cases.jsonl")
    assert len(told) == 21
    assert told[-1] == "... and 30 more"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["name", "text", "images", "turns", "body", "path", "headers", "model", "more", "expect", "x"])


@given(st.lists(st.dictionaries(keys, json_values, max_size=5), min_size=1, max_size=3))
def test_whatever_stands_in_a_line_is_read_or_told(
    tmp_path_factory: pytest.TempPathFactory, cases: list[object]
) -> None:
    folder = tmp_path_factory.mktemp("cases")
    text = "\n".join(json.dumps(case) for case in cases)
    try:
        assert len(read(folder, text, "cases.jsonl")) == len(cases)
    except CasesError as error:
        assert all(line.startswith(f"{folder}/cases.jsonl:") for line in error.lines)
