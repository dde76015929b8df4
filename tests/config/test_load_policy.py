from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from router.config.load import LoadedPolicy, load_policy, parse_policy
from router.config.problems import PolicyError
from router.policy.model import All, Any, Clarify, Not, Refuse, Route
from router.policy.predicate import Leaf
from router.selection.model import Static
from router.signals.base import SignalName

Load = Callable[[str], LoadedPolicy]
Refused = Callable[[str], list[str]]

DEMO = Path(__file__).parents[2] / "examples" / "demo" / "policy.yaml"


def test_the_demo_policy_loads() -> None:
    loaded = load_policy(DEMO)
    assert [d.name for d in loaded.policy.decisions][:2] == ["block-attack", "identity-document"]
    assert loaded.policy.digest == hashlib.sha256(DEMO.read_bytes()).hexdigest()
    assert loaded.base == DEMO.parent


def test_the_smallest_policy_has_defaults(load: Load) -> None:
    loaded = load("")
    assert loaded.policy.on_failure == "closed"
    assert loaded.policy.respect_requested_model is False
    assert loaded.policy.decisions == ()
    assert loaded.limits.decision_ms == 2000
    assert loaded.policy.upstream("small").rewrite_model == "small"
    assert loaded.policy.upstream("large").rewrite_model == "Big/Large"


def test_conditions_become_a_tree(load: Load) -> None:
    loaded = load("""\
        signals:
          keyword:
            medical: {any: [dosage]}
        decisions:
          - name: d
            when: {all: [{keyword: medical}, {any: [{conversation: has_images}, {not: {keyword: medical}}]}]}
            route: {models: [large, small]}
    """)
    [decision] = loaded.policy.decisions
    medical = Leaf(SignalName("keyword", "medical"))
    images = Leaf(SignalName("conversation", "has_images"))
    assert decision.when == All((medical, Any((images, Not(medical)))))
    assert decision.outcome == Route(("large", "small"), Static())


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("{clarify: Which one?}", Clarify("Which one?")),
        ("{message: No.}", Refuse(403, "policy_violation", "No.")),
        ("{status: 451, code: legal, message: No.}", Refuse(451, "legal", "No.")),
    ],
)
def test_a_response_is_a_clarification_or_a_refusal(load: Load, outcome: str, expected: object) -> None:
    loaded = load(f"decisions: [{{name: d, when: {{conversation: has_images}}, respond: {outcome}}}]")
    assert loaded.policy.decisions[0].outcome == expected


@pytest.mark.parametrize(
    ("flags", "unknown_matches"),
    [
        ("guard: true", True),
        ("guard: false", False),
        ("guard: true, on_unknown: no_match", False),
        ("guard: false, on_unknown: match", True),
    ],
)
def test_unknown_settles_closed_for_guards_unless_written_otherwise(
    load: Load, flags: str, unknown_matches: bool
) -> None:
    loaded = load(f"decisions: [{{name: d, {flags}, when: {{conversation: has_images}}, route: {{models: [small]}}}}]")
    assert loaded.policy.decisions[0].unknown_matches is unknown_matches


