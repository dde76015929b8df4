from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from router.evaluation.cases import Case, CaseFile
from router.evaluation.markdown import plain, render_markdown, table
from router.evaluation.report import report_of
from router.evaluation.run import Came
from router.signals.base import observed

PATH = Path("cases.jsonl")


def came(name: str, expected: bool, score: float, label: str = "law") -> Came:
    expect = {"signals": {"image/a": expected}, "labels": {"domain/topic": "law"}}
    file = CaseFile.model_validate({"text": "what nobody may read", "expect": expect})
    seen = {"image/a": observed(score >= 0.5, score), "domain/topic": observed(True, 0.9, label=label)}
    return Came(Case(name, PATH, 1, PATH.parent, file), None, None, seen, 0.01)


RUN = [came("one", True, 0.9), came("two", True, 0.2), came("three", False, 0.1, "math"), came("four", False, 0.8)]


def test_the_figures_stand_in_tables_with_their_intervals() -> None:
    text = render_markdown(report_of("p.yaml", "d" * 64, 2.0, RUN))
    assert text.startswith("# p.yaml: 1 of 4 cases pass\n")
    assert re.search(r"\| image/a \| 2 \| 2 \| 0 \| 0\.500 \(0\.095 to 0\.905\) \|", text)
    assert "Reliability of image/a; expected calibration error" in text
    assert "Right: 0.750 (0.301 to 0.954) of 4;" in text
    assert "| law | 4 | 3 | math 1 |" in text


def test_failed_cases_are_named_and_their_content_is_not_told() -> None:
    text = render_markdown(report_of("p.yaml", "d", 2.0, RUN))
    assert "- two (cases.jsonl:1): image/a did not match at 0.200, expected true" in text
    assert "nobody may read" not in text


@given(st.text())
def test_a_cell_stays_one_cell(text: str) -> None:
    (_, _, row) = table(("a", "b"), [(text, "end")]).split("\n")
    assert len(re.findall(r"(?<!\\)\|", row.replace("\\\\", ""))) == 3
    assert "\n" not in plain(text)
