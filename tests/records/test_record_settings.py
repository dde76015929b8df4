"""What a policy may say about records, and what it is told when it says something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config.load import parse_policy
from router.config.problems import PolicyError

POLICY = """\
version: 1
upstreams: [{model: a, cluster: x}]
default_model: a
signals: {keyword: {words: {any: [word]}}, pii: {mail: {types: [EMAIL_ADDRESS]}}}
decisions: [{name: one, when: {keyword: words}, route: {models: [a]}}]
"""


def problems(records: str, policy: str = POLICY) -> list[str]:
    try:
        parse_policy(f"{policy}records: {records}\n".encode(), Path("policy.yaml"))
    except PolicyError as error:
        return error.lines()
    return []


@pytest.mark.parametrize(
    "records",
    [
        "{path: r.sqlite}",
        "{store: postgres, dsn_env: DSN}",
        "{store: postgres, dsn_file: dsn}",
        "{path: r.sqlite, capture: {decisions: all, key_env: KEYS}}",
        "{path: r.sqlite, capture: {decisions: [one, default], key_file: keys, keep_hours: 3, images: true}}",
        "{path: r.sqlite, capture: {decisions: all, encrypt: false, redact: false, max_bytes: 5}}",
    ],
)
def test_what_holds_together_is_taken(records: str) -> None:
    assert problems(records) == []


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ("{}", "needs path"),
        ("{path: r.sqlite, dsn_env: DSN}", "no connection string"),
        ("{store: postgres}", "needs dsn_env or dsn_file"),
        ("{store: postgres, dsn_env: DSN, dsn_file: dsn}", "one of the two"),
        ("{store: postgres, dsn_env: DSN, path: r.sqlite}", "no path"),
        ("{store: postgres, dsn: 'host=x'}", 'unknown key "dsn"; did you mean'),
        ("{path: r.sqlite, capture: {decisions: all}}", "needs key_env or key_file"),
        ("{path: r.sqlite, capture: {decisions: all, key_env: K, key_file: k}}", "one of the two"),
        ("{path: r.sqlite, capture: {decisions: all, key_env: K, encrypt: false}}", "take one of them away"),
        ("{path: r.sqlite, capture: {decisions: [ones], key_env: K}}", 'did you mean "one"'),
        ("{path: r.sqlite, capture: {key_env: K}}", 'needs the key "decisions"'),
    ],
)
def test_what_does_not_is_told_with_its_line(records: str, why: str) -> None:
    [line] = problems(records)
    assert why in line
    assert line.startswith("policy.yaml:6:")


def test_redaction_needs_somebody_who_finds() -> None:
    policy = POLICY.replace(", pii: {mail: {types: [EMAIL_ADDRESS]}}", "")
    [line] = problems("{path: r.sqlite, capture: {decisions: all, key_env: K}}", policy)
    assert "the policy has none; add one, or `redact: false`" in line
    assert problems("{path: r.sqlite, capture: {decisions: all, key_env: K, redact: false}}", policy) == []


def test_paths_start_at_the_policys_folder(tmp_path: Path) -> None:
    text = f"{POLICY}records: {{path: r.sqlite, capture: {{decisions: all, key_file: keys}}}}\n"
    loaded = parse_policy(text.encode(), tmp_path / "policy.yaml")
    assert loaded.records is not None
    placed = loaded.records.placed(loaded.base)
    assert placed.path == str(tmp_path / "r.sqlite")
    assert placed.capture is not None
    assert placed.capture.key_file == str(tmp_path / "keys")
