"""A condition tree as a flat run of openings and closings: a template needs no recursion then, however deep it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from router.admin.pages.evidence import Seen

Document = Mapping[str, Any]
STATES: Final = {"true": "true", "false": "false", "unknown": "unknown", "open": "not asked"}
_KINDS: Final = {"all": "all of", "any": "any of", "not": "not"}


@dataclass(frozen=True, slots=True)
class Step:
    """One opening or closing. A node without children is opened and closed like any other."""

    turn: Literal["open", "close"]
    text: str = ""
    state: str = ""
    word: str = ""
    signal: str = ""
    asked: str = ""
    score: float | None = None
    within: bool = False
    """Whether there are children between the opening and the closing."""


@dataclass(frozen=True, slots=True)
class Tree:
    """One decision and its tree. `verdict` is how it came out, `won` whether it decided."""

    name: str
    guard: bool
    priority: int
    considered: bool
    state: str
    verdict: str
    won: bool
    nodes: int
    steps: tuple[Step, ...]


def trees_of(record: Document, signals: Mapping[str, Seen]) -> list[Tree]:
    """The decisions that the request met, guards first, then as they rank."""
    rows = [_tree(one, record.get("decision") or "", signals) for one in record.get("decisions", ())]
    return sorted(rows, key=lambda row: (not row.guard, -row.priority))


def steps_of(root: Document, signals: Mapping[str, Seen]) -> Iterator[Step]:
    """The tree, in the order of writing; a condition without states may be given as well."""
    waiting: list[Document | Step] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Step):
            yield node
            continue
        opening = _opening(node, signals)
        yield opening
        waiting.append(Step("close", within=opening.within))
        waiting.extend(reversed(node.get("children", ())))


def asked_of(leaf: Document) -> str:
    """The bounds and labels that a condition asks for in place of the signal's own."""
    labels = " or ".join(leaf.get("labels", ()))
    return ", ".join(filter(None, (leaf.get("within", ""), f"label {labels}" if labels else "")))


def _tree(one: Document, winner: str, signals: Mapping[str, Seen]) -> Tree:
    matched = one["matched"]
    verdict = "could not matter" if matched is None else "matched" if matched else "no match"
    if not one.get("considered", True):
        verdict = "left out: the requested model is respected"
    steps = tuple(steps_of(one["tree"], signals))
    return Tree(
        name=one["name"],
        guard=one["guard"],
        priority=one["priority"],
        considered=one.get("considered", True),
        state="open" if matched is None else "true" if matched else "false",
        verdict=verdict,
        won=one["name"] == winner,
        nodes=len(steps) // 2,
        steps=steps,
    )


def _opening(node: Document, signals: Mapping[str, Seen]) -> Step:
    state: str = node.get("state") or ""
    word: str = STATES.get(state, state)
    if node["kind"] == "signal":
        answer = signals.get(node["signal"])
        return Step(
            "open",
            state=state,
            word=word,
            signal=node["signal"],
            asked=asked_of(node),
            score=None if answer is None else answer.score,
        )
    kind: str = node["kind"]
    text = f"at least {node.get('least', 0)} of" if kind == "at_least" else _KINDS.get(kind, kind)
    return Step("open", text=text, state=state, word=word, within=bool(node.get("children")))
