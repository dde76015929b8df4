"""The policy's graph: what is tied to what, and that boxes never lie upon each other."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_insight import policy_of

from router.admin.pages.graph import graph_of, leaves_of, summary
from router.admin.pages.placing import TOP, apart, place
from router.admin.pages.policy import policy_view
from router.config.load import parse_policy

Document = dict[str, Any]
POLICY = """
version: 1
upstreams:
  - {model: a, cluster: ca, modalities: [text]}
  - {model: b, cluster: cb}
default_model: a
signals:
  keyword: {x: {any: [one]}, y: {any: [two]}, unread: {any: [three]}}
  context: {long: {min_tokens: 3000}}
projections:
  score: {risk: {inputs: [{keyword: x, weight: 0.5}, {keyword: y, weight: 0.5}]}}
  band: {level: {of: risk, bands: {low: {lt: 0.5}, high: {gte: 0.5}}}}
decisions:
  - name: careful
    priority: 10
    guard: true
    when: {all: [{band: level, label: high}, {not: {context: long}}]}
    respond: {status: 403, code: c, message: m}
  - name: wide
    priority: 20
    when: {any: [{keyword: x}, {not: {keyword: x}}]}
    route: {models: [a, b]}
"""


@pytest.fixture
def policy(tmp_path: Any) -> Document:
    return policy_of(parse_policy(POLICY.encode(), tmp_path / "policy.yaml"))


def test_what_is_read_is_tied_and_what_is_not_stands_alone(policy: Document) -> None:
    graph = graph_of(policy)
    tied = set(graph.lines)
    assert ("s:keyword/x", "p:score/risk") in tied
    assert ("p:score/risk", "p:band/level") in tied
    assert ("p:band/level", "d:careful") in tied
    assert ("d:careful", "r:403") in tied
    assert {("d:wide", "m:a"), ("d:wide", "m:b"), ("d:default", "m:a")} <= tied
    assert not any("s:keyword/unread" in pair for pair in tied)
    assert graph.boxes["s:keyword/unread"].tone == "idle"
    assert not any("conversation" in key for key in graph.boxes)


def test_a_line_below_not_is_negated_unless_it_is_read_plainly_too(policy: Document) -> None:
    lines = graph_of(policy).lines
    assert lines["s:context/long", "d:careful"].negated
    assert not lines["s:keyword/x", "d:wide"].negated


def test_projections_of_projections_stand_further_right(policy: Document) -> None:
    placed = {one.box.key: one for one in place(graph_of(policy)).boxes}
    order = ["s:keyword/x", "p:score/risk", "p:band/level", "d:careful", "r:403"]
    assert all(placed[a].x + placed[a].width < placed[b].x for a, b in pairwise(order))


def test_guards_come_first_then_priority(policy: Document) -> None:
    placed = [one for one in place(graph_of(policy)).boxes if one.box.column == "decision"]
    assert [one.box.title for one in placed] == ["careful", "wide", "default"]
    assert [row.name for row in policy_view(policy)["decisions"]] == ["careful", "wide"]


def test_hits_are_counted_at_decisions_and_widen_their_lines(policy: Document) -> None:
    graph = graph_of({**policy, "hits": {"careful": 3, "wide": 1000}})
    assert graph.boxes["d:wide"].badge == "1,000"
    assert graph.lines["d:wide", "m:a"].share > graph.lines["d:careful", "r:403"].share


def test_counts_and_scores_are_written_as_what_they_are(policy: Document) -> None:
    boxes = graph_of(policy).boxes
    assert boxes["s:context/long"].badge == "≥ 3,000"
    assert boxes["s:keyword/x"].badge == "≥ 0.55"


def test_the_summary_counts_what_there_is(policy: Document) -> None:
    assert summary(graph_of(policy)) == "4 signals, 2 projections, 3 decisions, 3 destinations"


def test_decisions_know_their_line(policy: Document) -> None:
    rows = {row.name: row.line for row in policy_view(policy)["decisions"]}
    written = POLICY.splitlines()
    assert {name: written[line - 1].strip() for name, line in rows.items()} == {
        "careful": "- name: careful",
        "wide": "- name: wide",
    }


def test_an_empty_policy_is_drawn_empty() -> None:
    drawing = place(graph_of({}))
    assert (drawing.boxes, drawing.lines) == ((), ())


def test_leaves_know_how_often_they_are_negated() -> None:
    leaf = {"kind": "signal", "signal": "a/b"}
    twice = {"kind": "not", "children": [{"kind": "not", "children": [leaf]}]}
    both = {"kind": "all", "children": [copy.deepcopy(twice), {"kind": "not", "children": [leaf]}]}
    assert list(leaves_of(both)) == [("a/b", False), ("a/b", True)]


names = st.integers(0, 30).map(lambda number: f"f/s{number}")
conditions = st.recursive(
    names.map(lambda name: {"kind": "signal", "signal": name}),
    lambda below: st.builds(
        lambda kind, children: {"kind": kind, "children": children},
        st.sampled_from(["all", "any", "not"]),
        st.lists(below, min_size=1, max_size=4),
    ),
    max_leaves=12,
)


@st.composite
def policies(draw: st.DrawFn) -> Document:
    models = [f"m{number}" for number in range(draw(st.integers(1, 8)))]
    signals = [{"name": f"f/s{number}", "threshold": None, "matching": None} for number in range(31)]
    projections = [
        {"name": f"band/p{number}", "kind": "band", "of": draw(st.lists(names, max_size=4))}
        for number in range(draw(st.integers(0, 5)))
    ]
    for before, after in pairwise(projections):
        after["of"].append(before["name"])
    decisions = [
        {
            "name": f"d{number}",
            "priority": draw(st.integers(0, 9)),
            "guard": draw(st.booleans()),
            "outcome": draw(st.sampled_from(["route", "refuse", "clarify"])),
            "models": draw(st.lists(st.sampled_from(models), min_size=1, max_size=3, unique=True)),
            "status": 403,
            "condition": draw(conditions),
        }
        for number in range(draw(st.integers(0, 20)))
    ]
    upstreams = [{"model": model, "cluster": "c"} for model in models]
    rest = {"upstreams": upstreams, "default_model": "m0"}
    return {"signals": signals, "projections": projections, "decisions": decisions, **rest}


@given(policies())
def test_no_two_boxes_touch_and_all_are_inside(policy: Document) -> None:
    drawing = place(graph_of(policy))
    layers: dict[float, list[Any]] = {}
    for one in drawing.boxes:
        assert one.x >= 0
        assert one.x + one.width <= drawing.width
        assert one.y >= TOP - 1e-6
        assert one.y + one.height <= drawing.height
        layers.setdefault(one.x, []).append(one)
    for boxes in layers.values():
        ordered = sorted(boxes, key=lambda one: one.y)
        assert all(a.y + a.height < b.y for a, b in pairwise(ordered))


@given(st.lists(st.floats(-1e4, 1e4), max_size=30).map(sorted), st.floats(1, 100))
def test_apart_is_apart_and_leaves_what_is_apart_already(wanted: list[float], step: float) -> None:
    placed = apart(wanted, step)
    assert len(placed) == len(wanted)
    assert all(b - a >= step - 1e-6 for a, b in pairwise(placed))
    assert sum(placed) == pytest.approx(sum(wanted), abs=1e-4)
    if all(b - a >= step for a, b in pairwise(wanted)):
        assert placed == pytest.approx(wanted)
