"""Decides a stored record again, under another policy: from its observations alone, or not at all.

The same functions decide as in the engine (`router.policy`), which asks signals until nothing it lacks can change the
outcome. Here nothing can be asked: where something that is lacking could, the answer is what that is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from router.policy.agenda import Agendas
from router.policy.conclude import conclude, unanswered
from router.policy.model import Policy, Profile
from router.policy.plan import contenders
from router.policy.project import derive
from router.policy.verdict import Verdict
from router.records.basis import StoredBasis
from router.records.recast import recast
from router.records.stored import StoredRecord, observations_of, signal_name
from router.signals.base import Cost, Observation, SignalName


@dataclass(frozen=True, slots=True)
class Undecidable:
    """What the record lacks: names of signals, and words such as `profile`. Not empty."""

    missing: tuple[str, ...]


class Redecider:
    """Decides records again under one policy, whose basis says what its signals' answers depend on."""

    def __init__(self, policy: Policy, basis: StoredBasis) -> None:
        """`basis` must define every signal that a decision reads (KeyError otherwise)."""
        self.policy = policy
        self.basis = basis
        # Nothing is asked here, so that costs do not matter.
        self._agendas = Agendas(policy, dict.fromkeys(map(signal_name, basis.definitions), Cost.HEURISTIC))

    def decide(self, stored: StoredRecord, old: StoredBasis) -> Verdict | Undecidable:
        """The verdict that this policy would have given, had its signals seen what the record's saw."""
        if old.apis != self.basis.apis:
            return Undecidable(("apis",))
        profile = self._profile(stored, old)
        own_choice = self._own_choice(stored, old)
        unknown = (
            *(("profile",) if isinstance(profile, Undecidable) else ()),
            *(("requested model",) if own_choice is None else ()),
        )
        if isinstance(profile, Undecidable) or own_choice is None:
            return Undecidable(unknown)
        agenda = self._agendas.of(profile, guards_only=own_choice)
        observations = self.usable(stored, old)
        derive(agenda.projections, observations)
        live = contenders(agenda.decisions, observations)
        if missing := unanswered(self._agendas, live, observations):
            return Undecidable(tuple(sorted(map(str, missing))))
        return conclude(self.policy, self._agendas, profile, own_choice, live, observations)

    def usable(self, stored: StoredRecord, old: StoredBasis) -> dict[SignalName, Observation]:
        """Observations of signals that mean the same under both policies; projections are derived again."""
        usable: dict[SignalName, Observation] = {}
        for name, one in observations_of(stored).items():
            key = str(name)
            if not _same(self.basis.definitions, old.definitions, key):
                continue
            before, after = old.ranges.get(key), self.basis.ranges.get(key)
            read: Observation | None = one
            if before != after:
                cut = stored.observations[key].evidence_left_out
                read = None if before is None or after is None or cut else recast(name.family, one, before, after)
            if read is not None:
                usable[name] = read
        return usable

    def _profile(self, stored: StoredRecord, old: StoredBasis) -> Profile | Undecidable | None:
        """The profile that the request would have; what gave it its own is known, the request's headers are not."""
        if not self.policy.profiles:
            return None
        if [chosen for _, chosen in old.profiles] != [chosen for _, chosen in self.basis.profiles]:
            return Undecidable(("profile",))
        if stored.profile is None:
            return None
        index = [name for name, _ in old.profiles].index(stored.profile)
        return self.policy.profiles[index]

    def _own_choice(self, stored: StoredRecord, old: StoredBasis) -> bool | None:
        """Whether the request keeps the model that it names; None where it may be one that the old policy had not."""
        if not self.policy.respect_requested_model:
            return False
        if stored.requested_model is not None:
            return stored.requested_model in self.basis.models
        return False if set(self.basis.models) <= set(old.models) else None


def _same(new: Mapping[str, str], old: Mapping[str, str], name: str) -> bool:
    return name in new and new[name] == old.get(name)
