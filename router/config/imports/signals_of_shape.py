"""Rules on who asks and in what form: the conversation's counts, kinds of content, and the caller's roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from router.config.imports.ledger import changed, lost
from router.config.imports.node import Node
from router.config.imports.signals import Condition, Signals, joined, negated
from router.config.imports.signals_of_wording import bounds_of

_COUNTED: Final[Mapping[str, str]] = {
    "tool_definition": "tools",
    "assistant_tool_call": "tool_calls",
    "assistant_tool_cycle": "tool_results",
    "image_content": "images",
    "active_tool_loop": "pending_tool_results",
}
_ROLES: Final = ("user", "assistant", "system", "developer", "tool")

USER_HEADER: Final = "x-authz-user-id"
GROUPS_HEADER: Final = "x-authz-user-groups"
"""Their defaults, where `global.services.authz.identity` names no others."""


def read_conversations(signals: Signals, node: Node | None) -> None:
    """`conversation`: how many messages, tools and images there are."""
    for name, rule in signals.rules(node, "conversation", "conversation"):
        feature = rule.node("feature")
        source = feature.node("source") if feature else None
        if feature is None or source is None:
            rule.book(None, lost("it has no feature to look for"))
            continue
        kind, of, role = feature.text("type") or "", source.text("type") or "", source.text("role") or ""
        if of == "message":
            counted = f"{role}_turns" if role in _ROLES else None if role else "turns"
        else:
            counted = _COUNTED.get(of)
        bounds = bounds_of(rule.node("predicate"))
        if counted is None or kind not in ("count", "exists"):
            rule.book(None, lost("this is not counted here", "see what a `conversation` signal counts"))
            continue
        if bounds is None:
            rule.book(None, lost("no count lies between its bounds"))
            continue
        if kind == "exists" or not bounds:
            bounds = {"min": 1}
        settings = {f"{end}_{counted}": value for end, value in bounds.items()}
        signals.mean("conversation", name, signals.add("conversation", name, rule, settings))


def read_input_modalities(signals: Signals, node: Node | None) -> None:
    """`input_modality`: kinds of content that come in."""
    for name, rule in signals.rules(node, "input_modality", "input_modality"):
        settings = {"any": [(rule.text("modality") or "").lower()]}
        signals.mean("input_modality", name, signals.add("modality", name, rule, settings))


def read_modalities(signals: Signals, node: Node | None) -> None:
    """`modality`: whether a picture is wanted. Their names are words of the format: AR, DIFFUSION, BOTH."""
    for name, rule in signals.rules(node, "modality", "modality"):
        if name.upper() not in ("AR", "DIFFUSION"):
            rule.book(None, lost("only text or only a picture can be told apart", "write a `modality` signal"))
            continue
        rule.book("name", changed("there a classifier tells it, here the request's fields and turns of phrase"))
        condition = signals.add("modality", name, rule, {"output": ["image"], "wording": True})
        if condition is not None:
            signals.mean("modality", name, negated(condition) if name.upper() == "AR" else condition)


def read_roles(signals: Signals, node: Node | None, identity: Node | None) -> None:
    """`role_bindings`: users and groups that a filter in front wrote into headers."""
    roles: dict[str, list[Condition]] = {}
    rules = signals.rules(node, "role_bindings", "authz")
    headers = {
        "User": (identity.text("user_id_header") if identity and rules else None) or USER_HEADER,
        "Group": (identity.text("user_groups_header") if identity and rules else None) or GROUPS_HEADER,
    }
    for name, rule in rules:
        role = rule.text("role") or name
        subjects: dict[str, list[str]] = {"User": [], "Group": []}
        for subject in rule.nodes("subjects"):
            kind, who = subject.text("kind") or "", subject.text("name")
            if kind not in subjects or not who:
                subject.book(None, lost("only users and groups are told apart", "write a `header` or `role` signal"))
            else:
                subjects[kind].append(who)
        conditions = []
        for kind, family, key in (("User", "header", "name"), ("Group", "role", "header")):
            if subjects[kind]:
                settings: dict[str, Any] = {key: headers[kind], "any": subjects[kind], "case_sensitive": True}
                condition = signals.add(family, name, rule, settings)
                if condition is not None:
                    signals.trust(headers[kind].strip().lower())
                    conditions.append(condition)
        if conditions:
            signals.mean("authz", name, joined("any", conditions))
            roles.setdefault(role, []).extend(conditions)
        else:
            rule.book(None, lost("no subject of it is carried"))
    for role, conditions in roles.items():
        signals.mean("authz", role, joined("any", conditions))
