"""Rules that a model judges: embeddings, domains, complexity, feedback, attacks, personal data and the like.

Their models are not ours, so that every threshold is carried as a number and listed as one to be tuned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from router.config.imports.ledger import Reason, changed, lost
from router.config.imports.node import Node
from router.config.imports.signals import Condition, Signals
from router.signals.domain_anchors import SUBJECTS
from router.signals.pii_patterns import PATTERN_TYPES

TUNE: Final = changed("another model gives the score here, on a scale of its own", "tune it with `pointsman eval`")
_FACTS: Final[Mapping[str, str]] = {"needs_fact_check": "facts", "no_fact_check_needed": "no_facts"}
_FEEDBACK: Final[Mapping[str, str]] = {
    "satisfied": "satisfied",
    "need_clarification": "needs_clarification",
    "needs_clarification": "needs_clarification",
    "wrong_answer": "wrong_answer",
    "want_different": "dissatisfied",
    "dissatisfied": "dissatisfied",
}
LONGEST_PATH: Final = 1_000
"""Characters; what is longer is an image's content rather than its path."""

_WHOLE: Final = changed("every turn, role and tool result is read here")


def _threshold(rule: Node | None, reason: Reason = TUNE) -> dict[str, float]:
    value = rule.number("threshold") if rule else None
    if rule is None or value is None:
        return {}
    rule.book("threshold", reason)
    return {"threshold": value}


def read_embeddings(signals: Signals, node: Node | None) -> None:
    """`embeddings`: texts or images that the request should be like."""
    rules = signals.rules(node, "embeddings", "embedding")
    for name, rule in rules:
        modality = (rule.text("query_modality") or "text").lower()
        mean = (rule.text("aggregation_method") or "").lower()
        if mean not in ("", "max", "any", "mean"):
            rule.book("aggregation_method", lost("this way of aggregating is not known; the best anchor counts"))
        texts, pictures = rule.texts("candidates"), _files(rule, "image_candidates")
        against = rule.texts("negative_candidates")
        if rule.texts("negative_image_candidates"):
            rule.book("negative_image_candidates", lost("signals have no images to be unlike", "write captions"))
        if modality not in ("text", "image"):
            rule.book(None, lost("only texts and images have embeddings here"))
        elif modality == "image" and texts and not pictures:
            _as_concepts(signals, name, rule, texts, against)
        elif against and texts and not pictures and modality == "text":
            rule.book("negative_candidates", changed("becomes the other side of a `complexity` signal: a margin"))
            settings: dict[str, Any] = {"hard": texts, "easy": against, **_threshold(rule)}
            signals.mean("embedding", name, signals.add("complexity", name, rule, settings))
        else:
            rule.book_if(["negative_candidates"], lost("these anchors have no counterpart to be unlike"))
            settings = {"texts": texts, "images": pictures, **_threshold(rule)}
            settings |= {"aggregate": "mean"} if mean == "mean" else {}
            settings |= {"query": "image"} if modality == "image" else {}
            settings = {key: value for key, value in settings.items() if value != []}
            signals.mean("embedding", name, signals.add("embedding", name, rule, settings))
    if len(rules) > 1 and node is not None:
        node.book(
            "embeddings",
            changed("there only the best of them may count, as `top_k` says; here each does that matches",
                    "write `projections.partition` over rivals"),
        )  # fmt: skip


def _as_concepts(signals: Signals, name: str, rule: Node, texts: list[str], against: list[str]) -> None:
    rule.book_if(
        ["threshold"], changed("a cosine there, a probability here; 0.5 is used", "tune it with `pointsman eval`")
    )
    rule.book_if(["aggregation_method"], changed("the best caption counts"))
    settings = {"concepts": texts, **({"against": against} if against else {})}
    signals.mean("embedding", name, signals.add("image", name, rule, settings))


def _files(rule: Node, key: str) -> list[str]:
    """Paths of images; those that are no files stay behind."""
    files = []
    for index, each in enumerate(rule.texts(key)):
        if "://" in each or each.startswith("data:") or len(each) > LONGEST_PATH:
            rule.book_item(key, index, lost("images are files here", "save it as a file"))
        else:
            files.append(each)
    if files:
        rule.book(key, changed("paths start from the policy's folder", "copy the files there"))
    return files


def read_domains(signals: Signals, node: Node | None, module: Node | None) -> None:
    """`domains`: fields of knowledge, by MMLU's names."""
    rules = signals.rules(node, "domains", "domain")
    common = _threshold(module) if rules else {}
    for name, rule in rules:
        wanted = rule.texts("mmlu_categories") or [name]
        known = [subject for each in wanted if (subject := _subject(each))]
        for index, each in enumerate(rule.texts("mmlu_categories")):
            if _subject(each) is None:
                rule.book_item("mmlu_categories", index, lost("this category is not told apart here"))
        if not known:
            rule.book(None, lost("none of its categories is one of the 14 that are told apart", "write an `embedding`"))
            continue
        settings = {"any": list(dict.fromkeys(known)), **common}
        signals.mean("domain", name, signals.add("domain", name, rule, settings))


def _subject(word: str) -> str | None:
    plain = word.strip().lower().replace("_", " ")
    return plain if plain in SUBJECTS else None


def read_fact_checks(signals: Signals, node: Node | None, module: Node | None) -> None:
    """`fact_check`: two names that are words of the format."""
    _by_name(signals, signals.rules(node, "fact_check", "fact_check"), "fact_check", "fact_check", _FACTS, module)


def read_feedback(signals: Signals, node: Node | None, module: Node | None) -> None:
    """`user_feedbacks`: names that are words of the format."""
    rules = signals.rules(node, "user_feedbacks", "user_feedback")
    for name, rule in rules:
        if name == "want_different":
            rule.book("name", changed("a wish for something else counts as dissatisfaction"))
    _by_name(signals, rules, "user_feedback", "feedback", _FEEDBACK, module)


