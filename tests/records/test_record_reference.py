"""docs/decision-record.md names the keys that records have, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from router.policy.model import AtLeast, Clarify, Decision
from router.policy.predicate import Interval, Leaf
from router.policy.resolve import Resolution
from router.policy.verdict import Verdict
from router.records.record import MAX_EVIDENCE, DecisionRecord
from router.selection.choice import Choice
from router.selection.needs import Needs, Unmet
from router.selection.upstream import Upstream
from router.signals.base import Evidence, Observation, SignalName

TEXT = (Path(__file__).parents[2] / "docs/decision-record.md").read_text()

SIGNAL = SignalName("keyword", "words")
EVIDENCE = (Evidence("/messages/0/content", "word", 0.5, (0, 4), 0, "detail"),)
ANSWERS = (
    Observation("observed", True, 0.5, "word", EVIDENCE * (MAX_EVIDENCE + 1), "", "digest", 0.1, 1.0, 0.1, 0.1),
    Observation("failed", None, reason="truncated"),
)


def record_of(answer: Observation) -> dict[str, Any]:
    leaf = Leaf(SIGNAL, Interval(low=1.0), frozenset({"word"}))
    decision = Decision("d", 1, False, False, AtLeast(1, (leaf,)), Clarify("Which?"), 1)
    verdict = Verdict(
        "d", decision.outcome, "priority", 1.0, False, True, {SIGNAL: answer}, (), (), 0.1, (decision,), {}
    )
    needs = Needs(frozenset(), frozenset(), frozenset(), 1, 1, ())
    choice = Choice("m", "first", {"m": 1.0}, {"m": 1.0})
    upstream = Upstream("m", "c", None, "m", ("text",))
    unmet = {"n": (Unmet("input", "image"),)}
    resolution = Resolution(upstream, choice, "route", "bandit", 1, 1, "digest", unmet, needs)
    record = DecisionRecord("r", "p", "openai.chat", None, "d", "clarify", None, None, verdict, 1, 1, 0, False, 0, 0, 0)
    return replace(record, resolution=resolution).whole()


def table(before: str) -> set[str]:
    """The words in the first column of the table after the text."""
    rows = TEXT.split(before, 1)[1].lstrip().split("\n\n")[0].splitlines()[2:]
    return {word for row in rows for word in re.findall(r"`([^`]+)`", row.split("|")[1])}


def nodes(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield tree
    for child in tree.get("children", ()):
        yield from nodes(child)


def written() -> dict[str, set[str]]:
    wholes = [record_of(answer) for answer in ANSWERS]
    observations = [whole["signals"][str(SIGNAL)] for whole in wholes]
    decision = wholes[0]["decisions"][0]
    return {
        "names it.": set(wholes[0]) - {"decisions"},
        "The selection:": set(wholes[0]["selection"]),
        "An observation:": {key for each in observations for key in each},
        "A piece of evidence:": set(observations[0]["evidence"][0]),
        "A decision, with `--json` of `explain`:": set(decision),
        "A node of a tree:": {key for node in nodes(decision["tree"]) for key in node},
    }


@pytest.mark.parametrize("before", list(written()))
def test_the_reference_has_the_keys_of_a_record(before: str) -> None:
    assert table(before) == written()[before]
