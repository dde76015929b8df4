from __future__ import annotations

from pathlib import Path

import pytest

from router.evaluation.cases import Case, CaseFile
from router.evaluation.labels import NO_LABEL, LabelRow, label_figures
from router.evaluation.run import Came
from router.signals.base import Observation, failed, observed

PATH = Path("cases.jsonl")


def came(expected: str, seen: Observation | None) -> Came:
    file = CaseFile.model_validate({"text": "hi", "expect": {"labels": {"domain/topic": expected}}})
    return Came(Case("c", PATH, 1, PATH.parent, file), None, None, {"domain/topic": seen} if seen else {}, 0.01)


RUN = [
    came("law", observed(True, 0.9, label="law")),
    came("law", observed(False, 0.3, label="law")),
    came("law", observed(True, 0.7, label="math")),
    came("math", observed(True, 0.8, label="math")),
    came("math", failed("broken")),
    came("math", None),
]


def test_accuracy_is_over_all_cases_and_no_answer_is_wrong() -> None:
    (figures,) = label_figures(RUN)
    assert (figures.accuracy.value, figures.accuracy.n) == (0.5, 6)
    assert figures.rows == (
        LabelRow("law", 3, 2, (("math", 1),)),
        LabelRow("math", 3, 1, ((NO_LABEL, 2),)),
    )


def test_macro_figures_weigh_labels_alike() -> None:
    (figures,) = label_figures(RUN)
    assert figures.macro_recall == pytest.approx((2 / 3 + 1 / 3) / 2)
    # law: precision 1, recall 2/3; math: precision 1/2, recall 1/3.
    assert figures.macro_f1 == pytest.approx((0.8 + 0.4) / 2)


def test_what_it_answers_is_told_by_itself() -> None:
    (figures,) = label_figures(RUN)
    assert figures.answered is not None
    assert (figures.answered.value, figures.answered.n) == (pytest.approx(2 / 3), 3)


def test_cases_without_labels_have_no_figures() -> None:
    file = CaseFile.model_validate({"text": "hi", "expect": {"decision": "default"}})
    assert label_figures([Came(Case("c", PATH, 1, PATH.parent, file), None, None, {}, 0.01)]) == ()
