"""The sentence that a record begins with."""

from __future__ import annotations

from typing import Any

import pytest

from router.admin.pages.evidence import Bound, Seen, seen
from router.admin.pages.sentence import Sentence, sentence

Node = dict[str, Any]


def leaf(signal: str, state: str, confidence: float = 0.9, **more: Any) -> Node:
    return {"kind": "signal", "state": state, "confidence": confidence, "signal": signal, **more}


def node(kind: str, state: str, *children: Node, **more: Any) -> Node:
    return {"kind": kind, "state": state, "confidence": 0.9, "children": list(children), **more}


def record(tree: Node, **more: Any) -> dict[str, Any]:
    won = {"name": "won", "guard": False, "priority": 1, "considered": True, "matched": True, "tree": tree}
    lost = {**won, "name": "lost", "matched": False, "tree": leaf("x/y", "false")}
    return {"decision": "won", "outcome": "route", "model": "m", "decisions": [lost, won], **more}


def answer(name: str, score: float | None, matched: bool | None = True, **more: Any) -> Seen:
    status = "failed" if matched is None else "observed"
    return seen(name, {"status": status, "matched": matched, "score": score, **more}, Bound(0.5))


def said(told: Sentence) -> list[tuple[str, str]]:
    return [(one.signal, one.said) for one in told.because]


A, B, C = answer("image/a", 0.9), answer("image/b", 0.8), answer("keyword/c", 0.1, matched=False)
SIGNALS = {one.name: one for one in (A, B, C)}


def test_any_is_because_of_the_surest_child_alone() -> None:
    tree = node("any", "true", leaf("image/b", "true", 0.8), leaf("image/a", "true", 0.9), leaf("keyword/c", "false"))
    assert said(sentence(record(tree), SIGNALS)) == [("image/a", "scored 0.90 over 0.50")]


def test_all_is_because_of_every_child_and_not_tells_what_did_not_match() -> None:
    tree = node("all", "true", leaf("image/a", "true"), node("not", "true", leaf("keyword/c", "false")))
    told = sentence(record(tree), SIGNALS)
    assert said(told) == [("image/a", "scored 0.90 over 0.50"), ("keyword/c", "scored 0.10 under 0.50")]
    assert (told.opening, told.model, told.by, told.decision) == ("Sent to", "m", "decision", "won")


def test_at_least_is_because_of_those_that_are_true() -> None:
    tree = node(
        "at_least", "true", leaf("image/a", "true"), leaf("keyword/c", "false"), leaf("image/b", "true"), least=2
    )
    assert [name for name, _ in said(sentence(record(tree), SIGNALS))] == ["image/a", "image/b"]


def test_a_guard_that_fails_closed_says_what_is_unknown_and_that_it_counts() -> None:
    tree = node("any", "unknown", leaf("image/a", "unknown"), leaf("keyword/c", "false"))
    told = sentence(record(tree), {**SIGNALS, "image/a": answer("image/a", None, None, reason="truncated")})
    assert said(told) == [("image/a", "failed (truncated)")]
    assert told.closing == "what could not be answered counts as matched there"


def test_images_are_counted_from_one_and_only_those_that_matched() -> None:
    evidence = [{"pointer": "/a", "score": 0.9, "image": 0}, {"pointer": "/b", "score": 0.1, "image": 1}]
    evidence += [{"pointer": "/c", "score": 0.7, "image": number} for number in range(2, 8)]
    signals = {"image/a": answer("image/a", 0.9, evidence=evidence)}
    [because] = sentence(record(leaf("image/a", "true")), signals).because
    assert because.said == "scored 0.90 over 0.50 in images 1, 3, 4, 5 and 3 more"


def test_a_condition_with_bounds_of_its_own_tells_them() -> None:
    signals = {"context/long": answer("context/long", None, value=3500.0)}
    [because] = sentence(record(leaf("context/long", "true", within=">= 3000")), signals).because
    assert because.said == "is 3,500 (asked: >= 3000)"
    derived = {"band/risk": answer("band/risk", 0.4, label="low")}
    [because] = sentence(record(leaf("band/risk", "true", labels=["low", "none"])), derived).because
    assert because.said == "is 0.4 as “low” (asked: label low or none)"


def test_many_reasons_are_cut_and_counted() -> None:
    names = [f"image/s{number}" for number in range(7)]
    tree = node("all", "true", *(leaf(name, "true") for name in names))
    told = sentence(record(tree), {name: answer(name, 0.9) for name in names})
    assert (len(told.because), told.more) == (3, 4)


@pytest.mark.parametrize(
    ("facts", "closing"),
    [
        ({"reason": "requested_model"}, "the request named this model and the policy respects that"),
        ({"selection": {"reason": "no_capable_model"}}, "no model that it may go to can take it"),
        ({"selection": {"from": "default_model"}}, "no decision matched, and this is the default model"),
        ({}, "no decision matched"),
    ],
)
def test_without_a_winner_it_says_why_nonetheless(facts: dict[str, Any], closing: str) -> None:
    told = sentence({"decision": "default", "outcome": "route", "model": "m", "decisions": [], **facts}, {})
    assert (told.decision, told.closing) == ("", closing)


@pytest.mark.parametrize(
    ("outcome", "enforced", "opening"),
    [
        ("route", True, "Sent to"),
        ("refuse", True, "Refused"),
        ("clarify", True, "Answered with a question"),
        ("refuse", False, "Would have been refused"),
    ],
)
def test_the_deed_comes_first(outcome: str, enforced: bool, opening: str) -> None:
    told = sentence(record(leaf("image/a", "true"), outcome=outcome, enforced=enforced), SIGNALS)
    assert told.opening == opening


@pytest.mark.parametrize(("outcome", "opening"), [("refuse", "Refused"), ("route", "Let through")])
def test_what_was_not_judged_says_so(outcome: str, opening: str) -> None:
    told = sentence({"decision": "failure", "failure": "too_large", "outcome": outcome}, {})
    assert (told.opening, told.closing) == (f"{opening} without being judged", "too large")
