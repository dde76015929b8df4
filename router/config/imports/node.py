"""A mapping of an imported file, read key by key: what it hands out is booked as carried, wrong types are problems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from router.config.imports.ledger import Ledger, Reason
from router.config.problems import Location

_WORDS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
"""YAML 1.1 reads these as truth values, YAML 1.2 only the first of each three."""


@dataclass(frozen=True, slots=True)
class Node:
    """A mapping of the file. Whatever it hands out counts as carried unless it is booked otherwise."""

    ledger: Ledger = field(repr=False)
    location: Location
    data: Any = field(repr=False)

    def __post_init__(self) -> None:
        self.ledger.open(self.location)
        if not isinstance(self.data, dict):
            self.ledger.problem(self.location, "must be a mapping")

    def at(self, key: str) -> Location:
        """Where the key's value stands: here, or in a mapping that `<<` merges in."""
        return self._find(key)[0]

    def has(self, key: str) -> bool:
        """Whether the key stands there with a value."""
        return self._find(key)[1] is not None

    def keys(self) -> list[str]:
        """The mapping's own keys."""
        return list(self.data) if isinstance(self.data, dict) else []

    def text(self, key: str) -> str | None:
        """A text; numbers and truth values are taken as they would be written."""
        location, value = self._find(key)
        if value is None:
            return None
        if isinstance(value, dict | list):
            self.ledger.problem(location, "must be text")
            return None
        self.ledger.carry(location)
        return self._written(location, value)

    def number(self, key: str) -> float | None:
        """A finite number."""
        location, value = self._find(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
            self.ledger.problem(location, "must be a number")
            return None
        self.ledger.carry(location)
        return value

    def flag(self, key: str) -> bool | None:
        """True or false; also `yes`, `no`, `on` and `off`, as YAML 1.1 has them."""
        location, value = self._find(key)
        if isinstance(value, str):
            value = _WORDS.get(value.lower(), value)
        if value is None:
            return None
        if not isinstance(value, bool):
            self.ledger.problem(location, "must be true or false")
            return None
        self.ledger.carry(location)
        return value

    def texts(self, key: str) -> list[str]:
        """A list of texts; empty where there is none."""
        location, value = self._find(key)
        if value is None:
            return []
        if not isinstance(value, list) or any(isinstance(each, dict | list | None) for each in value):
            self.ledger.problem(location, "must be a list of words")
            return []
        self.ledger.carry(location)
        return [self._written((*location, index), each) for index, each in enumerate(value)]

    def peek(self, key: str) -> Any:
        """The value as it stands, which stays unasked for."""
        return self._find(key)[1]

    def node(self, key: str) -> Node | None:
        """A mapping below."""
        location, value = self._find(key)
        return None if value is None else Node(self.ledger, location, value)

    def nodes(self, key: str) -> list[Node]:
        """A list of mappings below."""
        location, value = self._find(key)
        if value is None:
            return []
        self.ledger.open(location)
        if not isinstance(value, list):
            self.ledger.problem(location, "must be a list")
            return []
        return [Node(self.ledger, (*location, index), each) for index, each in enumerate(value)]

    def book(self, key: str | None, reason: Reason) -> None:
        """List the key, or with None all of the mapping."""
        self.ledger.book(self.location if key is None else self.at(key), reason)

    def book_item(self, key: str, index: int, reason: Reason) -> None:
        """List one item of the list under the key."""
        self.ledger.book((*self.at(key), index), reason)

    def book_if(self, keys: Sequence[str], reason: Reason) -> None:
        """List those of the keys that stand there."""
        for key in keys:
            if self.has(key):
                self.book(key, reason)

    def _written(self, location: Location, value: Any) -> str:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if any("\ud800" <= character <= "\udfff" for character in text):
            self.ledger.problem(location, "is no text: half of a surrogate pair stands in it")
            return ""
        return text

    def _find(self, key: str) -> tuple[Location, Any]:
        own = (*self.location, key)
        if not isinstance(self.data, dict):
            return own, None
        if key in self.data:
            return own, self.data[key]
        merged = self.data.get("<<")
        sources = enumerate(merged) if isinstance(merged, list) else [(None, merged)]
        for index, each in sources:
            if isinstance(each, dict) and key in each:
                self.ledger.open((*self.location, "<<"))
                inner: Location = (*self.location, "<<") if index is None else (*self.location, "<<", index)
                return (*inner, key), each[key]
        return own, None


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False
