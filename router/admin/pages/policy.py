"""The policy's view: the graph, the same as a table, what was found about it, and its text with line numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from router.admin.pages.graph import graph_of, summary
from router.admin.pages.placing import place
from router.admin.pages.trees import Step, steps_of

Document = Mapping[str, Any]

LINES_SHOWN: Final = 20_000
_KEY: Final = re.compile(r"^(\s*(?:- +)?)([\w./ -]+?)(:)(?=\s|$)")
_COMMENT: Final = re.compile(r"(?:^|\s)#")


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of the policy: indentation, key and rest apart, so that they can differ in colour."""

    number: int
    indent: str
    key: str
    rest: str
    comment: str
    severity: str


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """A decision in the table; `line` is where the text names it, None where it is not found."""

    name: str
    guard: bool
    priority: int
    profile: str
    outcome: str
    ends: str
    hits: int
    share: float
    line: int | None
    steps: tuple[Step, ...]


def policy_view(policy: Document) -> dict[str, Any]:
    """What `policy.html.j2` needs."""
    graph = graph_of(policy)
    hits: Mapping[str, int] = policy.get("hits") or {}
    written = (policy.get("document") or "").splitlines()
    findings = sorted(policy.get("findings") or (), key=lambda one: (one.get("line") or 0, one.get("column") or 0))
    return {
        "policy": policy,
        "drawing": place(graph),
        "summary": summary(graph),
        "decisions": _decisions(policy, hits, written),
        "default_hits": hits.get("default", 0),
        "total": sum(hits.values()),
        "findings": findings,
        "others": [row for row in policy.get("workers") or () if row.get("digest") != policy.get("digest")],
        "lines": list(_lines(written[:LINES_SHOWN], findings)),
        "lines_left_out": max(0, len(written) - LINES_SHOWN),
    }


def _decisions(policy: Document, hits: Mapping[str, int], written: Sequence[str]) -> list[DecisionRow]:
    most = max([*hits.values(), 1])
    places = _places(written)
    rows = [
        DecisionRow(
            name=one["name"],
            guard=one["guard"],
            priority=one["priority"],
            profile=one.get("profile") or "",
            outcome=one["outcome"],
            ends=_ends(one),
            hits=hits.get(one["name"], 0),
            share=hits.get(one["name"], 0) / most,
            line=places.get(one["name"]),
            steps=tuple(steps_of(one["condition"], {})),
        )
        for one in policy.get("decisions", ())
    ]
    return sorted(rows, key=lambda row: (not row.guard, -row.priority))


def _ends(one: Document) -> str:
    if one["outcome"] == "refuse":
        return f"refuse, {one.get('status')}"
    if one["outcome"] == "clarify":
        return "ask back"
    select = one.get("select")
    models = ", ".join(one.get("models") or ())
    return f"{models} ({select})" if select and len(one.get("models") or ()) > 1 else models


def _places(written: Sequence[str]) -> dict[str, int]:
    """First line of the text that gives each name, as in `- name: block-attack`."""
    named = re.compile(r"^\s*(?:- *)?\{?\s*name:\s*[\"']?(.*?)[\"']?\s*(?:[,}#].*)?$")
    found: dict[str, int] = {}
    for number, line in enumerate(written, 1):
        if match := named.match(line):
            found.setdefault(match[1], number)
    return found


def _lines(written: Sequence[str], findings: Sequence[Document]) -> Iterator[TextLine]:
    severities = {one.get("line"): one.get("severity") or "note" for one in reversed(findings)}
    for number, line in enumerate(written, 1):
        comment_at = match.start() if (match := _COMMENT.search(line)) else len(line)
        code, comment = line[:comment_at], line[comment_at:]
        key = _KEY.match(code)
        indent, name, rest = (key[1], key[2], code[key.end(2) :]) if key else ("", "", code)
        yield TextLine(number, indent, name, rest, comment, severities.get(number, ""))
