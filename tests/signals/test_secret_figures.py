"""What the `secret` signal finds in scanners' own fixtures and in harmless texts, at its default threshold.

`pytest -s tests/signals/test_secret_figures.py` prints the table. The set has two halves, by a hash of each rule's name
(`models/report/sets.py`): rules were mended by what the tuning half showed. Most of them had been written before there
were halves, while all of the set was at hand. Some fixtures are no texts but pieces of the scanner's program, such as a
pattern or the beginning of a key: they are left out. Of what is flagged by mistake, nearly all are Google's keys of a
kind that may be published, which that scanner knows one by one; they are in the tuning half.
"""

from __future__ import annotations

import base64
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from signal_fakes import built, said

from models.report.personal import PIECE_OF_A_PROGRAM
from models.report.sets import secrets_half

pytestmark = [pytest.mark.data, pytest.mark.slow]

LEAST_RECALL = {"held out": 0.9, "tuning": 0.9}
MOST_WRONG = {"held out": 0, "tuning": 2}

HARMLESS = [
    "sources/clinc150",
    "sources/banking77",
    "sources/benign_instructions",
    "sources/gpteacher",
    "sources/math_code_reasoning",
    "sources/mmlu_redux_subjects",
    "sources/presidio_pii",
    "sources/jailbreak_inthewild",
    "sources/bipia",
    "authored/domain",
    "authored/long_benign",
    "authored/security_docs",
]


def rows(file: str) -> list[dict[str, Any]]:
    path = Path(os.environ["POINTSMAN_DATA"]) / "text" / f"{file}.jsonl"
    return [json.loads(line) for line in path.read_text().rstrip().split("\n")]


@pytest.mark.parametrize("half", ["held out", "tuning"])
async def test_scanners_fixtures(half: str) -> None:
    signal = await built("secret", {})
    told = Counter[tuple[bool, bool]]()
    google = 0
    for row in rows("sources/secrets_fixtures"):
        text, secret = base64.b64decode(row["text_base64"]).decode(), row["label"] != "not_secret"
        if secrets_half(row) != half or (secret and PIECE_OF_A_PROGRAM.search(text.strip())):
            continue
        observation = await signal.observe(said(text))
        told[secret, bool(observation.matched)] += 1
        google += not secret and bool(observation.matched) and observation.label == "Google API Key"
    found, missed, wrong = told[True, True], told[True, False], told[False, True]
    print(f"\n{half}: found {found} of {found + missed}; wrong {wrong}, Google's {google}")
    assert found >= LEAST_RECALL[half] * (found + missed)
    assert wrong - google <= MOST_WRONG[half]


@pytest.mark.parametrize("file", HARMLESS)
async def test_harmless_texts(file: str) -> None:
    signal = await built("secret", {})
    texts = [row["text"] for row in rows(file)]
    matched = sum([bool((await signal.observe(said(text))).matched) for text in texts])
    print(f"\n{file}: {matched} of {len(texts)}", end="")
    assert matched <= 0.001 * len(texts)


async def test_cases_of_agents() -> None:
    """Their secrets are made up and most of them say so: half of a secret, hence the threshold."""
    signal = await built("secret", {"threshold": 0.5})
    for row in rows("authored/agent_cases"):
        text = base64.b64decode(row["request_base64"]).decode() if "request_base64" in row else ""
        request = json.loads(text) if text else row["request"]
        observation = await signal.observe(said(*_strings(request["messages"])))
        assert observation.matched is row["expect"]["secret"], row["name"]


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _strings(item)]