def _by_name(
    signals: Signals,
    rules: list[tuple[str, Node]],
    kind: str,
    family: str,
    labels: Mapping[str, str],
    module: Node | None,
) -> None:
    common = _threshold(module) if rules else {}
    for name, rule in rules:
        if name not in labels:
            rule.book(None, lost(f"the name is none of {', '.join(labels)}"))
        else:
            settings = {"any": [labels[name]], **common}
            signals.mean(kind, name, signals.add(family, name, rule, settings))


def read_reasks(signals: Signals, node: Node | None) -> None:
    """`reasks`: the user asks again."""
    for name, rule in signals.rules(node, "reasks", "reask"):
        turns = rule.number("lookback_turns")
        if turns is not None and turns > 1:
            rule.book("lookback_turns", changed("there all of these turns must be alike, here one is enough"))
        settings = {**_threshold(rule), "turns": int(turns) if turns else 1}
        signals.mean("reask", name, signals.add("reask", name, rule, settings))


def read_preferences(signals: Signals, node: Node | None) -> None:
    """`preferences`: kinds of request in words, each of which is a rival of the others."""
    rules = signals.rules(node, "preferences", "preference")
    kinds = {}
    for name, rule in rules:
        texts = [*rule.texts("examples"), *([described] if (described := rule.text("description")) else [])]
        if texts:
            kinds[name] = texts
        else:
            rule.book(None, lost("it has neither examples nor a description"))
    for name, rule in rules:
        if name not in kinds:
            continue
        threshold = _threshold(rule)
        if len(kinds) == 1:
            rule.book("name", changed("a preference without a rival becomes an `embedding` signal"))
            condition = signals.add("embedding", name, rule, {"texts": kinds[name], **threshold})
        else:
            condition = signals.add("preference", name, rule, {"of": kinds, "any": [name], **threshold})
        signals.mean("preference", name, condition)


def read_complexities(signals: Signals, node: Node | None) -> None:
    """`complexity`: a margin with three verdicts, which conditions name as rule:hard, rule:medium and rule:easy."""
    for name, rule in signals.rules(node, "complexity", "complexity"):
        sides: dict[str, Any] = {}
        for side in ("hard", "easy"):
            bank = rule.node(side)
            if bank:
                sides[side] = bank.texts("candidates")
                sides[f"{side}_images"] = bank.texts("image_candidates")
        sides = {key: value for key, value in sides.items() if value}
        if rule.has("hard_below") or rule.has("easy_above"):
            rule.book(None, lost("the scale of an own model's score is not known here", "write a `classifier` signal"))
            continue
        method = rule.text("method")
        if method not in (None, "embedding"):
            rule.book(None, lost("its classifier needs a pack", "export it, and write a `classifier` signal"))
            continue
        above, below = rule.number("hard_above"), rule.number("easy_below")
        margin = abs(rule.number("threshold") or 0.0)
        rule.book_if(["threshold", "hard_above", "easy_below"], TUNE)
        hard = margin if above is None else above
        easy = -margin if below is None else below
        condition = signals.add("complexity", name, rule, {**sides, "threshold": hard})
        if condition is None:
            continue
        if rule.has("composer"):
            signals.composed[name] = rule
        signals.mean("complexity", f"{name}:hard", condition)
        signals.mean("complexity", name, condition)
        if easy <= hard:
            signals.mean("complexity", f"{name}:easy", {**condition, "lt": easy})
            if easy < hard:
                signals.mean("complexity", f"{name}:medium", {**condition, "gte": easy, "lt": hard})


def read_jailbreaks(signals: Signals, node: Node | None) -> None:
    """`jailbreak`: attacks on a model's instructions."""
    for name, rule in signals.rules(node, "jailbreak", "jailbreak"):
        if (rule.text("direction") or "request").lower() != "request":
            rule.book(None, lost("answers do not pass through Pointsman", "check answers in a filter of Envoy"))
            continue
        method = (rule.text("method") or "classifier").lower()
        if method not in ("classifier", "hybrid", "contrastive"):
            rule.book("method", lost("this method is not known; built-in examples judge"))
        elif method != "contrastive":
            rule.book_if(["method"], changed("built-in examples judge, no classifier", "`method: any` with a `pack`"))
        rule.book_if(
            ["jailbreak_patterns", "benign_patterns"],
            lost(
                "attacks are compared with built-in examples", "write yours as an `embedding` signal, and ask for any"
            ),
        )
        _history(rule)
        signals.mean("jailbreak", name, signals.add("jailbreak", name, rule, _threshold(rule)))


def read_pii(signals: Signals, node: Node | None) -> None:
    """`pii`: personal data but for the types that are allowed."""
    for name, rule in signals.rules(node, "pii", "pii"):
        allowed = {kind.upper() for kind in rule.texts("pii_types_allowed")}
        types = [kind for kind in PATTERN_TYPES if kind not in allowed]
        if not types:
            rule.book(None, lost("all types that are found here are allowed"))
            continue
        rule.book(
            "name",
            changed("names, places and the like are not found by patterns", "add types with a `model` or an `engine`"),
        )
        _history(rule)
        signals.mean("pii", name, signals.add("pii", name, rule, {"types": types, **_threshold(rule)}))


def _history(rule: Node) -> None:
    if rule.flag("include_history") is False:
        rule.book("include_history", _WHOLE)


def subject_condition(signals: Signals, name: str, rule: Node) -> Condition | None:
    """The domain that a condition names though no rule defines it, as their router makes one up."""
    subject = _subject(name)
    return None if subject is None else signals.add("domain", name, rule, {"any": [subject]})
