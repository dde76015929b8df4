"""`routing.decisions`: conditions, priorities, and where a request goes or what it is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from router.config.imports.ledger import Ledger, changed, lost, moot
from router.config.imports.models import Models
from router.config.imports.names import decision_names, header_word
from router.config.imports.node import Node
from router.config.imports.reasons import PLUGINS
from router.config.imports.rules import Rules
from router.config.imports.selection import read_select
from router.config.imports.signals import Signals
from router.config.imports.writing import Entry
from router.config.problems import dotted

SAFETY: Final = ("jailbreak", "pii", "secret")
"""Families whose doubt should stop a request rather than let it through."""

ALWAYS: Final = {"conversation": "any_request"}
REFUSAL: Final = "This request was refused by policy."


@dataclass(slots=True)
class Draft:
    """A decision on its way: what is written, and whether it guards."""

    row: dict[str, Any]
    comments: list[str]
    refuses: bool = False

    @property
    def guards(self) -> bool:
        """Whether it is a guard, or could be one."""
        return self.refuses or "guard" in self.row


class Decisions:
    """Reads decisions in their order."""

    def __init__(self, ledger: Ledger, signals: Signals, rules: Rules, models: Models, default_model: str) -> None:
        self._ledger = ledger
        self._signals = signals
        self._rules = rules
        self._models = models
        self._default = default_model
        self._names = decision_names()
        self.always = False
        """Whether some decision needs the signal that always matches."""

    def read(self, routing: Node) -> list[Entry]:
        """Every decision that can match."""
        drafts = [draft for node in routing.nodes("decisions") if (draft := self._decision(node)) is not None]
        top = max((draft.row["priority"] for draft in drafts if not draft.guards), default=None)
        entries = []
        for draft in drafts:
            # A guard outranks every route, so that it may become one only where it did so before.
            if draft.refuses and "guard" not in draft.row and (top is None or draft.row["priority"] > top):
                draft.row["guard"] = True
                draft.comments.append("As a guard it also counts when its signals could not be judged.")
            keys = ("name", "priority", "guard", "on_unknown", "when", "route", "respond")
            entries.append(Entry({key: draft.row[key] for key in keys if key in draft.row}, tuple(draft.comments)))
        return entries

    def _decision(self, node: Node) -> Draft | None:
        wanted = node.text("name")
        if not wanted:
            if isinstance(node.data, dict):
                self._ledger.problem(node.location, 'needs the key "name"')
            return None
        rules = node.node("rules")
        self._rules.told.clear()
        when: Any = self._rules.read(rules) if rules is not None else True
        if when is False:
            why = self._rules.told[0] if self._rules.told else "no condition is there"
            node.book(None, lost(f"it can never match: {why}; what it took falls to the decisions after it"))
            return None
        described = node.text("description")
        word = self._names.give(header_word(wanted, "decision"))
        comment = dotted(node.location) + ("" if word == wanted else f', "{wanted}"')
        draft = Draft({"name": word}, [comment + (f": {described}" if described else "")])
        self._priority(node, draft)
        if when is True:
            self.always = True
            when = ALWAYS
        draft.row["when"] = when
        if rules is not None:
            self._unknown(rules, draft)
        self._outcome(node, draft)
        draft.refuses = "respond" in draft.row and _asks_safety(when)
        return draft

    def _priority(self, node: Node, draft: Draft) -> None:
        priority = node.number("priority")
        if priority is not None and priority != int(priority):
            node.book("priority", changed("priorities are whole numbers"))
        draft.row["priority"] = int(priority or 0)

    def _unknown(self, rules: Node, draft: Draft) -> None:
        word = rules.text("on_unknown")
        if word in ("match", "no_match"):
            draft.row["on_unknown"] = word
        elif word is not None:
            rules.book("on_unknown", lost("an unknown condition matches or not", "a guard refuses what it can't judge"))

    def _outcome(self, node: Node, draft: Draft) -> None:
        message = self._plugins(node)
        action = node.node("action")
        if action is not None and self._action(action, draft):
            node.book_if(["modelRefs", "algorithm"], moot("the action takes their place"))
            return
        if message is not None:
            node.book_if(["modelRefs", "algorithm"], moot("the answer is given at once"))
            draft.row["respond"] = {"clarify": message}
            return
        words, weights = self._candidates(node)
        algorithm = node.node("algorithm")
        select = read_select(algorithm, words, weights, self._models)
        if weights and not (isinstance(select, dict) and "weighted" in select):
            for ref in node.nodes("modelRefs"):
                ref.book_if(["weight"], moot("weights are of no use to this selection"))
        draft.row["route"] = {"models": words or [self._default], **({"select": select} if select else {})}

    def _candidates(self, node: Node) -> tuple[list[str], dict[str, float]]:
        words: list[str] = []
        weights: dict[str, float] = {}
        for ref in node.nodes("modelRefs"):
            model, adapter = ref.text("model"), ref.text("lora_name")
            if not model:
                ref.book(None, lost("it names no model"))
                continue
            if not self._models.knows(model):
                ref.book("model", changed("nothing describes the model", "complete it under `upstreams`"))
            word = self._models.word(model, adapter)
            weight = ref.number("weight")
            if word in words:
                ref.book(None, lost("the model stands there already"))
                continue
            words.append(word)
            if weight is not None:
                weights[word] = min(max(weight, 0.0), 1e9)
                if weights[word] != weight:
                    ref.book("weight", changed("weights lie between 0 and 1e9"))
        return words, weights

    def _plugins(self, node: Node) -> str | None:
        """Lists the plugins; the message of one that answers by itself is handed back."""
        message = None
        for plugin in node.nodes("plugins"):
            kind = (plugin.text("type") or "").lower()
            settings = plugin.node("configuration")
            if settings is not None and settings.flag("enabled") is False:
                plugin.book(None, moot("it is switched off"))
            elif kind == "fast_response" and settings is not None and settings.text("message") and message is None:
                message = settings.text("message")
            else:
                plugin.book(None, PLUGINS.get(kind) or lost("this plugin has no counterpart"))
        return message

    def _action(self, action: Node, draft: Draft) -> bool:
        """An action comes before every route, and so it guards."""
        kind, destination = (action.text("type") or "").lower(), action.text("destination")
        if kind == "route" and destination:
            if not self._models.knows(destination):
                action.book("destination", changed("nothing describes the model", "complete it under `upstreams`"))
            draft.row["route"] = {"models": [self._models.word(destination)]}
        elif kind in ("block", "reject", "deny"):
            draft.row["respond"] = {"status": 403, "message": action.text("message") or REFUSAL}
        else:
            action.book(None, lost("this action has no counterpart"))
            return False
        action.book("type", changed("becomes a guard: it counts before every route, whatever their priorities"))
        draft.row["guard"] = True
        return True


def _asks_safety(condition: Any) -> bool:
    """Whether something of it holds because a signal of safety matched; what is denied does not count."""
    for key, inner in condition.items():
        if key in SAFETY or (key in ("all", "any") and any(map(_asks_safety, inner))):
            return True
    return False
