"""`pointsman eval`: runs labelled requests through the real pipeline and tells how often it is right."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.progress import Progress
from rich.table import Table

from router.cli.output import (
    DOES_NOT_HOLD,
    FINE,
    WRONG_USE,
    Stop,
    complain,
    errors,
    escape,
    note,
    out,
    policy_or_stop,
    print_json,
)
from router.config.load import LoadedPolicy, SignalSpec, parse_policy
from router.config.problems import PolicyError
from router.config.yaml_source import YamlSource, parse_yaml
from router.evaluation.cases import Case, CasesError, read_cases
from router.evaluation.edit import EditError, set_number, write_over
from router.evaluation.labels import LabelFigures
from router.evaluation.markdown import render_markdown
from router.evaluation.page import render
from router.evaluation.report import Failure, Report, report_of
from router.evaluation.run import Came, run_cases
from router.evaluation.statistics import Figure
from router.evaluation.tuning import Goal, Proposal, TuningError, parse_goal, propose
from router.extproc.machinery import SetupError
from router.records.record import milliseconds

CASE_FILES = ("cases.jsonl", "cases.yaml", "cases.yml")
SHOWN_FAILURES = 20


def run_eval(
    target: Path,
    cases: Path | None,
    *,
    as_json: bool,
    html: Path | None,
    markdown: Path | None,
    least: float | None,
    tune: Sequence[str],
    write: bool,
    concurrency: int | None,
) -> int:
    """0 when enough cases pass, 1 when they do not or the policy or the cases do not hold, 2 for wrong use."""
    cores = len(os.sched_getaffinity(0))
    try:
        goals = _goals_or_stop(tune, write)
        policy, file = _files_or_stop(target, cases)
        _outputs_or_stop({"--html": html, "--markdown": markdown}, {"policy": policy, "cases": file})
        loaded = policy_or_stop(policy)
        read = read_cases(file)
        specs = [_spec_or_stop(goal, loaded) for goal in goals]
        run = _run(loaded, read, concurrency or cores, cores)
        report = report_of(str(policy), loaded.policy.digest, loaded.limits.decision_ms / 1000, run)
        proposals, troubles = _proposals(goals, specs, report)
        if html is not None:
            _write_text(html, render(report, read, proposals, loaded.policy.apis))
        if markdown is not None:
            _write_text(markdown, render_markdown(report, proposals))
        if as_json:
            print_json({**report.as_json(), "proposals": [asdict(each) for each in proposals]})
        else:
            _show(report, proposals)
        for trouble in troubles:
            complain(trouble)
        if troubles:
            return DOES_NOT_HOLD
        if write:
            _write_or_stop(loaded, proposals)
    except Stop as stop:
        return stop.code
    except CasesError as error:
        for line in error.lines:
            complain(line)
        return DOES_NOT_HOLD
    except (SetupError, OSError) as error:
        complain(str(error))
        return DOES_NOT_HOLD
    return FINE if report.passed.value >= (1.0 if least is None else least) else DOES_NOT_HOLD


def _goals_or_stop(tune: Sequence[str], write: bool) -> list[Goal]:
    if write and not tune:
        complain("--write writes what --tune proposes; name a signal, as in --tune image/passport=fpr:0.01")
        raise Stop(WRONG_USE)
    try:
        return [parse_goal(text) for text in tune]
    except ValueError as error:
        complain(str(error))
        raise Stop(WRONG_USE) from None


def _files_or_stop(target: Path, cases: Path | None) -> tuple[Path, Path]:
    """The policy and the cases; a folder has both."""
    policy = target / "policy.yaml" if target.is_dir() else target
    if cases is None and not target.is_dir():
        complain(f"{target} is no folder; name the cases too: pointsman eval {target} CASES")
        raise Stop(WRONG_USE)
    found = cases or next((target / name for name in CASE_FILES if (target / name).is_file()), None)
    if found is None:
        complain(f"{target}: has no {', '.join(CASE_FILES)}")
        raise Stop(WRONG_USE)
    for path in (policy, found):
        if not path.is_file():
            complain(f"{path}: {'is no file' if path.exists() else 'no such file'}")
            raise Stop(WRONG_USE)
    return policy, found


def _outputs_or_stop(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path]) -> None:
    """Said before the cases are run, which takes long."""
    taken = {path.resolve(): f"the {what}" for what, path in inputs.items()}
    for option, path in outputs.items():
        if path is None:
            continue
        trouble = ""
        if not path.parent.is_dir():
            trouble = f"no folder {path.parent}"
        elif path.is_dir():
            trouble = "is a folder; name a file"
        elif path.resolve() in taken:
            trouble = f"would be written over {taken[path.resolve()]}"
        if trouble:
            complain(f"{option} {path}: {trouble}")
            raise Stop(WRONG_USE)
        taken[path.resolve()] = f"what {option} writes"


def _write_text(path: Path, text: str) -> None:
    """Lone surrogates, which cases may have and UTF-8 has not, become question marks."""
    path.write_text(text, encoding="utf-8", errors="replace")


def _spec_or_stop(goal: Goal, loaded: LoadedPolicy) -> SignalSpec:
    [*found] = (spec for spec in loaded.signals if str(spec.name) == goal.signal)
    if not found:
        complain(f"--tune {goal.signal}: the policy has no such signal")
        raise Stop(WRONG_USE)
    return found[0]


def _proposals(goals: Sequence[Goal], specs: Sequence[SignalSpec], report: Report) -> tuple[list[Proposal], list[str]]:
    """A threshold for each goal, or why there is none."""
    proposals, troubles = [], []
    for goal, spec in zip(goals, specs, strict=True):
        try:
            proposals.append(propose(goal, spec, report.answers.get(goal.signal, ())))
        except TuningError as error:
            troubles.append(str(error))
    return proposals, troubles


def _write_or_stop(loaded: LoadedPolicy, proposals: Sequence[Proposal]) -> None:
    source: YamlSource = loaded.source
    try:
        for each in proposals:
            location = ("signals", *each.goal.signal.split("/", 1), each.key)
            source = parse_yaml(loaded.path, set_number(source, location, each.proposed))
        parse_policy(source.text, loaded.path)
        if loaded.path.read_bytes() != loaded.source.text:
            complain(f"{loaded.path} has changed meanwhile; nothing is written")
            raise Stop(DOES_NOT_HOLD)
        write_over(loaded.path, source.text)
    except (EditError, PolicyError) as error:
        complain(str(error))
        raise Stop(DOES_NOT_HOLD) from None
    note(f"{loaded.path}: written; run the cases again to see what it does to decisions")


def _run(loaded: LoadedPolicy, cases: Sequence[Case], concurrency: int, threads: int) -> tuple[Came, ...]:
    if not errors.is_terminal:
        return asyncio.run(run_cases(loaded, cases, concurrency, threads))
    with Progress(console=errors, transient=True) as progress:
        task = progress.add_task("opening the packs", total=len(cases))

        def done(_: Came) -> None:
            progress.update(task, advance=1, description="judging")

        return asyncio.run(run_cases(loaded, cases, concurrency, threads, done))


def _show(report: Report, proposals: Sequence[Proposal]) -> None:
    if report.signals:
        out.print(_signals(report))
    for labels in report.labels:
        _show_labels(labels)
    for proposal in proposals:
        _show_proposal(proposal)
    for (expected, got), n in report.confused.items():
        out.print(f"expected [bold]{escape(expected)}[/], decided [bold]{escape(got)}[/]: {n}")
    for failure in report.failures[:SHOWN_FAILURES]:
        _show_failure(failure)
    if len(report.failures) > SHOWN_FAILURES:
        out.print(f"... and {len(report.failures) - SHOWN_FAILURES} more; --json, --html and --markdown name them")
    for label, figure in report.by_label.items():
        out.print(f"{escape(label)}: {round(figure.value * figure.n)} of {figure.n} pass")
    times = ", ".join(f"p{rank} {milliseconds(seconds):.1f} ms" for rank, seconds in report.latency.items())
    late = f", {report.late} past the deadline of {milliseconds(report.deadline):.0f} ms" if report.late else ""
    if times:
        out.print(f"latency: {times}{late}")
    if report.decisions:
        out.print(f"decisions: {_figure(report.decisions)} right, of {report.decisions.n}")
    passed = report.cases - len(report.failures)
    style = "bold red" if report.failures else "bold green"
    out.print(f"[{style}]{passed} of {report.cases} cases pass[/]  {escape(report.policy)}", soft_wrap=True)


def _signals(report: Report) -> Table:
    """A row a signal; each figure has its interval below it, so that a usual terminal holds them all."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("signal", overflow="fold")
    for heading in ("cases", "precision", "recall", "false pos.", "AUC", "1 % FPR", "ECE"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in report.signals:
        cases = f"{each.positives} + {each.negatives}" + (f"\n[yellow]{each.unknown} ?[/]" if each.unknown else "")
        error = "" if each.calibration_error is None else f"{each.calibration_error:.2f}"
        figures = (each.precision, each.recall, each.false_positives, each.auc, each.recall_at_rate)
        table.add_row(escape(each.name), cases, *map(_stacked, figures), error)
    table.caption = "cases: true + false; 1 % FPR: recall at that rate; below: 95 %"
    return table


def _stacked(figure: Figure | None) -> str:
    return "" if figure is None else f"{figure.value:.2f}\n[dim]{figure.low:.2f}-{figure.high:.2f}[/]"


def _figure(figure: Figure | None) -> str:
    return "" if figure is None else f"{figure.value:.2f} {figure.low:.2f}-{figure.high:.2f}"


def _show_labels(labels: LabelFigures) -> None:
    out.print(f"[bold]{escape(labels.name)}[/]: label {_figure(labels.accuracy)} right, of {labels.accuracy.n}")
    out.print(f"    mean recall of labels {labels.macro_recall:.2f}, macro-F1 {labels.macro_f1:.2f}", end="")
    sure = labels.answered
    out.print(f"; where it matched {_figure(sure)} right, of {sure.n}" if sure else "")


def _show_proposal(each: Proposal) -> None:
    goal = f"{each.goal.wanted} {each.goal.rate:g}"
    out.print(f"[bold]{escape(each.goal.signal)}[/] for {goal}: {each.key} {_now(each)} -> [bold]{each.proposed:g}[/]")
    out.print(f"    recall {_figure(each.before.recall)} -> {_figure(each.after.recall)}")
    out.print(f"    false positives {_figure(each.before.false_positives)} -> {_figure(each.after.false_positives)}")
    if each.note:
        out.print(f"    [yellow]{escape(each.note)}[/]")


def _now(each: Proposal) -> str:
    return "default" if each.now is None else f"{each.now:g}"


def _show_failure(failure: Failure) -> None:
    out.print(f"[red]failed[/] {escape(failure.place)} {escape(failure.name)}", soft_wrap=True)
    for miss in failure.misses:
        out.print(f"    {escape(miss)}", soft_wrap=True)
