"""Asks whether literals can hold together, within a bound on the work: on each question, and on all of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from pysat.solvers import Solver as _Solver

CONFLICTS: Final = 10_000
"""Conflicts after which one question is given up as too hard and random tries answer instead."""

TRIES: Final = 8
"""Random tries for a question that was given up."""

CONFLICTS_PER_TRY: Final = 500

CONFLICTS_IN_ALL: Final = 50_000
"""Conflicts after which every further question gets LAST_CONFLICTS and no tries: some ten seconds of the solver's."""

LAST_CONFLICTS: Final = 20

PROPAGATIONS_IN_ALL: Final = 2_000_000_000
"""As CONFLICTS_IN_ALL, for policies that are large rather than hard."""

_SEED: Final = 20_240


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether the literals can hold together.

    `core` are those of the literals that cannot hold together; `sampled` says that nothing was proven: no assignment
    was found, which is not to say that there is none.
    """

    possible: bool
    core: frozenset[int] = frozenset()
    sampled: bool = False


class Solver:
    """A SAT solver over clauses, to which more may come between questions.

    Enter it, for it holds memory outside Python.
    """

    def __init__(self, clauses: Sequence[Sequence[int]], conflicts: int = CONFLICTS) -> None:
        """`clauses` is read again with each question: it may grow at its end."""
        self._clauses = clauses
        self._taken = 0
        self._conflicts = conflicts
        self._solver: Any = None
        self.given_up = 0
        """Questions to which no answer was proven or found."""
        self._random = random.Random(_SEED)  # noqa: S311  # repeatable tries, nothing secret

    def __enter__(self) -> Solver:
        self._solver = _Solver(name="glucose4")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._solver.delete()

    def together(self, literals: Iterable[int]) -> Answer:
        """Whether all of these can hold."""
        self._solver.append_formula(self._clauses[self._taken :])
        self._taken = len(self._clauses)
        assumptions = list(literals)
        if self._spent():
            found = self._ask(assumptions, LAST_CONFLICTS)
        else:
            found = self._ask(assumptions, self._conflicts) or self._tried(assumptions)
        if found is None:
            self.given_up += 1
            return Answer(possible=False, sampled=True)
        return found

    def model(self) -> frozenset[int]:
        """A literal for each variable: the assignment that made the last answer a possible one."""
        return frozenset(self._solver.get_model())

    def _tried(self, assumptions: list[int]) -> Answer | None:
        for _ in range(TRIES):
            variables = range(1, self._solver.nof_vars() + 1)
            self._solver.set_phases([self._random.choice((1, -1)) * variable for variable in variables])
            found = self._ask(assumptions, CONFLICTS_PER_TRY)
            if found is not None:
                return found
        return None

    def _spent(self) -> bool:
        done = self._solver.accum_stats()
        return bool(done["conflicts"] >= CONFLICTS_IN_ALL or done["propagations"] >= PROPAGATIONS_IN_ALL)

    def _ask(self, assumptions: list[int], conflicts: int) -> Answer | None:
        self._solver.conf_budget(conflicts)
        possible = self._solver.solve_limited(assumptions=assumptions)
        if possible is None:
            return None
        return Answer(possible=True) if possible else Answer(False, frozenset(self._solver.get_core() or ()))
