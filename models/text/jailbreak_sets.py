"""Texts that the weighing of the combined `jailbreak` method learns from, which trained no head that judges them.

Attacks are each judged by the training that held their set out. Harmless texts are rows of public collections that no
training drew, prose that is kept for this, and our own longer passages about attacks.
"""

from __future__ import annotations

import itertools
import random
from pathlib import Path

from models.text import attacks, prose
from models.text.jailbreak_data import ATTACK_SETS, DRAWN, attack_rows, threshold_rows
from models.text.sources import may_train, own_lines, rows, sample

ATTACKS = {
    "jailbreak_inthewild": (400, 1.0), "gptfuzzer": (100, 1.0), "jailbreakbench_artifacts": (170, 0.6),
    "jailbreak_dan_tap_autodan": (50, 0.4), "own": (200, 0.5),
}  # fmt: skip
"""How many texts at most, and how much they weigh together."""

HARMLESS = {
    "threshold": (2000, 2.5), "benign_instructions": (100, 0.7), "gpteacher": (250, 0.7), "clinc150": (80, 0.3),
    "banking77": (60, 0.2), "math_code_reasoning": (120, 0.4), "mmlu_redux_subjects": (100, 0.3),
    "harmful_requests": (150, 0.4), "multijail": (80, 0.3), "security_held": (100, 0.8), "pages": (60, 0.5),
    "long": (40, 0.7),
}  # fmt: skip

DILUTED = ("alone", "in paragraphs", "in sentences")
"""A check of what dilution costs: short attacks alone, between harmless paragraphs, and between words."""


def attack_texts(data: Path) -> dict[str, list[str]]:
    """By set; `own` is of the grammar, which no training holds out."""
    random_ = random.Random(11)
    found = {name: [row.text for row in sample(attack_rows(data, name), ATTACKS[name][0], 7)] for name in ATTACK_SETS}
    most = ATTACKS["own"][0]
    own = [attacks.direct(random_) for _ in range(most * 3 // 4)]
    return found | {"own": own + [attacks.role_play(random_) for _ in range(most // 4)]}


def harmless_texts(data: Path) -> dict[str, list[str]]:
    """By source. Half of the short ones go on with others of their kind; `long` have 3,000 characters and more."""
    random_ = random.Random(3)
    found = {"threshold": [row.text for row in threshold_rows(data)]}
    for name in ("benign_instructions", "gpteacher", "clinc150", "banking77"):
        found[name] = _grown(_never_drawn(data, name), random_)
    for name in ("math_code_reasoning", "mmlu_redux_subjects", "harmful_requests", "multijail"):
        found[name] = _never_drawn(data, name)
    pages = prose.python_pages(prose.HELD_MODULES)
    random_.shuffle(pages)
    short, rest = pages[: HARMLESS["pages"][0]], pages[HARMLESS["pages"][0] :]
    joined = [f"{one}\n\n{other}" for one, other in itertools.pairwise(rest)]
    return found | {"security_held": own_lines("security_held"), "pages": short, "long": joined[: HARMLESS["long"][0]]}


def diluted_texts(attacks_: dict[str, list[str]]) -> dict[str, list[str]]:
    """The same short attacks three times, by `DILUTED`; what is around them is prose of Python's documentation."""
    random_ = random.Random(5)
    short = [text for text in attacks_["jailbreak_inthewild"] if len(text) < 1200][:40] + attacks_["own"][:40]
    fill = [page for page in prose.python_pages() if len(page) > 1800]

    def some() -> str:
        begin = random_.randint(0, 300)
        return random_.choice(fill)[begin : begin + 1500]

    between = {joint: [f"{some()}{joint}{text}{joint}{some()}" for text in short] for joint in ("\n\n", " ")}
    return dict(zip(DILUTED, (short, *between.values()), strict=True))


def _never_drawn(data: Path, name: str) -> list[str]:
    """Rows that no head's training drew, each text once."""
    several = rows(data, name)
    drawn = {row.text for row in sample(several, DRAWN[name], 0, may_train)}
    rest = dict.fromkeys(row.text for row in several if may_train(row) and row.text not in drawn)
    return random.Random(9).sample(list(rest), min(HARMLESS[name][0], len(rest)))


def _grown(texts: list[str], random_: random.Random) -> list[str]:
    grown = []
    for text in texts:
        whole = text
        if random_.random() < 0.5:
            size = random_.choice((500, 900, 1800))
            while len(whole) < size:
                whole += random_.choice((" ", "\n", "\n\n")) + random_.choice(texts)
        grown.append(whole)
    return grown
