"""Figures of the `domain` head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from models.text.calibrate import reliability, share
from models.text.judge import Judge
from models.text.sources import rows


def domain(judge: Judge, data: Path) -> dict[str, Any]:
    """On short questions of a foreign style, which trained nothing."""
    measuring = rows(data, "authored/domain")
    labels = judge.about["domain"]["labels"]
    own = np.array([labels.index(row.label) for row in measuring])
    found = judge.texts([row.text for row in measuring], "domain")
    told = found.argmax(axis=1)
    sure = found.max(axis=1) >= judge.threshold("domain")
    hits = told == own
    figures: dict[str, Any] = {
        "accuracy": share(int(hits.sum()), len(own)),
        "macro F1": round(_macro(told, own, len(labels)), 4),
    }
    figures["answers above the threshold"] = share(int(sure.sum()), len(own))
    figures["right of these"] = share(int(hits[sure].sum()), int(sure.sum()))
    for place, label in enumerate(labels):
        figures[f"recall, {label}"] = share(int(hits[own == place].sum()), int((own == place).sum()))
    table = reliability(found.max(axis=1), hits, np.ones(len(own)))
    figures["reliability"] = [[round(p, 3), round(right, 3), n] for p, right, n in table]
    return figures


def _macro(told: np.ndarray[Any, Any], own: np.ndarray[Any, Any], classes: int) -> float:
    scores = []
    for label in range(classes):
        both = ((told == label) & (own == label)).sum()
        scores.append(2 * both / max((told == label).sum() + (own == label).sum(), 1))
    return float(np.mean(scores))
