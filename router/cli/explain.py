"""`pointsman explain`: decides one request here and now, as a worker would, and shows why."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.tree import Tree

from router.cli.output import DOES_NOT_HOLD, FINE, WRONG_USE, Stop, complain, out, policy_or_stop, print_json
from router.config.load import LoadedPolicy
from router.extproc.pipeline import Judgement
from router.extproc.worker import SetupError, build_house
from router.policy.verdict import DecisionTrace, NodeTrace
from router.records.record import milliseconds
from router.request.apis import detect
from router.request.errors import RequestError
from router.request.view import Api
from router.signals.base import Evidence, Observation, SignalName

MARKS = {"true": "[green]yes[/]", "false": "[dim]no[/]", "unknown": "[yellow]unknown[/]", "open": "[dim]not asked[/]"}
SHOWN_EVIDENCE = 5

Observations = Mapping[SignalName, Observation]


def run_explain(policy: Path, request: Path, path: str, as_json: bool) -> int:
    """Exit code 0 when a decision was made, 1 when the policy or the request cannot be read, 2 for wrong use."""
    api = detect("POST", path)
    if api is None:
        complain(f"{path} is no path of an LLM request; try /v1/chat/completions")
        return WRONG_USE
    try:
        loaded = policy_or_stop(policy)
        body = _body_or_stop(request)
        judgement = asyncio.run(_judge(loaded, api, body))
    except Stop as stop:
        return stop.code
    except SetupError as error:
        complain(str(error))
        return DOES_NOT_HOLD
    except RequestError as error:
        where = f" at {error.pointer}" if error.pointer else ""
        complain(f"{request}: {error.message}{where} (the client would get {error.status})")
        return DOES_NOT_HOLD
    if as_json:
        print_json(judgement.record.whole())
    else:
        _show(judgement)
    return FINE


def _body_or_stop(request: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(request) == "-" else request.read_bytes()
    except OSError as error:
        complain(f"{request}: {error.strerror}")
        raise Stop(WRONG_USE) from None


async def _judge(loaded: LoadedPolicy, api: Api, body: bytes) -> Judgement:
    async with build_house(loaded, threads=1) as house:
        return await house.pipeline.judge_body(api, body)


def _show(judgement: Judgement) -> None:
    record = judgement.record
    verdict = record.verdict
    where = (
        f"to {record.model} on {record.cluster}" if record.outcome == "route" else f"answered here: {record.outcome}"
    )
    out.print(f"[bold]{record.decision}[/] ({verdict.reason}), {where}, in {milliseconds(record.duration)} ms")
    for trace in verdict.trace:
        out.print(_decision_tree(trace, record.decision, verdict.observations))


def _decision_tree(trace: DecisionTrace, winner: str, observations: Observations) -> Tree:
    matched = {True: "[green]matched[/]", False: "[dim]no match[/]", None: "[dim]could not change the outcome[/]"}
    kind = "guard" if trace.guard else "route"
    won = " [bold green]<- wins[/]" if trace.name == winner else ""
    aside = "" if trace.considered else " (the requested model is respected)"
    tree = Tree(f"[bold]{trace.name}[/] {kind} {trace.priority}: {matched[trace.matched]}{won}{aside}")
    _add(tree, trace.tree, observations)
    return tree


def _add(tree: Tree, node: NodeTrace, observations: Observations) -> None:
    if node.signal is None:
        branch = tree.add(f"{node.kind}: {MARKS[node.state]}")
        for child in node.children:
            _add(branch, child, observations)
        return
    observation = observations.get(node.signal)
    branch = tree.add(f"{node.signal}: {MARKS[node.state]}{_answer(observation)}")
    evidence = observation.evidence if observation else ()
    for piece in evidence[:SHOWN_EVIDENCE]:
        branch.add(f"[dim]{_piece(piece)}[/]")
    if len(evidence) > SHOWN_EVIDENCE:
        branch.add(f"[dim]... and {len(evidence) - SHOWN_EVIDENCE} more[/]")


def _answer(observation: Observation | None) -> str:
    if observation is None:
        return ""
    score = "" if observation.score is None else f", score {observation.score:.3f}"
    reason = f" ({observation.status}: {observation.reason})" if observation.matched is None else ""
    return f"{score}{reason} [dim]{milliseconds(observation.duration)} ms[/]"


def _piece(evidence: Evidence) -> str:
    image = "" if evidence.image is None else f"image {evidence.image + 1} "
    score = "" if evidence.score is None else f" {evidence.score:.3f}"
    span = "" if evidence.span is None else f" [{evidence.span[0]}:{evidence.span[1]}]".replace("[", r"\[")
    detail = f" ({evidence.detail})" if evidence.detail else ""
    return f"{image}{evidence.pointer}{span}{' ' + evidence.label if evidence.label else ''}{score}{detail}"
