"""Texts for the heads that answer yes or no: harm, creative, fact_check and complexity.

Each side is a list of sources with their share of the side. `unseen` are sources that never train the head: they
calibrate it and say how it does elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from models.text.sources import Row, calibrates, may_train, own_lines, own_sections, rows, sample

Side = dict[str, tuple[list[str], float]]

FACTUAL = ("biology", "chemistry", "economics", "health", "history", "law", "physics", "psychology")
HELD_SUBJECTS = ("global_facts", "high_school_geography", "prehistory", "virology")
NO_FACTS = (
    "moral_",
    "mathematics",
    "algebra",
    "formal_logic",
    "statistics",
    "logical_fallacies",
    "professional_law",
    "econometrics",
)
WRITING = ("writing", "writting", "roleplay")


@dataclass(frozen=True, slots=True)
class Task:
    """What trains a head, by side, and what never does."""

    yes: Side
    no: Side
    unseen_yes: dict[str, list[str]]
    unseen_no: dict[str, list[str]]


def task(name: str, data: Path) -> Task:
    """The head's texts."""
    return {"harm": _harm, "creative": _creative, "fact_check": _fact_check, "complexity": _complexity}[name](data)


def _drawn(data: Path, name: str, most: int, wanted: Callable[[Row], bool] = lambda _: True) -> list[str]:
    return [row.text for row in sample(rows(data, name), most, 0, wanted)]


def _real(data: Path, wanted: Callable[[Row], bool] = lambda _: True) -> list[str]:
    """Real users' requests, of collections that never train."""
    return [row.text for row in rows(data, "benign_instructions") if calibrates(row) and wanted(row)]


def _questions(fields: tuple[str, ...] | None = None) -> list[str]:
    return [
        text
        for field, several in own_sections("domain_questions").items()
        if not fields or field in fields
        for text in several
    ]


def _harm(data: Path) -> Task:
    def of(part: str) -> list[str]:
        return [row.text for row in rows(data, "harmful_requests") if part in row.label]

    return Task(
        yes={
            "phrasing": (of("harmful_phrasing"), 0.35),
            "donotanswer": (of("malicious_uses") + of("hateful") + of("information_hazard"), 0.3),
            "harmbench": (of("harmbench"), 0.2),
            "multijail": (_drawn(data, "multijail", 400, lambda row: row.label == "harmful_en"), 0.15),
        },
        no={
            "instructions": (_drawn(data, "benign_instructions", 900, may_train), 0.25),
            "gpteacher": (_drawn(data, "gpteacher", 800), 0.15),
            "questions": (_questions(), 0.2),
            "mmlu": (_drawn(data, "mmlu_redux_subjects", 900, lambda row: row.label != "moral_scenarios"), 0.12),
            "clinc150": (_drawn(data, "clinc150", 600), 0.08),
            "banking77": (_drawn(data, "banking77", 300), 0.05),
            "languages": (own_lines("languages"), 0.05),
            "security": (own_lines("security"), 0.05),
            "creative": (own_sections("creative")["creative"], 0.05),
            "near misses": (own_lines("near_misses") + own_lines("personas"), 0.05),
        },
        unseen_yes={},
        unseen_no={"real": _real(data)},
    )


def _creative(data: Path) -> Task:
    own = own_sections("creative")
    return Task(
        yes={
            "own": (own["creative"], 0.5),
            "roleplay": (_drawn(data, "gpteacher", 400, lambda row: row.label == "benign_roleplay"), 0.35),
            "instructions": (
                _drawn(data, "benign_instructions", 60, lambda row: may_train(row) and _writes(row)),
                0.15,
            ),
        },
        no={
            "own": (own["plain"], 0.25),
            "questions": (_questions(), 0.25),
            "coding": (_drawn(data, "gpteacher", 400, lambda row: row.label == "benign_coding"), 0.15),
            "mmlu": (_drawn(data, "mmlu_redux_subjects", 600), 0.15),
            "clinc150": (_drawn(data, "clinc150", 400), 0.1),
            "math": (_drawn(data, "math_code_reasoning", 300), 0.1),
        },
        unseen_yes={"evolved": _real(data, _writes)},
        unseen_no={
            "evolved": _real(
                data, lambda row: row.label.startswith("benign_") and "WizardLM" in row.origin and not _writes(row)
            ),
            "banking77": _drawn(data, "banking77", 200),
        },
    )


def _writes(row: Row) -> bool:
    return row.label.lower().removeprefix("benign_") in WRITING


def _fact_check(data: Path) -> Task:
    def states(row: Row) -> bool:
        return row.label not in HELD_SUBJECTS and not any(part in row.label for part in NO_FACTS)

    def tasks(row: Row) -> bool:
        return row.label != "math_word_problem"

    errands = ("travel", "utility", "home", "meta", "small_talk", "banking", "credit_cards", "work")
    own = own_sections("creative")
    return Task(
        yes={
            "mmlu": (_drawn(data, "mmlu_redux_subjects", 1500, states), 0.5),
            "questions": (_questions(FACTUAL), 0.5),
        },
        no={
            "own": (own["creative"] + own["plain"], 0.3),
            "tasks": (_drawn(data, "math_code_reasoning", 500, tasks), 0.25),
            "errands": (_drawn(data, "clinc150", 600, lambda row: row.more.get("domain") in errands), 0.25),
            "questions": (_questions(("math", "computer science", "other")), 0.2),
        },
        unseen_yes={
            "mmlu, other subjects": _drawn(data, "mmlu_redux_subjects", 400, lambda row: row.label in HELD_SUBJECTS)
        },
        unseen_no={
            "coding": _drawn(data, "gpteacher", 150, lambda row: row.label == "benign_coding"),
            "roleplay": _drawn(data, "gpteacher", 150, lambda row: row.label == "benign_roleplay"),
            "word problems": _drawn(data, "math_code_reasoning", 150, lambda row: row.label == "math_word_problem"),
            "banking77": _drawn(data, "banking77", 200),
        },
    )


def _complexity(data: Path) -> Task:
    def hard(row: Row) -> bool:
        return row.label.startswith(
            ("college_", "professional_", "abstract_", "econometrics", "formal_logic", "machine_learning")
        )

    return Task(
        yes={
            "mmlu": (_drawn(data, "mmlu_redux_subjects", 900, hard), 0.6),
            "reasoning": (
                _drawn(data, "math_code_reasoning", 400, lambda row: row.label.startswith("reasoning_logical")),
                0.2,
            ),
            "code": (_drawn(data, "math_code_reasoning", 300, lambda row: row.label.startswith("code_")), 0.2),
        },
        no={
            "clinc150": (_drawn(data, "clinc150", 600), 0.4),
            "questions": (_questions(("other", "health", "history", "biology")), 0.3),
            "elementary": (
                _drawn(
                    data,
                    "mmlu_redux_subjects",
                    300,
                    lambda row: row.label in {"elementary_mathematics", "miscellaneous"},
                ),
                0.3,
            ),
        },
        unseen_yes={"arena": _real(data, lambda row: row.label == "benign_arena_hard")},
        unseen_no={
            "banking77": _drawn(data, "banking77", 300),
            "koala": _real(data, lambda row: "koala" in row.origin),
        },
    )
