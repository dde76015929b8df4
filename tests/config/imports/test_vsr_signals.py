from __future__ import annotations

from typing import Any

import pytest
from vsr_example import loaded, plain, routing, told

from router.config.imports.vsr import Imported


def rules(family: str, *rows: str) -> Imported:
    return routing(f"signals:\n  {family}:\n" + "".join(f"    - {{{row}}}\n" for row in rows))


def only(result: Imported, family: str) -> Any:
    [settings] = plain(result)["signals"][family].values()
    return settings


def asked(section: str, kind: str, row: str, name: str) -> Any:
    """What a decision on the signal asks."""
    result = routing(
        f"signals:\n  {section}:\n    - {{{row}}}\n"
        f"decisions:\n  - {{name: d, rules: {{type: {kind}, name: '{name}'}}, modelRefs: [{{model: large}}]}}\n"
    )
    return plain(result)["decisions"][0]["when"]


def test_keywords_by_operator() -> None:
    assert only(rules("keywords", "name: k, operator: OR, keywords: [a, b]"), "keyword") == {
        "any": ["a", "b"], "method": "exact", "over": "latest",
    }  # fmt: skip
    assert only(rules("keywords", "name: k, operator: AND, keywords: [a, b, A]"), "keyword")["at_least"] == 2
    assert asked("keywords", "keyword", "name: k, operator: NOR, keywords: [a]", "k") == {"not": {"keyword": "k"}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("method: regex, case_sensitive: true", {"method": "regex", "case_sensitive": True}),
        ("method: bm25, bm25_threshold: 3.5", {"method": "bm25"}),
        ("method: ngram, ngram_threshold: 0.4", {"method": "fuzzy"}),
        ("fuzzy_match: true, fuzzy_threshold: 1", {"method": "fuzzy", "similarity": 0.9}),
        ("method: fuzzy, fuzzy_threshold: 82", {"method": "fuzzy", "similarity": 0.82}),
        ("case_sensitive: no", {"method": "exact"}),
    ],
)
def test_keywords_by_method(fields: str, expected: dict[str, Any]) -> None:
    settings = only(rules("keywords", f"name: k, operator: OR, keywords: [emergencys], {fields}"), "keyword")
    assert settings == {"any": ["emergencys"], "over": "latest", **expected}


def test_signal_names_are_normalised_told_apart_and_avoid_built_in_ones() -> None:
    result = rules("context", "name: a b, min_tokens: 1", "name: a_b, min_tokens: 2", 'name: "ü", min_tokens: 3')
    assert list(plain(result)["signals"]["context"]) == ["a_b", "a_b_2", "context"]
    built_in = rules(
        "conversation", "name: has_images, feature: {type: count, source: {type: image_content}}, predicate: {gte: 3}"
    )
    assert plain(built_in)["signals"]["conversation"] == {"has_images_2": {"min_images": 3}}


def test_a_rule_that_equals_a_built_in_signal_needs_no_definition() -> None:
    row = "name: has_images, feature: {type: exists, source: {type: image_content}}"
    assert "signals" not in plain(rules("conversation", row))
    assert asked("conversation", "conversation", row, "has_images") == {"conversation": "has_images"}


def test_a_name_that_stands_there_twice_is_lost() -> None:
    result = rules("context", "name: a, min_tokens: 1", "name: a, min_tokens: 2")
    assert plain(result)["signals"]["context"] == {"a": {"min_tokens": 1}}
    assert "routing.signals.context[0]" in told(result, "lost")["routing.signals.context[1]"]


@pytest.mark.parametrize(("written", "tokens"), [("32K", 32_000), ("1.5m", 1_500_000), ("8192", 8192), ("0", 0)])
def test_token_counts(written: str, tokens: int) -> None:
    assert only(rules("context", f"name: c, min_tokens: {written}"), "context") == {"min_tokens": tokens}


@pytest.mark.parametrize(
    ("predicate", "bounds"),
    [
        ("gt: 3", {"min_user_turns": 4}),
        ("gte: 2.5, lt: 9", {"min_user_turns": 3, "max_user_turns": 8}),
        ("lte: 4.5", {"max_user_turns": 4}),
    ],
)
def test_predicates_become_inclusive_whole_bounds(predicate: str, bounds: dict[str, int]) -> None:
    row = f"name: c, feature: {{type: count, source: {{type: message, role: user}}}}, predicate: {{{predicate}}}"
    assert only(rules("conversation", row), "conversation") == bounds


def test_an_empty_range_is_lost() -> None:
    row = "name: c, feature: {type: count, source: {type: message}}, predicate: {gt: 3, lt: 4}"
    assert "routing.signals.conversation[0]" in told(rules("conversation", row), "lost")


def test_structures_become_patterns() -> None:
    exists = "name: s, feature: {type: exists, source: {type: regex, pattern: '^1[.]'}}"
    assert only(rules("structure", exists), "structure") == {"pattern": "^1[.]", "over": "latest"}
    words = "name: s, feature: {type: count, source: {type: keyword_set, keywords: [at most, c++, 至少]}}"
    assert only(rules("structure", words + ", predicate: {gte: 2}"), "structure") == {
        "pattern": r"(?i)(?:\bat most\b|\bc\+\+|至少)", "over": "latest", "min": 2,
    }  # fmt: skip


def test_several_sequences_are_any_of_several_signals() -> None:
    row = "name: s, feature: {type: sequence, source: {type: sequence, sequences: [[a, b], [c, d]]}}"
    assert asked("structure", "structure", row, "s") == {"any": [{"structure": "s"}, {"structure": "s_2"}]}


