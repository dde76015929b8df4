"""What is wrong with a policy file, and where; one shape for YAML, schema and reference errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

Key = str | int
Location = tuple[Key, ...]


def dotted(location: Location) -> str:
    """`("decisions", 0, "when")` as `decisions[0].when`."""
    text = ""
    for key in location:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean "image"?` for the nearest known word, or nothing."""
    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f'; did you mean "{near[0]}"?' if near else ""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing to mend. `line` and `column` count from 1."""

    line: int
    column: int
    location: Location
    message: str


class PolicyError(Exception):
    """A policy that cannot be used; its text names file, line, column and key of each problem."""

    def __init__(self, path: Path, problems: Sequence[Problem]) -> None:
        self.path = path
        self.problems = tuple(sorted(set(problems), key=lambda p: (p.line, p.column, str(p.location), p.message)))
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """A line a problem, in the form that editors and terminals link: `file:line:column: key: what`."""
        return [
            f"{self.path}:{p.line}:{p.column}: {dotted(p.location) + ': ' if p.location else ''}{p.message}"
            for p in self.problems
        ]
