"""Another policy on recorded traffic: what would have changed, from which decision to which, and what cannot be told.

Exact or not at all: a record whose observations do not suffice is counted as undecidable, with what is missing. No
signal runs here; where content was captured, whoever calls may ask them again and say what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, TypeVar

import msgspec

from router.policy.model import Policy
from router.policy.verdict import Verdict
from router.records.basis import StoredBasis
from router.records.redecide import Redecider, Undecidable
from router.records.reselect import Came, came, would_come
from router.records.stored import StoredRecord, StoredSelection

Key = TypeVar("Key")

How = Literal["exact", "rerun", "redacted"]
"""From the record alone; by asking signals again; by asking them about content that something was taken out of."""

EXAMPLES: Final = 5
"""Identifiers that are kept of each kind of change."""


@dataclass(slots=True)
class Tally:
    """How many, and the identifiers of the first few."""

    count: int = 0
    examples: list[str] = field(default_factory=list)
    rerun: int = 0
    """Of those, how many were decided by asking signals again; `redacted`: about content with something taken out."""
    redacted: int = 0

    def add(self, record: str, how: How = "exact") -> None:
        """Count one more."""
        self.count += 1
        self.rerun += how != "exact"
        self.redacted += how == "redacted"
        if len(self.examples) < EXAMPLES:
            self.examples.append(record)


@dataclass(frozen=True)
class Replay:
    """What came of it. `changes` and `missing` count records, the latter by what they lack; one may lack several."""

    records: int
    changes: Mapping[tuple[Came, Came], Tally]
    undecidable: int
    missing: Mapping[str, Tally]
    rerun: int = 0
    """Records that were decided by asking signals again, those of which something was missing among them."""
    redacted: int = 0

    @cached_property
    def changed(self) -> int:
        """Records whose outcome would be another."""
        return sum(tally.count for tally in self.changes.values())

    @property
    def unchanged(self) -> int:
        """Records whose outcome would be the same."""
        return self.records - self.changed - self.undecidable

    @property
    def exact(self) -> int:
        """Records that were decided from what is in them alone."""
        return self.records - self.undecidable - self.rerun

    def as_json(self) -> dict[str, Any]:
        """Plain data, the most frequent first."""
        return {
            "records": self.records,
            "unchanged": self.unchanged,
            "changed": self.changed,
            "undecidable": self.undecidable,
            "exact": self.exact,
            "rerun": self.rerun,
            "rerun_of_redacted": self.redacted,
            "changes": [
                {
                    "from": _came_json(old),
                    "to": _came_json(new),
                    "count": tally.count,
                    "rerun": tally.rerun,
                    "rerun_of_redacted": tally.redacted,
                    "examples": tally.examples,
                }
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
    how: How = "exact"

    @property
    def changed(self) -> bool:
        """Whether it would be another; a model that is not known is another where it cannot be the recorded one."""
        return self.after is not None and self.before != self.after


@dataclass(frozen=True, slots=True)
class Rerun:
    """What the new policy's signals led to when they were asked about captured content; `whole`: about all of it."""

    verdict: Verdict
    selection: StoredSelection | None
    whole: bool


AskAgain = Callable[[StoredRecord], Rerun | None]
"""None where there is no content, or not enough of it."""

UNKNOWN_TO_CONTENT: Final = frozenset(("apis", "profile"))
"""What may be missing and is not in a request's content."""


def compare(
    stored: StoredRecord,
    basis: StoredBasis,
    old: Policy | None,
    redecider: Redecider,
    again: AskAgain | None = None,
) -> Compared:
    """One record under the new policy. `basis` is the record's own, `old` its policy, None where it can't be read."""
    verdict = redecider.decide(stored, basis)
    if not isinstance(verdict, Undecidable):
        return settle(stored, verdict, basis, old, redecider)
    rerun = again(stored) if again is not None and not UNKNOWN_TO_CONTENT & set(verdict.missing) else None
    if rerun is None:
        return Compared(came(stored), None, verdict.missing)
    measured = msgspec.structs.replace(stored, selection=stored.selection or rerun.selection)
    settled = settle(measured, rerun.verdict, basis, old, redecider)
    return replace(settled, before=came(stored), how="rerun" if rerun.whole else "redacted")


def settle(
    stored: StoredRecord, verdict: Verdict, basis: StoredBasis, old: Policy | None, redecider: Redecider
) -> Compared:
    """As `compare`, where the new policy's verdict is known."""
    before = came(stored)
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
    again: AskAgain | None = None,
) -> Replay:
    """Compare all records, which come with the digests of their bases.

    `basis_of` finds a basis, `policy_of` reads its policy; each is asked once for each digest. `again` is asked of
    records that cannot tell enough.
    """
    known: dict[str, tuple[StoredBasis, Policy | None]] = {}
    changes: dict[tuple[Came, Came], Tally] = {}
    missing: dict[str, Tally] = {}
    total = undecidable = 0
    rerun = Tally()
    for stored, digest in records:
        if digest not in known:
            basis = basis_of(digest)
            known[digest] = (basis, policy_of(basis))
        total += 1
        compared = compare(stored, *known[digest], redecider, again)
        undecidable += compared.after is None
        for name in compared.missing:
            missing.setdefault(name, Tally()).add(stored.record)
        if compared.after is None:
            continue
        rerun.add(stored.record, compared.how)
        if compared.changed:
            changes.setdefault((compared.before, compared.after), Tally()).add(stored.record, compared.how)
    return Replay(
        total, _by_count(changes), undecidable, _by_count(missing), rerun=rerun.rerun, redacted=rerun.redacted
    )


def _by_count(tallies: Mapping[Key, Tally]) -> dict[Key, Tally]:
    return dict(sorted(tallies.items(), key=lambda item: (-item[1].count, str(item[0]))))


def _came_json(one: Came) -> dict[str, Any]:
    return {"decision": one.decision, "outcome": one.outcome, "models": list(one.models)}
