from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from router.evaluation.cases import Case, CaseFile
from router.evaluation.misses import misses
from router.evaluation.report import Labelled, figures_of, report_of
from router.evaluation.run import Came
from router.signals.base import Evidence, Observation, failed, observed

PATH = Path("cases.jsonl")


def came(seen: Observation, expected: bool | str = True, seconds: float = 0.01, name: str = "image/a") -> Came:
    file = CaseFile.model_validate({"text": "hi", "expect": {"signals": {name: expected}}})
    return Came(Case("c", PATH, 1, PATH.parent, file), None, None, {name: seen}, seconds)


def test_no_answer_is_no_match_and_is_counted() -> None:
    answers = [
        Labelled("a", True, True, 0.9, 0.9),
        Labelled("b", True, None, None, None),
        Labelled("c", False, None, None, None),
        Labelled("d", False, True, 0.6, 0.6),
    ]
    figures = figures_of("image/a", answers)
    assert figures.unknown == 2
    assert figures.recall is not None
    assert figures.precision is not None
    assert figures.false_positives is not None
    assert (figures.recall.value, figures.precision.value, figures.false_positives.value) == (0.5, 0.5, 0.5)
    # The curve is about answers that have a score.
    assert figures.auc is not None
    assert (figures.auc.value, figures.auc.n) == (1.0, 2)


def test_families_with_scores_are_ranked_by_them_and_others_by_what_they_count() -> None:
    # Agreement's value falls as its score rises; context has a value alone.
    answers = [Labelled("a", True, True, 0.05, 0.95), Labelled("b", False, False, 0.4, 0.6)]
    agreement = figures_of("agreement/a", answers)
    counts = [Labelled("a", True, True, 5000.0, None), Labelled("b", False, False, 10.0, None)]
    context = figures_of("context/a", counts)
    assert agreement.auc is not None
    assert context.auc is not None
    assert (agreement.auc.value, context.auc.value) == (1.0, 1.0)


def test_only_probabilities_have_a_calibration_error() -> None:
    answers = [Labelled("a", True, True, 0.9, 0.9), Labelled("b", False, False, 0.2, 0.2)]
    assert figures_of("image/a", answers).calibration_error == pytest.approx(0.15)
    assert figures_of("embedding/a", answers).calibration_error is None
    assert figures_of("score/a", answers).calibration_error is None


def test_who_took_longer_than_the_deadline_is_counted_and_not_failed() -> None:
    run = [came(observed(True, 0.9), seconds=0.5), came(observed(True, 0.9), seconds=3.0)]
    report = report_of("p", "d", 2.0, run)
    assert report.late == 1
    assert report.failures == ()
    assert report.latency[50] == pytest.approx(1.75)


def test_json_of_a_report_is_json_even_where_a_score_is_no_number() -> None:
    run = [
        came(observed(True, 0.9)),
        came(observed(False, math.nan), expected=False),
        came(observed(False, 0.1), False),
    ]
    text = json.dumps(report_of("p", "d", 2.0, run).as_json(), allow_nan=False)
    assert json.loads(text)["signals"]["image/a"]["negatives"] == 2


@pytest.mark.parametrize(
    ("seen", "expected", "passes"),
    [
        (observed(True, 0.9), "true", True),
        (observed(True, 0.9), False, False),
        (observed(False, 0.1), False, True),
        (observed(False, 0.1), "unknown", False),
        (failed("corrupt"), "unknown", True),
        (failed("corrupt"), True, False),
        (failed("corrupt"), False, False),
    ],
)
def test_unknown_is_neither_true_nor_false(seen: Observation, expected: bool | str, passes: bool) -> None:
    assert (misses(came(seen, expected)) == ()) is passes


def test_evidence_is_held_to_the_image_that_did_it_most() -> None:
    pieces = (Evidence("/a", image=0, score=0.6), Evidence("/b", image=2, score=0.9), Evidence("/c"))
    file = CaseFile.model_validate({"text": "hi", "expect": {"evidence": {"image/a": 2}}})
    seen = observed(True, 0.9, evidence=pieces)
    one = Came(Case("c", PATH, 1, PATH.parent, file), None, None, {"image/a": seen}, 0.1)
    assert misses(one) == ()
    wrong = CaseFile.model_validate({"text": "hi", "expect": {"evidence": {"image/a": 0}}})
    assert misses(Came(Case("c", PATH, 1, PATH.parent, wrong), None, None, {"image/a": seen}, 0.1)) == (
        "image/a names image 2, expected image 0",
    )
