"""Rules on what a text says and how it is built: keywords, events, structure, languages, length.

They read the user's last message there, and so they do here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, get_args

import re2

from router.config.imports.ledger import changed, lost, moot
from router.config.imports.node import Node
from router.config.imports.signals import Condition, Signals, joined, negated
from router.signals.keyword import KeywordSettings, distinct
from router.signals.language_codes import Code

LAST: Final = {"over": "latest"}
URGENT: Final = ("urgent", "immediate", "asap", "deadline", "time-sensitive", "now", "critical window")
"""The words that a rule on events with `temporal` looks for."""

UNIT_CHARACTERS: Final = 6
"""Characters, blank included, that a word of English takes on average; a density there is by words."""

MOST_EDITS: Final = 10
"""A fuzzy threshold up to here is a number of edits, above it a percentage."""

_LANGUAGES: Final = frozenset(get_args(Code))
_SCALE: Final = {"K": 1_000, "M": 1_000_000}


def read_keywords(signals: Signals, node: Node | None) -> None:
    """`keywords`: lists of words."""
    for name, rule in signals.rules(node, "keywords", "keyword"):
        operator = (rule.text("operator") or "OR").upper()
        words = rule.texts("keywords")
        if operator not in ("OR", "AND", "NOR"):
            rule.book(None, lost(f"the operator {operator[:20]} is not known"))
            continue
        settings = {"any": words, **_method(rule, words), **LAST}
        if operator == "AND":
            settings["at_least"] = _every(settings)
        condition = signals.add("keyword", name, rule, settings)
        if condition is not None:
            signals.mean("keyword", name, negated(condition) if operator == "NOR" else condition)


def _every(settings: Mapping[str, Any]) -> int:
    """How many different phrases there are; any number where the settings are none, as will be told then."""
    try:
        return len(distinct(KeywordSettings.model_validate(settings)))
    except ValueError:
        return 1


def _method(rule: Node, words: list[str]) -> dict[str, Any]:
    method = (rule.text("method") or "").lower()
    sensitive = rule.flag("case_sensitive")
    fuzzy = rule.flag("fuzzy_match") or method == "fuzzy"
    settings: dict[str, Any] = {}
    if method == "bm25":
        settings["method"] = "bm25"
        rule.book_if(["bm25_threshold"], changed("scores have another scale here; the default is used", "tune it"))
        rule.book_if(["ngram_threshold", "ngram_arity", "fuzzy_threshold"], moot("belongs to another method"))
    elif method == "ngram":
        settings["method"] = "fuzzy"
        rule.book("method", changed("words are compared by edits, not by runs of letters", "tune `similarity`"))
        rule.book_if(["ngram_threshold", "ngram_arity"], changed("the default of `similarity` is used instead"))
        rule.book_if(["bm25_threshold", "fuzzy_threshold"], moot("belongs to another method"))
    elif fuzzy:
        settings |= {"method": "fuzzy", "similarity": _similarity(rule, words)}
        rule.book_if(["bm25_threshold", "ngram_threshold", "ngram_arity"], moot("belongs to another method"))
    else:
        settings["method"] = "regex" if method == "regex" else "exact"
        if method not in ("", "exact", "regex"):
            rule.book("method", lost("this method is not known; words are looked for as they are written"))
        rule.book_if(
            ["bm25_threshold", "ngram_threshold", "ngram_arity", "fuzzy_threshold"], moot("belongs to another method")
        )
        if sensitive:
            settings["case_sensitive"] = True
    if sensitive and "case_sensitive" not in settings:
        rule.book("case_sensitive", lost("upper and lower case do not differ for this method"))
    return settings


def _similarity(rule: Node, words: list[str]) -> float:
    """Edits as a share of the longest word, which keeps short words from matching everything."""
    threshold = rule.number("fuzzy_threshold")
    if threshold is not None and threshold > MOST_EDITS:
        return round(min(max(threshold / 100, 0.5), 1), 4)
    edits = threshold or 2
    longest = max((len(word) for word in words), default=1) or 1
    rule.book_if(["fuzzy_threshold"], changed("edits are counted as a share of a word's letters here", "tune it"))
    return round(min(max(1 - edits / longest, 0.5), 1), 4)


def read_events(signals: Signals, node: Node | None) -> None:
    """`events`: words of machine-made messages, one of which is enough."""
    for name, rule in signals.rules(node, "events", "event"):
        words = [word for key in ("event_types", "severities", "action_codes") for word in rule.texts(key)]
        if rule.flag("temporal"):
            words += URGENT
        settings = {"any": list(dict.fromkeys(words)), **LAST}
        signals.mean("event", name, signals.add("keyword", name, rule, settings))


def read_languages(signals: Signals, node: Node | None) -> None:
    """`language`: rules that are named by a code."""
    for name, rule in signals.rules(node, "language", "language"):
        code = name.lower().replace("_", "-").split("-")[0]
        if code not in _LANGUAGES:
            rule.book(None, lost("the name is no language code that is known here", "write a `language` signal"))
            continue
        rule.book_if(
            ["threshold"], changed("there it is a detector's confidence, here a share of letters; see `min_share`")
        )
        signals.mean("language", name, signals.add("language", name, rule, {"any": [code], **LAST}))


def read_contexts(signals: Signals, node: Node | None) -> None:
    """`context`: bounds on tokens, with K and M for thousands and millions."""
    for name, rule in signals.rules(node, "context", "context"):
        settings = {}
        for key in ("min_tokens", "max_tokens"):
            written = rule.text(key)
            count = None if written is None else _tokens(written)
            if written is not None and count is None:
                signals.ledger.problem(rule.at(key), "must be a number of tokens, such as 32000 or 32K")
            elif count is not None:
                settings[key] = count
        signals.mean("context", name, signals.add("context", name, rule, settings))


def _tokens(written: str) -> int | None:
    text = written.strip().upper()
    scale = _SCALE.get(text[-1:], 1)
    try:
        count = float(text[:-1] if scale > 1 else text) * scale
        return int(count) if 0 <= count < 1e15 else None
    except ValueError:
        return None


def read_structures(signals: Signals, node: Node | None) -> None:
    """`structure`: counts, densities and sequences in a text."""
    for name, rule in signals.rules(node, "structure", "structure"):
        feature = rule.node("feature")
        source = feature.node("source") if feature else None
        if feature is None or source is None:
            rule.book(None, lost("it has no feature to look for"))
            continue
        kind, of = feature.text("type") or "", source.text("type") or ""
        bounds = bounds_of(rule.node("predicate"))
        if bounds is None:
            rule.book(None, lost("no count lies between its bounds"))
        elif kind == of == "sequence":
            _sequences(signals, name, rule, source)
        elif kind not in ("count", "exists", "density"):
            rule.book(None, lost("this feature is not known"))
        elif of not in ("regex", "keyword_set"):
            rule.book(None, lost("this source is not counted here", "write a `context` or `structure` signal"))
        else:
            pattern = source.text("pattern") if of == "regex" else _alternatives(source)
            settings: dict[str, Any] = {"pattern": pattern, **LAST}
            if kind == "count":
                settings |= bounds
            elif kind == "density":
                settings |= _density(rule)
            signals.mean("structure", name, signals.add("structure", name, rule, settings))


def bounds_of(predicate: Node | None) -> dict[str, int] | None:
    """`min` and `max`, inclusive and whole; None where nothing lies between."""
    bounds: dict[str, int] = {}
    for key in ("gt", "gte", "lt", "lte"):
        value = predicate.number(key) if predicate else None
        if value is None:
            continue
        value = min(max(value, -1e9), 1e9)
        if key in ("gt", "gte"):
            least = math.floor(value) + 1 if key == "gt" else math.ceil(value)
            bounds["min"] = max(least, bounds.get("min", 0))
        else:
            most = math.ceil(value) - 1 if key == "lt" else math.floor(value)
            bounds["max"] = min(most, bounds.get("max", most))
    if "max" in bounds and bounds["max"] < bounds.get("min", 0):
        return None
    return bounds


def _density(rule: Node) -> dict[str, float]:
    """A count by word as a count for each 1,000 characters."""
    predicate = rule.node("predicate")
    if predicate is None:
        return {}
    rule.book("predicate", changed(f"there it is by words, here by characters, {UNIT_CHARACTERS} a word", "tune it"))
    bounds = {}
    for keys, ours in ((("gt", "gte"), "min_per_1000_chars"), (("lt", "lte"), "max_per_1000_chars")):
        values = [value for key in keys if (value := predicate.number(key)) is not None]
        if values:
            pick = max if ours.startswith("min") else min
            bounds[ours] = round(max(pick(values), 0) * 1_000 / UNIT_CHARACTERS, 4)
    return bounds


def _sequences(signals: Signals, name: str, rule: Node, source: Node) -> None:
    sensitive = source.flag("case_sensitive")
    found = source.peek("sequences")
    rows = found if isinstance(found, list) else []
    if not rows or not all(
        isinstance(row, list) and all(isinstance(word, str) and word.isprintable() for word in row) for row in rows
    ):
        signals.ledger.problem(source.at("sequences"), "must be a list of lists of words")
        return
    signals.ledger.carry(source.at("sequences"))
    conditions: list[Condition] = []
    for row in rows:
        patterns = [_pattern([word], bool(sensitive)) for word in row]
        settings: dict[str, Any] = {"sequence": patterns} if len(patterns) > 1 else {"pattern": "".join(patterns)}
        condition = signals.add("structure", name, rule, {**settings, **LAST})
        if condition is None:
            return
        conditions.append(condition)
    signals.mean("structure", name, joined("any", conditions))


def _alternatives(source: Node) -> str:
    return _pattern(source.texts("keywords"), bool(source.flag("case_sensitive")))


def _pattern(words: list[str], sensitive: bool) -> str:
    """One of the words, as a whole where its script has blanks between words."""
    parts = []
    for word in filter(None, (word.strip() for word in words)):
        quoted = re2.escape(word).replace("\\ ", " ")
        left = r"\b" if word[0].isascii() and (word[0].isalnum() or word[0] == "_") else ""
        right = r"\b" if word[-1].isascii() and (word[-1].isalnum() or word[-1] == "_") else ""
        parts.append(f"{left}{quoted}{right}")
    return ("" if sensitive else "(?i)") + (parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})")
