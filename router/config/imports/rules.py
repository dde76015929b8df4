"""A decision's `rules` as a condition of the policy.

Where a name has no meaning here the tree is cut so that the decision matches less than it did, never more: an
alternative falls away, and what needs the name can't hold. What is under a `NOT` is cut the other way round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from router.config.conditions import MAX_DEPTH
from router.config.imports.ledger import Reason, lost
from router.config.imports.node import Node
from router.config.imports.signals import Condition, Signals, joined, negated

Resolved = Condition | bool
"""A condition, or what it comes to: True always holds, False never."""

Missing = Callable[[str, str], Condition | None]
"""Takes type and name of a signal that no rule defines; may make one."""

TOO_DEEP: Final = lost(f"conditions nest deeper than {MAX_DEPTH}")


class Rules:
    """Reads trees of conditions. `missing` is asked for signals that no rule defines."""

    def __init__(self, signals: Signals, missing: Missing) -> None:
        self._signals = signals
        self._missing = missing
        self._composing: list[str] = []
        self.told: list[str] = []
        """Why parts of trees were cut, the latest last."""

    def read(self, node: Node, positive: bool = True, depth: int = 0) -> Resolved:
        """The tree's condition. `positive` says that it makes the decision match rather than keeps it from that."""
        if depth > MAX_DEPTH - 4:
            return self._cut(node, positive, TOO_DEEP)
        if node.has("type"):
            return self._leaf(node, positive, depth)
        operator = (node.text("operator") or "AND").upper()
        children = node.nodes("conditions")
        if operator == "NOT":
            inner = [self.read(child, not positive, depth + 1) for child in children]
            return _opposite(_any(inner)) if inner else positive
        if operator not in ("AND", "OR", "NOR"):
            return self._cut(node, positive, lost(f"the operator {operator[:20]} is not known"))
        if operator == "NOR":
            return _opposite(_any([self.read(child, not positive, depth + 1) for child in children]))
        read = [self.read(child, positive, depth + 1) for child in children]
        return _all(read) if operator == "AND" else _any(read)

    def _leaf(self, node: Node, positive: bool, depth: int) -> Resolved:
        kind, name = (node.text("type") or "").lower(), node.text("name") or ""
        condition = self._signals.meaning(kind, name) or self._missing(kind, name)
        if condition is None:
            return self._cut(node, positive, lost(self._signals.why_not(kind, name)))
        if node.has("predicate") or node.has("label"):
            # Without them the condition would hold for more requests than it did.
            return self._cut(node, positive, lost(f"what it asks of the {kind} signal beyond its name is not carried"))
        base = name.partition(":")[0]
        if kind == "complexity" and base in self._signals.composed and not name.endswith(("easy", "medium")):
            return self._composed(base, condition, positive, depth)
        return condition

    def _cut(self, node: Node, positive: bool, reason: Reason) -> bool:
        self.told.append(reason.why)
        node.book(None, lost(f"{reason.why}; the condition counts as one that {_counts(positive)}", reason.instead))
        return not positive

    def _composed(self, name: str, condition: Condition, positive: bool, depth: int) -> Resolved:
        composer = self._signals.composed[name].node("composer")
        if composer is None or name in self._composing:
            return condition
        self._composing.append(name)
        further = self.read(composer, positive, depth + 1)
        self._composing.pop()
        return _all([condition, further])


def _counts(positive: bool) -> str:
    return "never holds" if positive else "always holds"


def _all(parts: list[Resolved]) -> Resolved:
    if any(part is False for part in parts):
        return False
    rest = [part for part in parts if not isinstance(part, bool)]
    return joined("all", rest) if rest else True


def _any(parts: list[Resolved]) -> Resolved:
    if any(part is True for part in parts):
        return True
    rest = [part for part in parts if not isinstance(part, bool)]
    return joined("any", rest) if rest else False


def _opposite(part: Resolved) -> Resolved:
    return not part if isinstance(part, bool) else negated(part)
