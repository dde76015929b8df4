"""Draws a decision and why it was made, as trees on a terminal; shared by `explain` and `records show`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.tree import Tree

from router.cli.output import escape
from router.policy.projection import PROJECTION_FAMILIES
from router.policy.resolve import Resolution
from router.policy.verdict import DecisionTrace, NodeTrace
from router.records.record import DecisionRecord, milliseconds
from router.signals.base import Evidence, Observation, SignalName

MARKS = {"true": "[green]yes[/]", "false": "[dim]no[/]", "unknown": "[yellow]unknown[/]", "open": "[dim]not asked[/]"}
SHOWN_EVIDENCE = 5

Observations = Mapping[SignalName, Observation]


def headline(record: DecisionRecord) -> str:
    """In one line: what was decided, why, and where the request went."""
    verdict = record.verdict
    where = (
        f"to {record.model} on {record.cluster}" if record.outcome == "route" else f"answered here: {record.outcome}"
    )
    profile = f", profile {verdict.profile}" if verdict.profile else ""
    told = f"({verdict.reason}{profile}), {where}, in {milliseconds(record.duration)} ms"
    return f"[bold]{escape(record.decision)}[/] {escape(told)}"


def trees(record: DecisionRecord) -> Iterator[RenderableType]:
    """Each decision's tree, the projections, and how the upstream was selected."""
    verdict = record.verdict
    for trace in verdict.trace:
        yield _decision_tree(trace, record.decision, verdict.observations)
    if derived := [name for name in verdict.observations if name.family in PROJECTION_FAMILIES]:
        yield _projections(derived, verdict.observations, verdict.reads)
    if record.resolution is not None:
        yield _selection(record.resolution)


def _projections(
    names: Sequence[SignalName], observations: Observations, reads: Mapping[SignalName, Sequence[SignalName]]
) -> Tree:
    tree = Tree("[bold]projections[/]")
    for name in names:
        observation = observations[name]
        label = f" {escape(observation.label)}" if observation.label else ""
        branch = tree.add(f"{name}:{label}{_answer(observation)}")
        for below in reads.get(name, ()):
            mark = MARKS[_word(observations.get(below))]
            branch.add(f"[dim]{below}: {mark}{_answer(observations.get(below))}[/]")
    return tree


def _word(observation: Observation | None) -> str:
    if observation is None:
        return "open"
    return {True: "true", False: "false", None: "unknown"}[observation.matched]


def _selection(resolution: Resolution) -> Tree:
    told = (
        f"{resolution.select} of {resolution.source}: {resolution.upstream.model}"
        if resolution.upstream
        else "nobody can take it"
    )
    tree = Tree(f"[bold]selection[/] {escape(told)}")
    if resolution.choice is not None:
        tree.add(resolution.choice.reason)
        for model, score in resolution.choice.scores.items():
            propensity = resolution.choice.propensities.get(model, 0)
            tree.add(f"{escape(model)}: {score:.4g}, chosen with probability {propensity:.3g}")
    for model, unmet in resolution.filtered.items():
        needs = ", ".join(f"{need.kind} {need.name}" for need in unmet)
        tree.add(f"[yellow]{escape(model)} cannot take it:[/] {escape(needs)}")
    return tree


def _decision_tree(trace: DecisionTrace, winner: str, observations: Observations) -> Tree:
    matched = {True: "[green]matched[/]", False: "[dim]no match[/]", None: "[dim]could not change the outcome[/]"}
    kind = "guard" if trace.guard else "route"
    won = " [bold green]<- wins[/]" if trace.name == winner else ""
    aside = "" if trace.considered else " (the requested model is respected)"
    tree = Tree(f"[bold]{escape(trace.name)}[/] {kind} {trace.priority}: {matched[trace.matched]}{won}{aside}")
    _add(tree, trace.tree, observations)
    return tree


def _add(tree: Tree, node: NodeTrace, observations: Observations) -> None:
    if node.leaf is None:
        kind = node.kind if node.least is None else f"{node.kind} {node.least}"
        branch = tree.add(f"{kind}: {MARKS[node.state]}")
        for child in node.children:
            _add(branch, child, observations)
        return
    observation = observations.get(node.leaf.signal)
    branch = tree.add(f"{escape(str(node.leaf))}: {MARKS[node.state]}{_answer(observation)}")
    evidence = observation.evidence if observation else ()
    for piece in evidence[:SHOWN_EVIDENCE]:
        branch.add(f"[dim]{escape(_piece(piece))}[/]")
    if len(evidence) > SHOWN_EVIDENCE:
        branch.add(f"[dim]... and {len(evidence) - SHOWN_EVIDENCE} more[/]")


def _answer(observation: Observation | None) -> str:
    if observation is None:
        return ""
    score = "" if observation.score is None else f", score {observation.score:.3f}"
    if observation.value is not None:
        score = f", value {observation.value:g}{score}"
    reason = f" ({observation.status}: {observation.reason})" if observation.matched is None else ""
    return f"{score}{escape(reason)} [dim]{milliseconds(observation.duration)} ms[/]"


def _piece(evidence: Evidence) -> str:
    image = "" if evidence.image is None else f"image {evidence.image + 1} "
    score = "" if evidence.score is None else f" {evidence.score:.3f}"
    span = "" if evidence.span is None else f" [{evidence.span[0]}:{evidence.span[1]}]"
    detail = f" ({evidence.detail})" if evidence.detail else ""
    return f"{image}{evidence.pointer}{span}{' ' + evidence.label if evidence.label else ''}{score}{detail}"
