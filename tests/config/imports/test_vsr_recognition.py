from __future__ import annotations

import pytest
from vsr_example import MODELS, imported, plain, told

from router.config.problems import PolicyError


def refusal(text: str) -> str:
    with pytest.raises(PolicyError) as caught:
        imported(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        ("", "1:1", "empty"),
        ("# only a comment\n", "1:1", "empty"),
        ("- a list\n", "1:1", "mapping"),
        ("x: 1\nvllm_endpoints: []\ncategories: []\n", "2:1", "config migrate"),
        ("version: v0.1\nsignals: {}\ndecisions: []\nproviders: {}\n", "2:1", "before v0.3"),
        ("version: v0.4\nrouting: {}\n", "1:1", "only v0.3"),
        ("config: {routing: {}}\n", "1:1", "Helm"),
        ("apiVersion: x/v1\nkind: SemanticRouter\nspec: {}\n", "1:1", "Kubernetes"),
        ("version: 1\nupstreams: []\n", "2:1", "policy of Pointsman"),
        ("routing: [a]\n", "1:1", "mapping"),
        ("version: v0.3\nrouting: {}\n", "1:1", "no model"),
        ("routing: {a: [}\n", "1:15", "not YAML"),
        ("routing: {}\nrouting: {}\n", "2:1", "again"),
    ],
)
def test_other_files_are_refused_with_a_place_and_a_way_on(text: str, place: str, word: str) -> None:
    message = refusal(text)
    assert message.startswith(f"config.yaml:{place}:")
    assert word in message


def test_every_wrong_type_is_told_with_its_line_and_column() -> None:
    message = refusal(
        MODELS + "routing:\n"
        "  signals:\n"
        "    keywords: nothing\n"
        "    context: [{name: c, min_tokens: many}]\n"
        "    embeddings: [{name: e, threshold: high, candidates: {a: 1}}]\n"
        "    domains: [{}]\n"
        "  decisions: [3]\n"
    )
    assert message.splitlines() == [
        "config.yaml:9:15: routing.signals.keywords: must be a list",
        "config.yaml:10:37: routing.signals.context[0].min_tokens: must be a number of tokens, such as 32000 or 32K",
        "config.yaml:11:39: routing.signals.embeddings[0].threshold: must be a number",
        "config.yaml:11:57: routing.signals.embeddings[0].candidates: must be a list of words",
        'config.yaml:12:15: routing.signals.domains[0]: needs the key "name"',
        "config.yaml:13:15: routing.decisions[0]: must be a mapping",
    ]


def test_files_that_unfold_without_end_are_refused() -> None:
    bomb = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    for last, name in zip("abcdef", "bcdefg", strict=True):
        bomb += f"{name}: &{name} [{', '.join([f'*{last}'] * 10)}]\n"
    assert "aliases unfolded" in refusal(bomb + MODELS + "routing: {}\n")
    assert "is too long" in refusal("#" + "x" * (4 * 1024 * 1024) + "\nrouting: {}\n")
    assert "contain itself" in refusal(MODELS + "routing: &r {signals: *r}\n")


def test_merge_keys_and_aliases_are_read() -> None:
    result = imported(
        MODELS + "routing:\n"
        "  signals:\n"
        "    context:\n"
        "      - &base {name: base, min_tokens: 10}\n"
        "      - {<<: *base, name: other, max_tokens: 20}\n"
    )
    assert plain(result)["signals"]["context"] == {
        "base": {"min_tokens": 10},
        "other": {"min_tokens": 10, "max_tokens": 20},
    }
    assert list(told(result, "moot")) == ["routing.signals.context[1].<<.name"]
    assert result.complete


def test_texts_of_the_file_can_not_break_out_of_comments_or_strings() -> None:
    nasty = r'"end\nversion: 2\u0085decisions: []\u2028# \u202e\e[31m"'
    result = imported(
        MODELS + "routing:\n"
        f"  signals: {{keywords: [{{name: k, description: {nasty}, operator: OR, keywords: [{nasty}]}}]}}\n"
        "  decisions:\n"
        f"    - {{name: {nasty}, description: {nasty}, rules: {{type: keyword, name: k}}}}\n"
    )
    assert len(plain(result)["decisions"]) == 1
    assert all(line.isprintable() for line in result.text.splitlines())


def test_half_of_a_surrogate_pair_is_refused_with_its_place() -> None:
    message = refusal(MODELS + 'routing: {signals: {keywords: [{name: k, keywords: [a, "\\udfff"]}]}}\n')
    where = "config.yaml:7:56: routing.signals.keywords[0].keywords[1]"
    assert message == f"{where}: is no text: half of a surrogate pair stands in it"


def test_many_rules_take_time_in_proportion() -> None:
    rows = "".join(f"      - {{name: k{i}, operator: XX, keywords: [a{i}]}}\n" for i in range(1_000))
    result = imported(MODELS + "routing:\n  signals:\n    keywords:\n" + rows)
    assert len(told(result, "lost")) == 1_000
