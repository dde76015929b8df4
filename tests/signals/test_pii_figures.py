"""What the `pii` signal finds in synthetic requests and what it finds in harmless ones, at its default threshold.

`pytest -s tests/signals/test_pii_figures.py` prints the table. Scores were set by hand while these sets were at hand,
so that the figures are no promise for others. The harmless sets hold some addresses and numbers, which are no mistakes.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from signal_fakes import built, said

pytestmark = [pytest.mark.data, pytest.mark.slow]

RECALL = {
    "EMAIL_ADDRESS": 1.0,
    "CREDIT_CARD": 0.99,
    "US_SSN": 1.0,
    "IP_ADDRESS": 0.95,
    "IBAN_CODE": 1.0,
    "PHONE_NUMBER": 0.98,
}
"""Type, and the least share of values that are found. What is missed of the cards has no issuer's first digits; of the
IP addresses, it is one of a private network."""

RESTRICTED = {"types": ["CREDIT_CARD", "US_SSN", "IBAN_CODE", "TRAVEL_DOCUMENT"]}

HARMLESS = {
    "sources/clinc150": 0.0,
    "sources/banking77": 0.0,
    "sources/benign_instructions": 0.01,
    "sources/gpteacher": 0.01,
    "sources/math_code_reasoning": 0.001,
    "authored/domain": 0.0,
    "authored/security_docs": 0.0,
    # A table of members has addresses in it.
    "authored/long_benign": 0.03,
}
"""File, and the greatest share of texts in which anything is found."""


def rows(file: str) -> list[dict[str, Any]]:
    path = Path(os.environ["POINTSMAN_DATA"]) / "text" / f"{file}.jsonl"
    return [json.loads(line) for line in path.read_text().rstrip().split("\n")]


async def test_recall_and_precision_by_type() -> None:
    signal = await built("pii", {})
    there, found, wrong = Counter[str](), Counter[str](), Counter[str]()
    for row in rows("sources/presidio_pii"):
        observation = await signal.observe(said(row["text"]))
        told = [(e.label, *(e.span or (0, 0))) for e in observation.evidence if (e.score or 0.0) >= 0.5]
        for span in row["spans"]:
            if span["type"] in RECALL:
                there[span["type"]] += 1
                found[span["type"]] += any(_same(span, label, start, end) for label, start, end in told)
        for label, start, end in told:
            wrong[label] += not any(_same(span, label, start, end) for span in row["spans"])
    for kind, least in RECALL.items():
        print(f"\n{kind}: {found[kind]} of {there[kind]}, {wrong[kind]} wrong", end="")
        assert found[kind] >= least * there[kind]
    assert wrong.total() <= 2


def _same(span: dict[str, Any], label: str, start: int, end: int) -> bool:
    return span["type"] == label and bool(start < span["end"] and span["start"] < end)


@pytest.mark.parametrize(("file", "most"), HARMLESS.items())
async def test_harmless_texts(file: str, most: float) -> None:
    signal, restricted = await built("pii", {}), await built("pii", RESTRICTED)
    texts = [row["text"] for row in rows(file)]
    matched = sum([bool((await signal.observe(said(text))).matched) for text in texts])
    grave = sum([bool((await restricted.observe(said(text))).matched) for text in texts])
    print(f"\n{file}: {matched} of {len(texts)}, of the restricted types {grave}", end="")
    assert matched <= most * len(texts)
    assert grave == 0


async def test_cases_of_agents() -> None:
    kinds = {"email": "EMAIL_ADDRESS", "iban": "IBAN_CODE", "credit_card": "CREDIT_CARD", "mrz": "TRAVEL_DOCUMENT"}
    signal = await built("pii", {"types": [*kinds.values()]})
    for row in rows("authored/agent_cases"):
        if "request" not in row:
            continue
        observation = await signal.observe(said(*_strings(row["request"]["messages"])))
        told = {e.label for e in observation.evidence if observation.matched}
        assert told >= {kinds[kind] for kind in row["expect"]["pii"]}, row["name"]


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _strings(item)]