def test_domains_keep_what_is_told_apart() -> None:
    result = rules("domains", "name: it, mmlu_categories: [computer_science, gossip]", "name: law", "name: cooking")
    assert plain(result)["signals"]["domain"] == {"it": {"any": ["computer science"]}, "law": {"any": ["law"]}}
    assert told(result, "lost").keys() == {
        "routing.signals.domains[0].mmlu_categories[1]",
        "routing.signals.domains[2]",
    }


def test_a_domain_that_no_rule_defines_is_made_once_where_there_are_none() -> None:
    decision = "{name: NAME, priority: P, rules: {type: domain, name: law}, modelRefs: [{model: large}]}"
    rows = [decision.replace("NAME", "a").replace("P", "2"), decision.replace("NAME", "b").replace("P", "1")]
    result = routing("decisions:\n" + "".join(f"  - {row}\n" for row in rows))
    assert plain(result)["signals"]["domain"] == {"law": {"any": ["law"]}}


def test_embeddings_by_what_they_ask() -> None:
    text = only(
        rules("embeddings", "name: e, threshold: 0.7, aggregation_method: mean, candidates: [a b]"), "embedding"
    )
    assert text == {"texts": ["a b"], "threshold": 0.7, "aggregate": "mean"}
    margin = only(
        rules("embeddings", "name: e, threshold: 0.1, candidates: [a], negative_candidates: [b]"), "complexity"
    )
    assert margin == {"hard": ["a"], "easy": ["b"], "threshold": 0.1}
    seen = rules("embeddings", "name: e, query_modality: image, threshold: 0.55, candidates: [a car]")
    assert only(seen, "image") == {"concepts": ["a car"]}
    assert "probability" in told(seen, "changed")["routing.signals.embeddings[0].threshold"]
    assert plain(seen)["encoders"] == {"text": "starter", "vision": "starter"}


def test_images_inside_the_configuration_are_lost_and_files_kept() -> None:
    result = rules(
        "embeddings", 'name: e, candidates: [a], image_candidates: ["data:image/png;base64,AAAA", cats/one.png]'
    )
    assert only(result, "embedding")["images"] == ["cats/one.png"]
    assert "routing.signals.embeddings[0].image_candidates[0]" in told(result, "lost")


def test_thresholds_are_carried_with_a_note_or_lost_where_there_is_no_such_score() -> None:
    result = rules("jailbreak", "name: j, threshold: 0.9", "name: k, threshold: 9")
    assert plain(result)["signals"]["jailbreak"] == {"j": {"threshold": 0.9}}
    assert "scale" in told(result, "changed")["routing.signals.jailbreak[0].threshold"]
    assert "threshold" in told(result, "lost")["routing.signals.jailbreak[1]"]


def test_rules_on_answers_are_lost() -> None:
    result = rules("jailbreak", "name: j, direction: response, threshold: 0.9")
    assert "answers" in told(result, "lost")["routing.signals.jailbreak[0]"]


def test_personal_data_but_for_what_is_allowed() -> None:
    settings = only(rules("pii", "name: p, pii_types_allowed: [email_address, PERSON]"), "pii")
    assert "EMAIL_ADDRESS" not in settings["types"]
    assert "CREDIT_CARD" in settings["types"]


def test_preferences_are_rivals_of_each_other_and_one_alone_is_an_embedding() -> None:
    two = plain(rules("preferences", "name: a, examples: [x]", "name: b, description: y, threshold: 0.3"))
    assert two["signals"]["preference"] == {
        "a": {"of": {"a": ["x"], "b": ["y"]}, "any": ["a"]},
        "b": {"of": {"a": ["x"], "b": ["y"]}, "any": ["b"], "threshold": 0.3},
    }
    assert only(rules("preferences", "name: a, examples: [x]"), "embedding") == {"texts": ["x"]}


def test_roles_come_from_trusted_headers() -> None:
    row = "name: staff, role: admin, subjects: [{kind: User, name: root}, {kind: Group, name: ops}]"
    both = {"any": [{"header": "staff"}, {"role": "staff"}]}
    assert asked("role_bindings", "authz", row, "staff") == both
    assert asked("role_bindings", "authz", row, "admin") == both
    policy = loaded(rules("role_bindings", row)).policy
    assert policy.trusted_headers == ("x-authz-user-id", "x-authz-user-groups")


@pytest.mark.parametrize(
    ("name", "when"),
    [
        ("DIFFUSION", {"modality": "DIFFUSION"}),
        ("AR", {"not": {"modality": "AR"}}),
    ],
)
def test_modalities(name: str, when: Any) -> None:
    assert asked("modality", "modality", f"name: {name}", name) == when


def test_complexity_has_three_verdicts() -> None:
    row = "name: c, threshold: 0.1"
    assert asked("complexity", "complexity", row, "c:hard") == {"complexity": "c"}
    assert asked("complexity", "complexity", row, "c:medium") == {"complexity": "c", "gte": -0.1, "lt": 0.1}
    assert asked("complexity", "complexity", row, "c:easy") == {"complexity": "c", "lt": -0.1}


def test_events_are_words() -> None:
    settings = only(rules("events", "name: e, event_types: [payment_failed], temporal: true"), "keyword")
    assert settings["any"][:2] == ["payment_failed", "urgent"]


@pytest.mark.parametrize("family", ["kb", "classifiers", "safety", "metadata", "hallucination", "brand_new"])
def test_families_without_a_counterpart_are_lost(family: str) -> None:
    result = rules(family, "name: x, anything: [1]")
    assert [key for key in told(result, "lost") if key.startswith(f"routing.signals.{family}")]
    assert "signals" not in plain(result)
