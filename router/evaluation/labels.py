"""How often a signal gives the right one of several labels, over the cases that say which: fields, classes, bands."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from router.evaluation.run import Came
from router.evaluation.statistics import Figure, wilson

NO_LABEL = "no label"


@dataclass(frozen=True, slots=True)
class LabelRow:
    """Cases that expect one label: how many, how many got it, and what the others got, the most frequent first."""

    label: str
    n: int
    right: int
    taken_for: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class LabelFigures:
    """One signal's labels. `macro_recall` and `macro_f1` are means over the labels that cases expect.

    `answered` is about the cases in which it matched, as a signal with a threshold does where it is sure enough.
    """

    name: str
    accuracy: Figure
    macro_recall: float
    macro_f1: float
    answered: Figure | None
    rows: tuple[LabelRow, ...]


def label_figures(run: Sequence[Came]) -> tuple[LabelFigures, ...]:
    """A signal or projection each, by name; a case whose request could not be read has no label."""
    pairs: dict[str, list[tuple[str, str, bool]]] = defaultdict(list)
    for came in run:
        for name, expected in came.case.file.expect.labels.items():
            seen = came.observations.get(name)
            got = seen.label or NO_LABEL if seen is not None else NO_LABEL
            pairs[name].append((expected, got, seen is not None and seen.matched is True))
    return tuple(_of_signal(name, each) for name, each in sorted(pairs.items()))


def _of_signal(name: str, answers: Sequence[tuple[str, str, bool]]) -> LabelFigures:
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for expected, got, _ in answers:
        table[expected][got] += 1
    said = Counter(got for _, got, _ in answers)
    rows = [_row(label, got) for label, got in sorted(table.items())]
    matched = [expected == got for expected, got, matches in answers if matches]
    whole = wilson(sum(row.right for row in rows), len(answers))
    if whole is None:
        raise ValueError("no case expects a label")
    return LabelFigures(
        name=name,
        accuracy=whole,
        macro_recall=sum(row.right / row.n for row in rows) / len(rows),
        macro_f1=sum(2 * row.right / (row.n + said[row.label]) for row in rows) / len(rows),
        answered=wilson(sum(matched), len(matched)),
        rows=tuple(rows),
    )


def _row(label: str, got: Counter[str]) -> LabelRow:
    n = got.total()
    others = tuple((each, count) for each, count in got.most_common() if each != label)
    return LabelRow(label, n, got[label], others)
