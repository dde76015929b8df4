"""Figures of the heads that answer yes or no, on sources that never trained them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from models.text.binary_data import task
from models.text.judge import Judge, above
from models.text.sources import Row, rows, sample

LANGUAGES = ("ar", "es", "de", "el", "hi", "ro", "ru", "th", "tr", "vi", "zh", "en")


def others(judge: Judge, data: Path) -> dict[str, Any]:
    """At the default thresholds."""
    figures: dict[str, Any] = {}

    def tell(head: str, what: str, texts: list[str]) -> None:
        if head in judge.about:
            figures[f"{head}, {what}"] = above(judge.texts(texts, head)[:, 0], judge.threshold(head))

    for head in ("harm", "creative", "fact_check", "complexity"):
        about = task(head, data)
        for source, texts in about.unseen_yes.items():
            tell(head, f"found, {source}", texts)
        for source, texts in about.unseen_no.items():
            tell(head, f"flagged, {source}", texts)
    questions = rows(data, "xquad_questions_multilingual")
    for head in ("harm", "creative"):
        for language in LANGUAGES:
            tell(head, f"flagged, xquad {language}", _of(questions, language, 100))
    tell("fact_check", "found, xquad en", _of(questions, "en", 200))
    for head in ("harm", "creative"):
        for name in ("domain", "security_docs", "long_benign"):
            tell(head, f"flagged, authored/{name}", [row.text for row in rows(data, f"authored/{name}")])
    foreign = rows(data, "multijail")
    for language in ("it", "zh", "vi", "ar", "ko", "th", "bn", "sw", "jv"):
        tell("harm", f"found, multijail {language} (never trained)", _of(foreign, f"harmful_{language}", 60))
    return figures


def _of(several: list[Row], label: str, most: int) -> list[str]:
    return [row.text for row in sample(several, most, 0, lambda row: row.label == label)]
