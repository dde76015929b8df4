"""`pointsman check`: does the policy hold together, and does it say what its author meant?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from router.cli.output import DOES_NOT_HOLD, FINE, Stop, complain, escape, file_or_stop, note, out, print_json
from router.cli.sarif import Row, sarif
from router.config.lint import Lint, lint
from router.config.load import LoadedPolicy, load_policy
from router.config.problems import PolicyError, Problem, dotted
from router.config.shadow import LOCATION as SHADOW
from router.config.shadow import load_shadow
from router.extproc.machinery import open_packs, servers_of
from router.inference.remote.access import read_access
from router.inference.remote.errors import RemoteSetupError
from router.packs.files import PackError
from router.packs.layout import lay_out
from router.policy.proof.findings import Finding

Format = Literal["text", "json", "sarif"]


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found: problems keep a policy from being served, lints do not."""

    loaded: LoadedPolicy | None
    problems: tuple[Problem, ...]
    lints: tuple[Lint, ...]

    def holds(self, strict: bool) -> bool:
        """Whether nothing is wrong: no problem, no error, and where that is asked for nothing to be told at all."""
        levels = {each.finding.level for each in self.lints}
        return not self.problems and (not levels if strict else "error" not in levels)


def run_check(path: Path, output: Format, strict: bool) -> int:
    """Schema, references, packs and their weights, then what can be proven about the decisions."""
    try:
        file_or_stop(path)
    except Stop as stop:
        return stop.code
    checked = check(path)
    holds = checked.holds(strict)
    if output == "json":
        print_json(_json(path, checked, holds))
    elif output == "sarif":
        print_json(sarif(path, _rows(checked)))
    else:
        _print(path, checked, holds)
    return FINE if holds else DOES_NOT_HOLD


def check(path: Path) -> Checked:
    """Everything that is to be said about the file."""
    try:
        loaded = load_policy(path)
    except PolicyError as error:
        return Checked(None, error.problems, ())
    try:
        _lay_out_packs(loaded)
        _read_access(loaded)
    except (PackError, RemoteSetupError) as error:
        location = ("encoders",) if loaded.encoders.text or loaded.encoders.vision else ("signals",)
        return Checked(None, (loaded.source.problem(location, str(error), at_key=True),), ())
    if problems := _problems_of_shadow(loaded):
        return Checked(None, problems, ())
    return Checked(loaded, (), lint(loaded))


def _problems_of_shadow(loaded: LoadedPolicy) -> tuple[Problem, ...]:
    """What keeps the shadow policy, where there is one, from being tried; what it decides is its own file's matter."""
    try:
        shadow = load_shadow(loaded)
        if shadow is not None:
            _lay_out_packs(shadow)
    except PolicyError as error:
        return error.problems
    except PackError as error:
        return (loaded.source.problem(SHADOW, f"the shadow policy cannot be used: {error}"),)
    return ()


def _lay_out_packs(loaded: LoadedPolicy) -> None:
    packs = open_packs(loaded)
    elsewhere = loaded.encoders.elsewhere
    if packs.text is not None:
        lay_out(packs.text, "text", elsewhere="text" in elsewhere)
    if packs.vision is not None:
        lay_out(packs.vision, "vision", elsewhere="vision" in elsewhere)
    for pack in packs.classifiers.values():
        lay_out(pack, "classifier")


def _read_access(loaded: LoadedPolicy) -> None:
    """Certificates and tokens for the servers that run encoders; nobody is called. Raises RemoteSetupError."""
    for _, server in servers_of(loaded):
        read_access(server)


def _rows(checked: Checked) -> Sequence[Row]:
    problems = [Row("problem", "error", _told(each), each.line, each.column) for each in checked.problems]
    lints = [
        Row(each.finding.kind, each.finding.level, _shown(each), each.problem.line, each.problem.column)
        for each in checked.lints
    ]
    return [*problems, *lints]


def _told(problem: Problem) -> str:
    return f"{dotted(problem.location)}: {problem.message}" if problem.location else problem.message


def _shown(each: Lint) -> str:
    return _told(each.problem) + (f"; {_example(each.finding)}" if each.finding.witness else "")


def _example(finding: Finding) -> str:
    return f"for example when {', '.join(f'{leaf} is {_word(true)}' for leaf, true in finding.witness)}"


def _json(path: Path, checked: Checked, holds: bool) -> dict[str, Any]:
    return {
        "policy": str(path),
        "holds": holds,
        "digest": checked.loaded.policy.digest if checked.loaded else None,
        "problems": [_place(each) for each in checked.problems],
        "findings": [
            {
                "kind": each.finding.kind,
                "level": each.finding.level,
                **_place(each.problem),
                "subject": {each.finding.subject.kind: each.finding.subject.name},
                "witness": dict(each.finding.witness),
                "sampled": each.finding.sampled,
            }
            for each in checked.lints
        ],
    }


def _place(problem: Problem) -> dict[str, Any]:
    return {
        "line": problem.line,
        "column": problem.column,
        "key": dotted(problem.location),
        "message": problem.message,
    }


def _print(path: Path, checked: Checked, holds: bool) -> None:
    for problem in checked.problems:
        complain(f"{path}:{problem.line}:{problem.column}: {_told(problem)}")
    for each in checked.lints:
        problem, finding = each.problem, each.finding
        note(f"{path}:{problem.line}:{problem.column}: {finding.level}: {_told(problem)} [{finding.kind}]")
        if finding.witness:
            note(f"    {_example(finding)}")
    if checked.loaded is None:
        return
    policy = checked.loaded.policy
    guards = sum(decision.guard for decision in policy.all_decisions)
    profiles = f", {len(policy.profiles)} profiles" if policy.profiles else ""
    told = f"{len(checked.lints)} findings" if checked.lints else "no findings"
    verdict = "holds" if holds else "does not hold"
    out.print(
        f"{escape(str(path))} {verdict}: {len(policy.all_decisions)} decisions ({guards} guards), "
        f"{len(policy.upstreams)} models{profiles}, {told}, digest {policy.digest[:12]}",
        soft_wrap=True,
    )


def _word(true: bool) -> str:
    return "true" if true else "false"
