"""What `tool_result` and `tool_call`'s `destructive` catch and flag by mistake, at their defaults.

`pytest -s tests/signals/test_agent_figures.py` prints the figures. `tool_result`'s phrases were written with sight of
BIPIA's training files, not of its test files. Of the agent cases, what the table of commands missed at first (a command
that begins with the tool's name, a verb as an argument) was put right afterwards, so that these figures flatter it.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from signal_fakes import built, encoders, in_tool_result, view

from router.inference.text import TextEncoder
from router.request.openai_chat import parse
from router.request.view import RequestView, TextPart
from router.signals.base import Signal

pytestmark = [pytest.mark.data, pytest.mark.slow]

SAMPLE = 100


def rows(file: str) -> list[dict[str, Any]]:
    path = Path(os.environ["POINTSMAN_DATA"]) / "text" / f"{file}.jsonl"
    return [json.loads(line) for line in path.read_text().rstrip().split("\n")]


def agent_cases() -> list[tuple[RequestView, dict[str, Any]]]:
    def body(row: dict[str, Any]) -> bytes:
        return (
            base64.b64decode(row["request_base64"]) if "request_base64" in row else json.dumps(row["request"]).encode()
        )

    return [(parse(body(row)), row["expect"]) for row in rows("authored/agent_cases")]


def bipia(label: str, file: str = "") -> list[str]:
    return [row["text"] for row in rows("sources/bipia") if row["label"] == label and row["source"].endswith(file)]


async def share(signal: Signal, what: str, views: list[RequestView]) -> float:
    matched = sum([bool((await signal.observe(each)).matched) for each in views])
    print(f"\n{what}: {matched} of {len(views)}", end="")
    return matched / len(views)


def given_back(texts: list[str]) -> list[RequestView]:
    return [view(("tool", in_tool_result(TextPart("/messages/0/content", text)))) for text in texts]


async def test_destructive_calls_of_agents() -> None:
    signal = await built("tool_call", {"destructive": True})
    cases = agent_cases()
    yes = [each for each, expected in cases if expected["destructive_tool_call"]]
    no = [each for each, expected in cases if not expected["destructive_tool_call"]]
    assert await share(signal, "destructive calls found", yes) == 1.0
    assert await share(signal, "false alarms", no) == 0.0


@pytest.mark.parametrize("encoder", [False, True])
async def test_injections_in_agents_tool_results(starter_text: TextEncoder, encoder: bool) -> None:
    signal = await built("tool_result", {}, encoders(starter_text if encoder else None))
    cases = agent_cases()
    yes = [each for each, expected in cases if expected["tool_result_injection"]]
    no = [each for each, expected in cases if not expected["tool_result_injection"]]
    assert await share(signal, "injections found", yes) >= 0.65
    assert await share(signal, "false alarms", no) <= 0.05


@pytest.mark.parametrize("encoder", [False, True])
@pytest.mark.parametrize(
    ("file", "least"),
    # Of the second kind many are questions that nobody could tell from a text's own.
    [("code_attack_test.json", 0.9), ("text_attack_test.json", 0.55)],
)
async def test_injected_instructions(starter_text: TextEncoder, encoder: bool, file: str, least: float) -> None:
    signal = await built("tool_result", {}, encoders(starter_text if encoder else None))
    assert await share(signal, file, given_back(bipia("injected_instruction", file))) >= least


@pytest.mark.parametrize("encoder", [False, True])
@pytest.mark.parametrize(
    ("file", "most"),
    [
        ("benign_context_code", 0.02),
        ("benign_context_email", 0.02),
        ("benign_context_table", 0.01),
        ("authored/long_benign", 0.08),
        ("sources/clinc150", 0.02),
        # They quote what they warn of.
        ("authored/security_docs", 0.3),
    ],
)
async def test_false_alarms(starter_text: TextEncoder, encoder: bool, file: str, most: float) -> None:
    signal = await built("tool_result", {}, encoders(starter_text if encoder else None))
    texts = bipia(file) if "/" not in file else [row["text"] for row in rows(file)]
    texts = texts[:: max(1, len(texts) // SAMPLE)][:SAMPLE]
    assert await share(signal, file, given_back(texts)) <= most
