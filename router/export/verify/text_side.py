"""A text tower or a classifier, text by text, beside its reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from router.export.verify.explain import (
    cosine,
    explain_model,
    greatest_difference,
    is_unit,
    least_cosine,
    quietly,
)
from router.export.verify.reference import Floats, Ids, TextReference
from router.export.verify.report import Finding, Row, Side, SideReport
from router.export.verify.tokens import explain_tokens
from router.inference.classifier_model import ClassifierModel
from router.inference.text_model import TextModel, WindowModel

Progress = Callable[[str], None]


def verify_texts(model: TextModel, reference: TextReference, texts: Sequence[str], progress: Progress) -> SideReport:
    """The text tower over these texts, the first window of each."""
    return _verify_windows(
        "text", model, lambda ids: model.forward([ids]), reference, texts, least_cosine(model.tower), progress
    )


def verify_classifier(
    model: ClassifierModel, reference: TextReference, texts: Sequence[str], progress: Progress
) -> SideReport:
    """The classifier over these texts, the first window of each."""

    def forward(ids: Ids) -> Floats:
        return model.probabilities([ids]).astype(np.float32)

    parity, golden = model.tower.parity, model.tower.golden
    bound = max(golden.max_difference, parity.gate) if parity is not None else golden.max_difference
    return _verify_windows("classifier", model, forward, reference, texts, bound, progress)


def _verify_windows(
    side: Side,
    model: WindowModel,
    forward: Callable[[Ids], Floats],
    reference: TextReference,
    texts: Sequence[str],
    bound: float,
    progress: Progress,
) -> SideReport:
    cosines = side == "text"
    compare = cosine if cosines else greatest_difference

    def holds(value: float) -> bool:
        return value >= bound if cosines else value <= bound

    def served_ids(text: str) -> Ids:
        return model.window(model.tokenise(text), 0)

    def compared(row: Floats | None, expected: Floats) -> float | None:
        return None if row is None else compare(row, expected)

    rows: list[Row] = []
    token_cases: list[tuple[str, Ids, Ids]] = []
    model_cases: list[tuple[Ids, Floats, Floats]] = []
    broken, unit = 0, True
    for number, text in enumerate(texts, 1):
        progress(f"{side}: text {number} of {len(texts)}")
        ours, theirs = served_ids(text), reference.token_ids(text)
        expected, whole_row, model_row = (
            reference.text_forward(theirs),
            quietly(forward, ours),
            quietly(forward, theirs),
        )
        equal = np.array_equal(ours, theirs)
        through = expected if equal else quietly(reference.text_forward, ours)
        whole, by_model = compared(whole_row, expected), compared(model_row, expected)
        model_held = by_model is not None and holds(by_model)
        if not equal:
            token_cases.append((text, ours, theirs))
        if model_row is None:
            broken += 1
        elif not model_held:
            model_cases.append((theirs, model_row, expected))
        unit = unit and (not cosines or whole_row is None or is_unit(whole_row))
        rows.append(
            Row(
                f"text {number}, {len(text)} characters",
                whole,
                by_model,
                compared(through, expected),
                _ids_apart(ours, theirs),
                equal=equal,
                held=equal and model_held and whole is not None and holds(whole),
            )
        )
    progress(f"{side}: looking for causes")
    findings: list[Finding] = []
    if token_cases:
        (cause, detail), share = explain_tokens(token_cases, served_ids, model.tower.pad_id)
        findings.append(Finding(side, "tokens", cause, f"{detail} ({len(token_cases)} of {len(texts)} texts)", share))
    if model_cases:
        faults = reference.text_faults([ids for ids, _, _ in model_cases])
        findings.append(explain_model(side, model_cases, faults, model.tower.precision, f"{len(model_cases)} texts"))
    if broken:
        findings.append(
            Finding(side, "model", "unknown", f"the graph cannot take the reference's ids of {broken} texts")
        )
    if not unit:
        findings.append(Finding(side, "model", "normalisation", "outputs are not of length 1"))
    return SideReport(
        side,
        model.tower.precision,
        "cosine" if cosines else "probability difference",
        bound,
        tuple(rows),
        tuple(findings),
    )


def _ids_apart(ours: Ids, theirs: Ids) -> tuple[float, float]:
    length = max(len(ours), len(theirs))
    differ = sum(a != b for a, b in zip(ours, theirs, strict=False)) + length - min(len(ours), len(theirs))
    return float(differ), float(differ)
