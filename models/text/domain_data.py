"""Labelled texts for the `domain` head, by source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from models.text.sources import HERE, own_sections, rows, sample
from router.signals.domain_anchors import SUBJECTS, TOPICS

TEMPLATES = ("{}", "a question about {}")


@dataclass(frozen=True, slots=True)
class Labelled:
    """Texts with the place of their field in SUBJECTS, and how much the source weighs as a whole."""

    texts: list[str] = field(repr=False)
    labels: list[int]


def labelled(data: Path) -> dict[str, Labelled]:
    """By source: questions written for this project, topics in templates, MMLU's questions, tasks, errands."""
    return {
        "questions": _flat(own_sections("domain_questions")),
        "topics": _flat(
            {field: [t.format(topic) for topic in topics for t in TEMPLATES] for field, topics in TOPICS.items()}
        ),
        "mmlu": _flat(_mmlu(data)),
        "tasks": _flat(_tasks(data)),
        "everyday": _flat({"other": _everyday(data)}),
    }


def _flat(texts: Mapping[str, list[str]]) -> Labelled:
    pairs = [(text, SUBJECTS.index(name)) for name, several in texts.items() for text in several]  # type: ignore[arg-type]
    return Labelled([text for text, _ in pairs], [label for _, label in pairs])


def _mmlu(data: Path) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = yaml.safe_load((HERE / "subjects.yaml").read_text(encoding="utf-8"))
    of = {subject: name for name, subjects in fields.items() for subject in subjects}
    found: dict[str, list[str]] = {}
    for row in rows(data, "mmlu_redux_subjects"):
        if row.label in of and len(row.text) < 600:
            found.setdefault(of[row.label], []).append(row.text)
    return found


def _tasks(data: Path) -> dict[str, list[str]]:
    def drawn(name: str, label: str, most: int) -> list[str]:
        return [row.text for row in sample(rows(data, name), most, 0, lambda row: row.label == label)]

    code = drawn("math_code_reasoning", "code_task", 150) + drawn("gpteacher", "benign_coding", 250)
    return {"math": drawn("math_code_reasoning", "math_word_problem", 200), "computer science": code}


def _everyday(data: Path) -> list[str]:
    """Everyday errands; what people ask of a bank is business to some and none of the fields to others: left out."""
    kept = ("travel", "kitchen_and_dining", "home", "auto_and_commute", "utility", "meta", "small_talk")
    some = sample(rows(data, "clinc150"), 400, 0, lambda row: row.more.get("domain") in kept)
    play = sample(rows(data, "gpteacher"), 120, 0, lambda row: row.label == "benign_roleplay")
    return [row.text for row in some + play]