ERRORS = [
    # a key nobody knows, at the top, in a list, in a family's settings, as a family, as an operator
    ("on_failur: open", ['policy.yaml:6:1: on_failur: unknown key "on_failur"; did you mean "on_failure"?']),
    (
        "limits: {decision_millis: 5}",
        ['policy.yaml:6:10: limits.decision_millis: unknown key "decision_millis"; did you mean "decision_ms"?'],
    ),
    (
        "decisions:\n  - name: d\n    priorty: 3\n    when: {conversation: has_images}\n    route: {models: [small]}",
        ['policy.yaml:8:5: decisions[0].priorty: unknown key "priorty"; did you mean "priority"?'],
    ),
    (
        "decisions:\n  - name: d\n    when: {conversation: has_images}\n    route: {modls: [small], models: [small]}",
        ['policy.yaml:9:13: decisions[0].route.modls: unknown key "modls"; did you mean "models"?'],
    ),
    (
        "signals:\n  keyword:\n    k: {any: [a], metod: exact}",
        ['policy.yaml:8:19: signals.keyword.k.metod: unknown key "metod"; did you mean "method"?'],
    ),
    (
        "signals:\n  keywords:\n    k: {any: [a]}",
        ['policy.yaml:7:3: signals.keywords: unknown signal family "keywords"; did you mean "keyword"?'],
    ),
    (
        "decisions:\n  - {name: d, when: {al: []}, route: {models: [small]}}",
        [
            'policy.yaml:7:22: decisions[0].when.al: "al" is neither an operator nor a signal family; '
            'did you mean "all"?'
        ],
    ),
    (
        "trusted_headers: [x-team]\nstrip_from_clients: [x-teams]",
        ['policy.yaml:7:22: strip_from_clients[0]: "x-teams" is not among trusted_headers; did you mean "x-team"?'],
    ),
    ("limits: {decision_ms: 2s}", ["policy.yaml:6:23: limits.decision_ms: must be a whole number"]),
    ("decisions: 3", ["policy.yaml:6:12: decisions: must be a list"]),
    ("encoders: starter", ["policy.yaml:6:11: encoders: must be a mapping"]),
    (
        "on_failur: open\nsignals:\n  keyword:\n    k: {any: []}",
        [
            'policy.yaml:6:1: on_failur: unknown key "on_failur"; did you mean "on_failure"?',
            "policy.yaml:9:14: signals.keyword.k.any: needs at least 1 entry",
        ],
    ),
    (
        "limits: {zzzz: 1}",
        [
            'policy.yaml:6:10: limits.zzzz: unknown key "zzzz"; known are decision_ms, body_bytes, image_bytes, '
            "image_pixels, decoded_bytes, decoded_ratio, images, parts, queue, held_bytes, cache_bytes"
        ],
    ),
    # references
    (
        "decisions:\n  - {name: d, when: {conversation: has_image}, route: {models: [small]}}",
        [
            'policy.yaml:7:36: decisions[0].when.conversation: no signal "has_image" under signals.conversation; '
            'did you mean "has_images"?'
        ],
    ),
    (
        "decisions:\n  - {name: d, when: {conversation: has_images}, route: {models: [smal]}}",
        ['policy.yaml:7:66: decisions[0].route.models[0]: no upstream has the model "smal"; did you mean "small"?'],
    ),
    (
        "signals:\n  embedding:\n    e: {texts: [a], threshold: 0.5}",
        ["policy.yaml:8:5: signals.embedding.e: embedding signals need encoders.text; for example `text: starter`"],
    ),
    # shapes
    (
        "signals:\n  classifier:\n    c: {head: harm}",
        [
            "policy.yaml:8:5: signals.classifier.c: harm: a head of encoders.text, which is not there; for example "
            "`text: starter`"
        ],
    ),
    (
        "decisions:\n  - {name: d, when: {conversation: has_images}}",
        ["policy.yaml:7:5: decisions[0]: needs exactly one outcome: route or respond"],
    ),
    (
        "decisions:\n  - {name: d, when: {all: []}, route: {models: [small]}}",
        ["policy.yaml:7:27: decisions[0].when.all: all takes a list of one or more conditions"],
    ),
    (
        "decisions:\n  - {name: d, when: {keyword: a, conversation: b}, route: {models: [small]}}",
        ["policy.yaml:7:21: decisions[0].when: must have exactly one key: all, any, at_least, not, or a signal family"],
    ),
    (
        "decisions:\n  - {when: {conversation: has_images}, route: {models: [small]}}",
        ['policy.yaml:7:5: decisions[0].name: needs the key "name"'],
    ),
    (
        "decisions:\n  - {name: my decision, when: {conversation: has_images}, route: {models: [small]}}",
        ["policy.yaml:7:12: decisions[0].name: must match ^[\\x21-\\x7e]+$"],
    ),
    ("on_failure: maybe", ["policy.yaml:6:13: on_failure: must be 'closed' or 'open'"]),
    # YAML
    ("version: 1", ['policy.yaml:6:1: version: key "version" stands here again; it is at line 1 already']),
    ("limits: [", ["policy.yaml:6:10: is not YAML: expected the node content, but found '<stream end>'"]),
    ("limits: &a {x: *a}", ["policy.yaml:6:9: limits.x: an alias may not contain itself"]),
]


