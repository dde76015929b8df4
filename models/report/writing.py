"""models/REPORT.md, from what the sections found. Figures, sets and digests; nothing of what any set says or shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from models.report.outcome import Found, Outcome
from router.evaluation.markdown import table


def report(outcomes: Sequence[Outcome], packs: Mapping[str, str], limit: int, seed: int, command: str) -> str:
    """The whole file."""
    goals = [each for outcome in outcomes for each in outcome.found if each.met is not None]
    met = sum(each.met is True for each in goals)
    parts = [
        "# What the starter packs reach, measured",
        f"Made on {datetime.now(UTC).strftime('%Y-%m-%d')} by",
        f"    {command}",
        f"{met} of {len(goals)} goals are met. Every case goes through the pipeline that a worker has, as\n"
        "`pointsman eval` runs it, at default thresholds where nothing else is said. Intervals are at 95 %:\n"
        "Wilson's for shares, a bootstrap for recall at a rate. Where none stands, the figure is a mean or a\n"
        "difference. A goal counts as met by the figure itself; read the interval beside it.",
        f"Large sets are sampled with seed {seed}: at most {limit} texts a source; sections say how many in all.",
        table(("pack", "digest"), [(name, digest[:16]) for name, digest in packs.items()]),
        "## Goals",
        table(
            ("section", "figure", "n", "value", "95 %", "goal", ""),
            [(outcome.title, *_goal(each)) for outcome in outcomes for each in outcome.found if each.met is not None],
        ),
    ]
    for outcome in outcomes:
        parts += [f"## {outcome.title}", f"Measured on: {'; '.join(outcome.sizes)}. Took {outcome.seconds:.0f} s."]
        others = [each for each in outcome.found if each.met is None]
        if others:
            parts.append(table(("figure without a goal", "n", "value", "95 %", "note"), map(_plain, others)))
        parts += filter(None, outcome.tables)
    return "\n\n".join(parts) + "\n"


def _goal(each: Found) -> tuple[str, ...]:
    bound = f"at least {each.least:g}" if each.least is not None else f"at most {each.most:g}"
    verdict = "met" if each.met else "missed"
    note = f"; {each.note}" if each.note else ""
    return (each.what, str(each.n), f"{each.value:.3f}", _interval(each), bound, verdict + note)


def _plain(each: Found) -> tuple[str, ...]:
    return (each.what, str(each.n), f"{each.value:.3f}", _interval(each), each.note)


def _interval(each: Found) -> str:
    return "" if each.low is None or each.high is None else f"{each.low:.3f} to {each.high:.3f}"
