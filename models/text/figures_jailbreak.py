"""Figures of the `jailbreak` head: what it finds, what it flags by mistake, and what dilution costs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from models.text.jailbreak_data import ATTACK_SETS, attack_rows, threshold_rows
from models.text.judge import Judge, above
from models.text.sources import Row, rows, sample

NAME = "jailbreak"
DILUTED = 45
FILL = 2000


def jailbreak(judge: Judge, data: Path) -> dict[str, Any]:
    """At the default threshold."""
    figures: dict[str, Any] = {}

    def tell(what: str, several: list[Row]) -> None:
        figures[what] = above(judge.texts([row.text for row in several], NAME)[:, 0], judge.threshold(NAME))

    trust = rows(data, "tensor_trust")
    for kind in ("hijacking", "prompt_extraction"):
        tell(f"found, tensor_trust {kind}", sample(trust, 200, 0, lambda row, kind=kind: row.label == kind))
    for name in ATTACK_SETS:
        tell(f"found, {name} (trained on)", sample(attack_rows(data, name), 50, 0))
    tell(
        "found, bipia's injected instructions",
        sample(rows(data, "bipia"), 250, 0, lambda row: row.label == "injected_instruction"),
    )
    tell("flagged, requests that set the threshold", sample(threshold_rows(data), 300, 0))
    for name in ("long_benign", "security_docs", "domain"):
        tell(f"flagged, authored/{name}", rows(data, f"authored/{name}"))
    questions = rows(data, "xquad_questions_multilingual")
    for language in sorted({row.label for row in questions}):
        tell(
            f"flagged, xquad {language}",
            sample(questions, 200, 0, lambda row, language=language: row.label == language),
        )
    tell("flagged, harmful requests (trained on as harmless)", sample(rows(data, "harmful_requests"), 200, 0))
    return figures


def dilution(judge: Judge, data: Path) -> dict[str, Any]:
    """Attacks with `FILL` harmless characters before, behind and on both sides."""
    random_ = random.Random(0)
    attacks = [row.text for row in sample(rows(data, "tensor_trust"), DILUTED, 1)]
    attacks += [row.text for row in sample(attack_rows(data, "jailbreak_inthewild"), DILUTED // 3, 1)]
    fill = [row.text for row in rows(data, "authored/long_benign")]

    def filler() -> str:
        text = random_.choice(fill)
        return text[:FILL]

    figures = {}
    for where in ("alone", "before", "behind", "both sides"):
        texts = []
        for attack in attacks:
            front = filler() + "\n\n" if where in {"before", "both sides"} else ""
            back = "\n\n" + filler() if where in {"behind", "both sides"} else ""
            texts.append(front + attack + back)
        figures[f"found, with harmless text {where}" if where != "alone" else "found, alone"] = above(
            judge.texts(texts, NAME)[:, 0], judge.threshold(NAME)
        )
    return figures