@pytest.mark.parametrize(("text", "lines"), ERRORS)
def test_an_error_names_file_line_column_and_the_nearest_key(refused: Refused, text: str, lines: list[str]) -> None:
    assert refused(text) == lines


def test_every_problem_is_reported_at_once_in_the_files_order(refused: Refused) -> None:
    lines = refused("""\
        decisions:
          - {name: d, when: {conversation: nope}, route: {models: [nope]}}
          - {name: d, when: {conversation: has_images}, route: {models: [small]}}
    """)
    assert [line.split(": ")[1] for line in lines] == [
        "decisions[0].when.conversation",
        "decisions[0].route.models[0]",
        "decisions[1].name",
    ]


@pytest.mark.parametrize("name", ["default", "failure"])
def test_words_that_records_use_for_no_decision_cannot_name_one(refused: Refused, name: str) -> None:
    [line] = refused(f"decisions: [{{name: {name}, when: {{conversation: has_images}}, route: {{models: [small]}}}}]")
    assert f'"{name}" is reserved' in line


@pytest.mark.parametrize(
    "endpoint", ["ftp://a", "http://", "http://a:99999", "http://user:secret@a", "http://a/v1", "a:80", "http://a?x=1"]
)
def test_an_endpoint_is_a_bare_origin(endpoint: str) -> None:
    text = f'version: 1\nupstreams: [{{model: a, cluster: b, endpoint: "{endpoint}"}}]\ndefault_model: a\n'
    with pytest.raises(PolicyError) as caught:
        parse_policy(text.encode(), Path("p.yaml"))
    assert "upstreams[0].endpoint" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [b"\xff\xfe", b"", b"[]", b"a: b: c", b"%", b"- " * 100_000, b"{" * 100_000, b"a: !!python/name:os.system x"],
)
def test_what_is_no_policy_is_an_error_not_a_crash(text: bytes) -> None:
    with pytest.raises(PolicyError):
        parse_policy(text, Path("p.yaml"))


ALIAS_BOMB = b"a0: &a0 [x]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 10)
)
ALIAS_CHAIN = b"a0: &a0 [x]\n" + b"".join(b"a%d: &a%d [*a%d]\n" % (n, n, n - 1) for n in range(1, 1500))


@pytest.mark.parametrize("text", [ALIAS_BOMB, ALIAS_CHAIN], ids=["bomb", "chain"])
def test_aliases_cannot_unfold_without_end(text: bytes) -> None:
    with pytest.raises(PolicyError, match="aliases unfolded"):
        parse_policy(text, Path("p.yaml"))


def test_the_clusters_of_the_bootstrap_are_reserved() -> None:
    text = b"version: 1\nupstreams: [{model: a, cluster: pointsman_again}]\ndefault_model: a\n"
    with pytest.raises(PolicyError, match="cluster of Pointsman itself"):
        parse_policy(text, Path("p.yaml"))


def test_a_missing_file_is_a_policy_error(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy(tmp_path / "none.yaml")


def test_a_pipe_is_no_policy_and_nobody_waits_for_whoever_writes_to_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "policy.yaml")
    with pytest.raises(PolicyError, match="no regular file"):
        load_policy(tmp_path / "policy.yaml")


def test_no_more_of_a_file_is_read_than_a_policy_may_have(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    with file.open("wb") as sparse:
        sparse.truncate(2**34)
    with pytest.raises(PolicyError, match="too long"):
        load_policy(file)


def test_packs_are_checked_again_every_ten_minutes_unless_told_otherwise(load: Load) -> None:
    assert load("").parity.interval == 600
    assert load("parity: {interval: 0}").parity.interval == 0


def test_a_check_interval_is_not_negative(refused: Refused) -> None:
    [line] = refused("parity: {interval: -1}")
    assert "parity.interval" in line
