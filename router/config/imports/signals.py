"""What is carried of `routing.signals`: entries of the policy's `signals`, and what each of their names means in it.

A meaning is a condition of the policy, such as {keyword: urgent} or {not: {keyword: urgent}}; a signal of theirs can
take several of ours, and one of ours can serve several of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from router.config.imports.ledger import Ledger, lost
from router.config.imports.names import Names, signal_names, signal_word
from router.config.imports.node import Node
from router.config.imports.writing import Entry
from router.config.problems import Location, dotted
from router.signals.registry import FAMILIES
from router.signals.settings import SignalSettings

Condition = dict[str, Any]


class Signals:
    """The policy's signals so far, and what names of the imported file mean."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.families: dict[str, dict[str, Entry]] = {}
        self.trusted_headers: list[str] = []
        self.composed: dict[str, Node] = {}
        """Rules of complexity that hold only together with further conditions, by name."""
        self._settings: dict[str, dict[str, SignalSettings]] = {}
        self._names: dict[str, Names] = {}
        self._meanings: dict[tuple[str, str], Condition] = {}
        self._places: dict[tuple[str, str], Location] = {}

    def rules(self, node: Node | None, key: str, kind: str) -> list[tuple[str, Node]]:
        """The rules under the key with their names; a name that stands there again is listed as lost."""
        found = []
        for rule in node.nodes(key) if node else []:
            name = rule.text("name")
            if not name:
                if isinstance(rule.data, dict):
                    self.ledger.problem(rule.location, 'needs the key "name"')
            elif (kind, name) in self._places:
                rule.book(None, lost(f"{dotted(self._places[kind, name])} has the same name"))
            else:
                self._places[kind, name] = rule.location
                found.append((name, rule))
        return found

    def add(self, family: str, wanted: str, rule: Node, settings: Mapping[str, Any]) -> Condition | None:
        """A signal of ours, and the condition that it matches; None, and the rule is lost, if it can be none."""
        row = FAMILIES[family]
        try:
            made = row.settings.model_validate(settings)
        except ValidationError as error:
            first = error.errors()[0]
            message = str(first["msg"]).removeprefix("Value error, ")
            where = ".".join(map(str, first["loc"])) or family
            rule.book(None, lost(f"it makes no {family} signal: {where}: {message[:1].lower()}{message[1:]}"))
            return None
        word = signal_word(wanted, family)
        if word in row.builtins and row.builtins[word] == made:
            return {family: word}
        name = self._names.setdefault(family, signal_names(family)).give(word)
        described = rule.text("description")
        comment = dotted(rule.location)
        if name != wanted:
            comment += f', "{wanted}"'
        comment += f": {described}" if described else ""
        self.families.setdefault(family, {})[name] = Entry(dict(settings), (comment,))
        self._settings.setdefault(family, {})[name] = made
        return {family: name}

    def reserve(self, family: str, name: str) -> None:
        """Keep the name for the importer itself."""
        self._names.setdefault(family, signal_names(family)).give(name)

    def mean(self, kind: str, name: str, condition: Condition | None) -> None:
        """What a name of theirs means; the first meaning stays."""
        if condition is not None:
            self._meanings.setdefault((kind, name), condition)

    def remean(self, kind: str, name: str, condition: Condition) -> None:
        """Give a name another meaning than it had."""
        self._meanings[kind, name] = condition

    def meaning(self, kind: str, name: str) -> Condition | None:
        """The condition that the name stands for, if it was carried."""
        return self._meanings.get((kind, name))

    def why_not(self, kind: str, name: str) -> str:
        """Why a name has no meaning."""
        place = self._places.get((kind, name.partition(":")[0])) or self._places.get((kind, name))
        return f'the {kind} signal "{name}" is not carried' if place else f'no {kind} signal "{name}" stands there'

    def rules_of(self, kind: str) -> bool:
        """Whether the file has rules of this kind, carried or not."""
        return any(place == kind for place, _ in self._places)

    def trust(self, header: str) -> str:
        """List the header among the trusted ones."""
        if header not in self.trusted_headers:
            self.trusted_headers.append(header)
        return header

    def encoders(self) -> dict[str, str]:
        """The encoders that these signals need."""
        needs = {tower for family in self.families for tower in FAMILIES[family].needs}
        for entry in self.families.get("complexity", {}).values():
            needs |= {"vision"} if entry.value.get("hard_images") else set()
        for entry in self.families.get("embedding", {}).values():
            needs |= {"vision"} if entry.value.get("images") else set()
        return {tower: "starter" for tower in ("text", "vision") if tower in needs}


def negated(condition: Condition) -> Condition:
    """The condition's opposite."""
    inner = condition.get("not")
    return inner if isinstance(inner, dict) else {"not": condition}


def joined(operator: str, conditions: Sequence[Condition]) -> Condition:
    """`all` or `any` of them; one alone stands for itself."""
    return conditions[0] if len(conditions) == 1 else {operator: list(conditions)}
