"""The account of an imported file: every value of it is carried into the policy, or listed with the reason why not.

What is read is booked here, and what nobody asked for is found at the end. Nothing here knows any router's format, and
no finding ever shows a value: a configuration may hold keys and passwords.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from router.config.problems import Location, Problem
from router.config.yaml_source import YamlSource

Kind = Literal["lost", "changed", "moot"]
"""lost: the policy does without it. changed: it has a part in the policy, but means something else there. moot: it
has no effect here."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something is not carried as it stands, and what to do instead; `instead` may be empty."""

    kind: Kind
    why: str
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A place of the imported file with its reason. `line` and `column` count from 1."""

    location: Location
    line: int
    column: int
    reason: Reason


class Ledger:
    """Books of one file. `reason_of` says what is to be told of places that nobody asked for; `splits`, whether parts
    of a place have reasons of their own, so that it is not listed as one.
    """

    def __init__(
        self,
        source: YamlSource,
        reason_of: Callable[[Location], Reason | None],
        splits: Callable[[Location], bool],
    ) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self._reason_of = reason_of
        self._splits = splits
        self._carried: set[Location] = set()
        self._opened: set[Location] = set()
        self._booked: list[tuple[Location, Reason]] = []

    def problem(self, location: Location, message: str) -> None:
        """Something that keeps the file from being imported at all."""
        self.problems.append(self.source.problem(location, message))

    def carry(self, location: Location) -> None:
        """The value there, and all below it, has a part in the policy or in its comments."""
        self._carried.add(location)

    def open(self, location: Location) -> None:
        """The mapping or list there is read entry by entry."""
        self._opened.add(location)

    def book(self, location: Location, reason: Reason) -> None:
        """List the place; as lost or moot, with all below it."""
        self._booked.append((location, reason))

    def close(self) -> tuple[tuple[Finding, ...], frozenset[Location]]:
        """The findings in the order of the file, and the locations of the carried values."""
        gone = {location for location, reason in self._booked if reason.kind != "changed"}
        told = {location for location, reason in self._booked if reason.kind == "changed"}
        findings: dict[tuple[Location, Reason], Finding] = {}
        for location, reason in self._booked:
            above = _prefixes(location[:-1] if location in gone and reason.kind != "changed" else location)
            if not any(prefix in gone for prefix in above):
                findings[location, reason] = self._finding(location, reason)
        carried: set[Location] = set()
        touched = {prefix for each in (*self._carried, *self._opened, *gone, *told) for prefix in _prefixes(each)}
        for location, value, covered in self._leaves((), self.source.data, False, gone, touched):
            if covered:
                carried.add(location)
            elif location not in told:
                usual = self._reason_of(location) or UNKNOWN
                reason = EMPTY if value is None else OVERRIDDEN if self._overridden(location) else usual
                findings[location, reason] = self._finding(location, reason)
        ordered = sorted(findings.values(), key=lambda each: (each.line, each.column, str(each.location)))
        return tuple(ordered), frozenset(carried)

    def _leaves(
        self, location: Location, data: Any, carried: bool, gone: set[Location], touched: set[Location]
    ) -> Iterator[tuple[Location, Any, bool]]:
        """Each carried leaf, with True, and with False what nobody asked for, as a whole. The listed is left out."""
        if location in gone:
            return
        carried = carried or location in self._carried
        if not carried and location not in touched and not (data and self._splits(location)):
            yield location, data, False
            return
        if isinstance(data, dict) and data:
            for key, value in data.items():
                yield from self._leaves((*location, key), value, carried, gone, touched)
        elif isinstance(data, list) and data:
            for index, value in enumerate(data):
                yield from self._leaves((*location, index), value, carried, gone, touched)
        elif carried or location not in self._opened:
            yield location, data, carried

    def _overridden(self, location: Location) -> bool:
        """Whether the place is merged into a mapping by `<<`, and that has a key of the same name."""
        if "<<" not in location:
            return False
        at = location.index("<<")
        key = next((each for each in location[at + 1 :] if isinstance(each, str)), None)
        owner = self.source.data
        for each in location[:at]:
            owner = owner[each]
        return key in owner

    def _finding(self, location: Location, reason: Reason) -> Finding:
        source = self.source
        place = source.keys.get(location) or source.values.get(location) or source.values[()]
        return Finding(location, place.line, place.column, reason)


EMPTY: Final = Reason("moot", "says nothing")
OVERRIDDEN: Final = Reason("moot", "the mapping that it is merged into has a key of this name")
UNKNOWN: Final = Reason("lost", "this key is not known here", "see whether it is misspelt, or newer than the importer")


def _prefixes(location: Location) -> Iterator[Location]:
    for length in range(len(location) + 1):
        yield location[:length]


def lost(why: str, instead: str = "") -> Reason:
    """A reason for what the policy does without."""
    return Reason("lost", why, instead)


def changed(why: str, instead: str = "") -> Reason:
    """A reason for what is carried and means something else here."""
    return Reason("changed", why, instead)


def moot(why: str) -> Reason:
    """A reason for what has no effect here, so that nothing is lost."""
    return Reason("moot", why)
