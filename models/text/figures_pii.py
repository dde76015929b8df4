"""Figures of the `pii` head: stretches on templates that never trained, and alarms in harmless texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from models.text.calibrate import share
from models.text.judge import Judge
from models.text.pii_data import LABELS, Marked, Span, joined, presidio, seen
from models.text.sources import rows, sample
from router.inference.tagging import scheme_of, spans_of

SCHEME = scheme_of(LABELS)


def pii(judge: Judge, data: Path) -> dict[str, Any]:
    """By type: exact and overlapping F1; then the share of harmless texts in which anything is told."""
    test = presidio(data, "test")
    bound = judge.threshold("pii")
    told = spans(judge, [each.text for each in test], bound)
    figures: dict[str, Any] = {"test texts": len(test)}
    for kind in (*LABELS[1:], "any"):
        figures |= _f1(kind, test, told)
    learned = {marked.text for marked in seen(data)}
    for name, wanted in (
        ("banking77", None),
        ("clinc150", None),
        ("gpteacher", "benign_coding"),
        ("authored/security_docs", None),
        ("authored/domain", None),
        ("authored/long_benign", None),
    ):
        those = (row for row in rows(data, name) if wanted in (None, row.label) and row.text not in learned)
        several = sample(those, 250, 7)
        found = spans(judge, [row.text for row in several], bound)
        for kind in ("PERSON", "any"):
            figures[f"texts of {name} with {kind}"] = share(
                sum(any(kind in (each[2], "any") for each in some) for some in found), len(several)
            )
    return figures


def spans(judge: Judge, texts: list[str], bound: float) -> list[tuple[Span, ...]]:
    """Stretches of each text's first window that are as sure as `bound`."""
    windows = [judge.encoder.windows(text)[0] for text in texts]
    found = []
    for window, answer in zip(windows, judge.windows(windows, ["pii"]), strict=True):
        own = answer["pii"][1:-1].astype(np.float32)
        several = [
            (s.start, s.end, s.label) for s in spans_of(window.text, window.ranges, own, SCHEME) if s.score >= bound
        ]
        found.append(joined(window.text, several))
    return found


def _f1(kind: str, test: list[Marked], told: list[tuple[Span, ...]]) -> dict[str, Any]:
    exact = overlap_told = overlap_wanted = wanted_count = told_count = 0
    for marked, some in zip(test, told, strict=True):
        wanted = [span for span in marked.spans if kind in (span[2], "any")]
        got = [span for span in some if kind in (span[2], "any")]
        exact += len(set(wanted) & set(got))
        overlap_told += sum(any(_touch(a, b) for b in wanted) for a in got)
        overlap_wanted += sum(any(_touch(a, b) for b in got) for a in wanted)
        wanted_count, told_count = wanted_count + len(wanted), told_count + len(got)
    precision, recall = overlap_told / max(told_count, 1), overlap_wanted / max(wanted_count, 1)
    return {
        f"{kind}: exact F1": round(2 * exact / max(told_count + wanted_count, 1), 4),
        f"{kind}: overlap F1": round(2 * precision * recall / max(precision + recall, 1e-9), 4),
        f"{kind}: overlap recall": share(overlap_wanted, wanted_count),
        f"{kind}: overlap precision": share(overlap_told, told_count),
    }


def _touch(first: Span, second: Span) -> bool:
    return first[2] == second[2] and first[0] < second[1] and second[0] < first[1]
