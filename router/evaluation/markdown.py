"""The report as Markdown, to be kept beside a policy or a pack. Like JSON it names cases and tells no content."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from router.evaluation.labels import LabelFigures
from router.evaluation.report import Report, SignalFigures
from router.evaluation.statistics import Figure
from router.evaluation.tuning import Proposal
from router.records.record import milliseconds

MAX_FAILURES: Final = 100


def render_markdown(report: Report, proposals: Sequence[Proposal] = ()) -> str:
    """The whole."""
    passed = report.cases - len(report.failures)
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts = [
        f"# {plain(report.policy)}: {passed} of {report.cases} cases pass",
        f"Policy {report.digest[:12]}, {made}. Intervals are at 95 %.",
        table(("", "value", "of"), _whole(report)),
    ]
    if report.signals:
        parts += ["## Signals", signal_table(report.signals), *map(reliability_table, report.signals)]
    for each in report.labels:
        parts += [f"## Labels of {plain(each.name)}", label_line(each), label_table(each)]
    if report.confused:
        rows = [(expected, got, str(n)) for (expected, got), n in report.confused.items()]
        parts += ["## Decisions confused", table(("expected", "decided", "cases"), rows)]
    if proposals:
        parts += ["## Thresholds proposed", _proposals(proposals)]
    if report.failures:
        parts += ["## Failed cases", _failures(report)]
    return "\n\n".join(filter(None, parts)) + "\n"


def signal_table(signals: Iterable[SignalFigures]) -> str:
    """A row a signal."""
    headings = ("signal", "true", "false", "unknown", "precision", "recall", "false positives", "AUC", "recall at 1 %")
    return table(headings, [_signal(each) for each in signals])


def reliability_table(signal: SignalFigures) -> str:
    """What scores said and what came, bin by bin; empty for a signal whose scores are no probabilities."""
    if not signal.bins or signal.calibration_error is None:
        return ""
    rows = [
        (f"{each.low:.1f} to {each.high:.1f}", str(each.n), f"{each.mean:.3f}", f"{each.share:.3f}")
        for each in signal.bins
    ]
    lead = f"Reliability of {plain(signal.name)}; expected calibration error {signal.calibration_error:.3f}:"
    return f"{lead}\n\n{table(('score', 'cases', 'mean score', 'share true'), rows)}"


def label_line(labels: LabelFigures) -> str:
    """Accuracy and what goes with it, as a sentence."""
    sure = labels.answered
    answered = f" Where it matched, {figure(sure)} of {sure.n} are right." if sure else ""
    return (
        f"Right: {figure(labels.accuracy)} of {labels.accuracy.n}; mean recall of labels {labels.macro_recall:.3f}, "
        f"macro-F1 {labels.macro_f1:.3f}.{answered}"
    )


def label_table(labels: LabelFigures) -> str:
    """A row a label."""
    rows = [
        (each.label, str(each.n), str(each.right), ", ".join(f"{name} {n}" for name, n in each.taken_for[:5]))
        for each in labels.rows
    ]
    return table(("label", "cases", "right", "taken for"), rows)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are plain text."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(map(plain, line)) + " |" for line in lines)


def figure(value: Figure | None) -> str:
    """A share with its interval."""
    return "-" if value is None else f"{value.value:.3f} ({value.low:.3f} to {value.high:.3f})"


def plain(text: str) -> str:
    """A name that does not become markup, nor another cell or line."""
    kept = "".join(char if char.isprintable() else " " for char in " ".join(text.split()))
    for char in "\\|<>`*_[]":
        kept = kept.replace(char, f"\\{char}" if char not in "<>" else {"<": "&lt;", ">": "&gt;"}[char])
    return kept


def _whole(report: Report) -> list[tuple[str, str, str]]:
    rows = [("cases that pass", figure(report.passed), str(report.passed.n))]
    if report.decisions:
        rows.append(("decisions right", figure(report.decisions), str(report.decisions.n)))
    rows += [(label, figure(each), str(each.n)) for label, each in report.by_label.items()]
    rows += [(f"latency p{rank}", f"{milliseconds(seconds):.1f} ms", "") for rank, seconds in report.latency.items()]
    rows.append((f"past the deadline of {milliseconds(report.deadline):.0f} ms", str(report.late), ""))
    return rows


def _signal(each: SignalFigures) -> tuple[str, ...]:
    counts = (str(each.positives), str(each.negatives), str(each.unknown))
    figures = (each.precision, each.recall, each.false_positives, each.auc, each.recall_at_rate)
    return (each.name, *counts, *map(figure, figures))


def _proposals(proposals: Sequence[Proposal]) -> str:
    headings = ("signal", "goal", "key", "now", "proposed", "recall then", "false positives then", "note")
    rows = [
        (
            each.goal.signal,
            f"{each.goal.wanted} {each.goal.rate:g}",
            each.key,
            "default" if each.now is None else f"{each.now:g}",
            f"{each.proposed:g}",
            figure(each.after.recall),
            figure(each.after.false_positives),
            each.note,
        )
        for each in proposals
    ]
    return table(headings, rows)


def _failures(report: Report) -> str:
    lines = [
        f"- {plain(each.name)} ({plain(each.place)}): {'; '.join(map(plain, each.misses))}"
        for each in report.failures[:MAX_FAILURES]
    ]
    left = len(report.failures) - MAX_FAILURES
    return "\n".join([*lines, *([f"- and {left} more"] if left > 0 else [])])
