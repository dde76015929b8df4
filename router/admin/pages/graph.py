"""The policy as a graph: signals, projections, decisions, and where requests end. Edges say what reads what.

Placement is `placing.py`'s; this file knows what the boxes and lines are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from router.admin.pages.evidence import Bound, bounds_of, kind_of
from router.admin.pages.rendering import count, figure, score
from router.signals.registry import FAMILIES

Document = Mapping[str, Any]
Column = Literal["signal", "projection", "decision", "end"]
COLUMNS: Final[tuple[Column, ...]] = ("signal", "projection", "decision", "end")


@dataclass(frozen=True, slots=True)
class Box:
    """A node. `tone` is its colour, `below` its second line, `badge` a number to its right."""

    key: str
    column: Column
    title: str
    below: str
    tone: str
    badge: str = ""
    depth: int = 0
    """How many projections of projections it rests on: those stand one after the other."""


@dataclass(frozen=True, slots=True)
class Line:
    """An edge. `negated`: it is read below a `not`. `share` of all hits that went along it, 0-1."""

    start: str
    end: str
    negated: bool = False
    share: float = 0.0


@dataclass(slots=True)
class Graph:
    """Boxes by key, in the order in which they were found, and the lines between them."""

    boxes: dict[str, Box] = field(default_factory=dict)
    lines: dict[tuple[str, str], Line] = field(default_factory=dict)

    def box(self, box: Box) -> str:
        """Add it unless it is there; its key."""
        self.boxes.setdefault(box.key, box)
        return box.key

    def line(self, start: str, end: str, *, negated: bool = False, share: float = 0.0) -> None:
        """Add it; of two between the same boxes one is drawn, plain where either is."""
        if start in self.boxes and end in self.boxes:
            before = self.lines.get((start, end))
            plain = before is not None and not before.negated
            total = share + (before.share if before else 0.0)
            self.lines[start, end] = Line(start, end, negated and not plain, total)


def graph_of(policy: Document) -> Graph:
    """All that the policy has, signals that it has written and does not read too."""
    graph = Graph()
    bounds = bounds_of(policy)
    for one in policy.get("signals", ()):
        if not one.get("asked", True) and _is_builtin(one["name"]):
            continue
        bound = bounds.get(one["name"])
        badge = "" if bound is None else f"{'≤' if bound.below else '≥'} {_number(bound)}"
        tone = kind_of(one["name"]) if one.get("asked", True) else "idle"
        graph.box(Box(f"s:{one['name']}", "signal", one["name"], "", tone, badge))
    depths = _depths(policy.get("projections", ()))
    for one in policy.get("projections", ()):
        depth = depths[one["name"]]
        graph.box(Box(f"p:{one['name']}", "projection", one["name"], one.get("kind") or "", "derived", depth=depth))
    for one in policy.get("projections", ()):
        for name in one.get("of") or ():
            graph.line(_reads(graph, name), f"p:{one['name']}")
    hits: Mapping[str, int] = policy.get("hits") or {}
    total = sum(hits.values()) or 1
    for one in _ranked(policy):
        _add_decision(graph, one, hits.get(one["name"], 0), total)
    _add_default(graph, policy, hits.get("default", 0), total)
    for one in policy.get("upstreams", ()):
        _upstream(graph, one["model"], policy)
    return graph


def leaves_of(condition: Document) -> Iterator[tuple[str, bool]]:
    """Each signal that the condition reads, and whether an odd number of `not` stand over it."""
    waiting = [(condition, False)]
    while waiting:
        node, negated = waiting.pop()
        if node["kind"] == "signal":
            yield node["signal"], negated
        negated ^= node["kind"] == "not"
        waiting.extend((child, negated) for child in reversed(node.get("children", ())))


def _number(bound: Bound) -> str:
    return figure(bound.at) if bound.counted else score(bound.at)


def _is_builtin(name: str) -> bool:
    """Whether every policy has this signal, without writing it."""
    family, _, own = name.partition("/")
    return family in FAMILIES and own in FAMILIES[family].builtins


def _ranked(policy: Document) -> list[Document]:
    return sorted(policy.get("decisions", ()), key=lambda one: (not one["guard"], -one["priority"]))


def _depths(projections: Sequence[Document]) -> dict[str, int]:
    """0 for a projection over signals alone, one more for each that it rests on in turn; they stand in that order."""
    depths: dict[str, int] = {}
    for one in projections:
        depths[one["name"]] = max((depths[name] + 1 for name in one.get("of") or () if name in depths), default=0)
    return depths


def _reads(graph: Graph, name: str) -> str:
    return f"p:{name}" if f"p:{name}" in graph.boxes else f"s:{name}"


def _add_decision(graph: Graph, one: Document, hits: int, total: int) -> None:
    kind = "guard, " if one["guard"] else ""
    profile = f" · {one['profile']}" if one.get("profile") else ""
    box = Box(
        f"d:{one['name']}",
        "decision",
        one["name"],
        f"{kind}priority {one['priority']}{profile}",
        "guard" if one["guard"] else "decision",
        f"{hits:,}",
    )
    key = graph.box(box)
    for name, negated in leaves_of(one["condition"]):
        graph.line(_reads(graph, name), key, negated=negated)
    if one["outcome"] == "route":
        for model in one.get("models", ()):
            # Which of several took it is not counted here.
            graph.line(key, graph.box(_end(model)), share=hits / total / len(one["models"]))
    else:
        graph.line(key, graph.box(_answer(one)), share=hits / total)


def _add_default(graph: Graph, policy: Document, hits: int, total: int) -> None:
    model = policy.get("default_model")
    if not model:
        return
    key = graph.box(Box("d:default", "decision", "default", "no decision matched", "idle", f"{hits:,}"))
    graph.line(key, graph.box(_end(model)), share=hits / total)


def _end(model: str) -> Box:
    return Box(f"m:{model}", "end", model, "", "route")


def _answer(one: Document) -> Box:
    if one["outcome"] == "refuse":
        return Box(f"r:{one.get('status')}", "end", "refuse", f"status {one.get('status')}", "refuse")
    return Box("r:clarify", "end", "ask back", "answered here", "clarify")


def _upstream(graph: Graph, model: str, policy: Document) -> None:
    """Give the model's box its cluster and its modalities."""
    one = next(each for each in policy["upstreams"] if each["model"] == model)
    modalities = " + ".join(one.get("modalities") or ())
    told = " · ".join(filter(None, (one.get("cluster") or "", modalities)))
    key = graph.box(_end(model))
    graph.boxes[key] = Box(key, "end", model, told, "route")


def summary(graph: Graph) -> str:
    """The graph in a sentence, for who cannot see it."""
    counted = [sum(box.column == column for box in graph.boxes.values()) for column in COLUMNS]
    words = ("signal", "projection", "decision", "destination")
    return ", ".join(count(number, word) for number, word in zip(counted, words, strict=True) if number)
