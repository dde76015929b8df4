"""Another policy on recorded traffic: what would have changed, from which decision to which, and what cannot be told.

Exact or not at all: a record whose observations do not suffice is counted as undecidable, with what is missing. No
signal runs here and nothing of a request's content is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeVar

from router.policy.model import Policy
from router.records.basis import StoredBasis
from router.records.redecide import Redecider, Undecidable
from router.records.reselect import Came, came, would_come
from router.records.stored import StoredRecord

Key = TypeVar("Key")

EXAMPLES: Final = 5
"""Identifiers that are kept of each kind of change."""


@dataclass(slots=True)
class Tally:
    """How many, and the identifiers of the first few."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, record: str) -> None:
        """Count one more."""
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(record)


@dataclass(frozen=True)
class Replay:
    """What came of it. `changes` and `missing` count records, the latter by what they lack; one may lack several."""

    records: int
    changes: Mapping[tuple[Came, Came], Tally]
    undecidable: int
    missing: Mapping[str, Tally]

    @cached_property
    def changed(self) -> int:
        """Records whose outcome would be another."""
        return sum(tally.count for tally in self.changes.values())

    @property
    def unchanged(self) -> int:
        """Records whose outcome would be the same."""
        return self.records - self.changed - self.undecidable

    def as_json(self) -> dict[str, Any]:
        """Plain data, the most frequent first."""
        return {
            "records": self.records,
            "unchanged": self.unchanged,
            "changed": self.changed,
            "undecidable": self.undecidable,
            "changes": [
                {"from": _came_json(old), "to": _came_json(new), "count": tally.count, "examples": tally.examples}
                for (old, new), tally in self.changes.items()
            ],
            "missing": {name: {"count": t.count, "examples": t.examples} for name, t in self.missing.items()},
        }


@dataclass(frozen=True, slots=True)
class Compared:
    """One record: what became of it, what would, and what is missing to say so; `after` is None then."""

    before: Came
    after: Came | None
    missing: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether it would be another; a model that is not known is another where it cannot be the recorded one."""
        return self.after is not None and self.before != self.after


def compare(stored: StoredRecord, basis: StoredBasis, old: Policy | None, redecider: Redecider) -> Compared:
    """One record under the new policy. `basis` is the record's own, `old` its policy, None where it can't be read."""
    before = came(stored)
    verdict = redecider.decide(stored, basis)
    if isinstance(verdict, Undecidable):
        return Compared(before, None, verdict.missing)
    after = would_come(stored, verdict, redecider, basis, old)
    as_before = (after.decision, after.outcome) == (before.decision, before.outcome)
    if after.missing and as_before and set(before.models) & set(after.models):
        return Compared(before, None, after.missing)
    return Compared(before, after)


def replay(
    records: Iterable[tuple[StoredRecord, str]],
    basis_of: Callable[[str], StoredBasis],
    policy_of: Callable[[StoredBasis], Policy | None],
    redecider: Redecider,
) -> Replay:
    """Compare all records, which come with the digests of their bases.

    `basis_of` finds a basis, `policy_of` reads its policy; each is asked once for each digest.
    """
    known: dict[str, tuple[StoredBasis, Policy | None]] = {}
    changes: dict[tuple[Came, Came], Tally] = {}
    missing: dict[str, Tally] = {}
    total = undecidable = 0
    for stored, digest in records:
        if digest not in known:
            basis = basis_of(digest)
            known[digest] = (basis, policy_of(basis))
        total += 1
        compared = compare(stored, *known[digest], redecider)
        undecidable += compared.after is None
        for name in compared.missing:
            missing.setdefault(name, Tally()).add(stored.record)
        if compared.after is not None and compared.changed:
            changes.setdefault((compared.before, compared.after), Tally()).add(stored.record)
    return Replay(total, _by_count(changes), undecidable, _by_count(missing))


def _by_count(tallies: Mapping[Key, Tally]) -> dict[Key, Tally]:
    return dict(sorted(tallies.items(), key=lambda item: (-item[1].count, str(item[0]))))


def _came_json(one: Came) -> dict[str, Any]:
    return {"decision": one.decision, "outcome": one.outcome, "models": list(one.models)}
