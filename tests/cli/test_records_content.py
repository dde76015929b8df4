from __future__ import annotations

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

sys.path.append(str(Path(__file__).parents[1] / "extproc"))

from keeping_house import Keeping, keeping_house, kept_in

from router.cli.main import app
from router.records.capture import captured
from router.records.sealing import Keys, read_keys
from router.records.sqlite_store import StoreReader

KEY = base64.b64encode(b"k" * 32).decode()
OTHER = base64.b64encode(b"o" * 32).decode()
MAIL = "bob.miller@example.org"
POLICY = """\
version: 1
upstreams: [{model: a, cluster: x}, {model: b, cluster: y}]
default_model: a
trusted_headers: [x-team]
records: {path: r.sqlite, capture: {decisions: [default, rail], key_env: TEST_KEYS}}
shadow: {policy: other.yaml}
signals:
  keyword: {trains: {any: [railway]}, numbers: {any: [proof]}}
  pii: {mail: {types: [EMAIL_ADDRESS]}}
decisions:
  - {name: rail, priority: 3, when: {keyword: trains}, route: {models: [b]}}
  - {name: math, priority: 2, when: {keyword: numbers}, route: {models: [b]}}
"""
TEXTS = ["a railway", f"hello {MAIL}", "a proof", "a cheese"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["records", *map(str, arguments)], env={"COLUMNS": "200"})


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEYS", f"{KEY} {OTHER}")


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A policy whose store has four records, in the order of TEXTS, the content of three and what a shadow says."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    (tmp_path / "other.yaml").write_text(
        POLICY.replace("rail,", "train,").replace("rail]", "train]").replace("shadow:", "#")
    )

    async def serve() -> None:
        async with keeping_house(policy) as keeping:
            await _send(keeping)

    asyncio.run(serve())
    return policy


async def _send(keeping: Keeping) -> None:
    for text in TEXTS:
        await keeping.chat(text)
        await asyncio.sleep(0.002)


def records(policy: Path) -> list[str]:
    return [stored.record for stored in kept_in(policy.parent)]


def test_a_record_is_shown_with_its_content(policy: Path) -> None:
    [rail, mail, proof, _] = records(policy)
    shown = run("show", rail, "-c", policy, "--content")
    assert shown.exit_code == 0, shown.output
    assert "a railway" in shown.stdout
    assert "shadow: train → b\n" in shown.stdout
    plain = run("show", rail, "-c", policy)
    assert "content: kept" in plain.stdout
    assert "a railway" not in plain.stdout
    redacted = json.loads(run("show", mail, "-c", policy, "--content", "--json").stdout)
    assert redacted["captured"] == {"text": ["hello <EMAIL_ADDRESS>"], "images": []}
    assert redacted["content"] == "kept"
    missing = run("show", proof, "-c", policy, "--content")
    assert missing.exit_code == 1
    assert "did not ask for it" in missing.stderr


def test_content_is_shown_with_the_right_key_alone(
    policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [rail, *_] = records(policy)
    store = tmp_path / "r.sqlite"
    none = run("show", rail, "--store", store, "--content")
    assert none.exit_code == 1
    assert "--key-env or --key-file" in none.stderr.replace("\n", " ")
    (tmp_path / "keys").write_text(OTHER)
    wrong = run("show", rail, "--store", store, "--content", "--key-file", tmp_path / "keys")
    assert wrong.exit_code == 1
    (tmp_path / "keys").write_text(f"{OTHER}\n{KEY}\n")
    right = run("show", rail, "--store", store, "--content", "--key-file", tmp_path / "keys")
    assert "a railway" in right.stdout
    monkeypatch.setenv("TEST_KEYS", "no key")
    broken = run("show", rail, "-c", policy, "--content")
    assert broken.exit_code == 1
    assert "no key" not in broken.stderr


def test_what_a_shadow_would_do_otherwise_is_listed(policy: Path) -> None:
    [rail, *_] = records(policy)
    listed = json.loads(run("list", "-c", policy, "--differing", "--json").stdout)
    assert [one["record"] for one in listed] == [rail]
    shadow = listed[0]["shadow"]
    assert (shadow["decision"], shadow["outcome"], shadow["models"], shadow["differs"]) == (
        "train",
        "route",
        ["b"],
        True,
    )
    table = run("list", "-c", policy, "--differing")
    assert table.stdout.splitlines()[0].split()[-1] == "shadow"
    assert "train → b" in table.stdout


def replayed(policy: Path, new: str, *flags: object) -> tuple[dict[str, Any], Result]:
    path = policy.parent / "new.yaml"
    path.write_text(new)
    result = run("replay", "--policy", path, "-c", policy, "--json", *flags)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout), result


def test_signals_are_asked_again_where_content_was_captured(policy: Path) -> None:
    new = POLICY.replace("any: [railway]", "any: [railway, cheese, hello]")
    came, _ = replayed(policy, new, "--html", policy.parent / "page.html")
    # The proof's content was not kept, and whether it has one of the new words cannot be told.
    assert (came["records"], came["undecidable"], came["exact"], came["rerun"]) == (4, 1, 0, 3)
    assert came["rerun_of_redacted"] == 1
    [change] = came["changes"]
    assert (change["from"]["decision"], change["to"]["decision"], change["count"]) == ("default", "rail", 2)
    assert (change["rerun"], change["rerun_of_redacted"]) == (2, 1)
    page = (policy.parent / "page.html").read_text()
    assert "3 by asking signals again" in page
    table = run("replay", "--policy", policy.parent / "new.yaml", "-c", policy)
    assert "2 of 4 would change, 1 would not, 1 cannot be told" in table.stdout
    assert "0 from their records alone, 3 by asking signals again, 1 of them about redacted content" in table.stdout


def test_what_records_tell_alone_asks_nothing(policy: Path) -> None:
    came, _ = replayed(policy, POLICY.replace("priority: 2", "priority: 1"))
    assert (came["changed"], came["exact"], came["rerun"]) == (0, 4, 0)


def test_without_the_key_content_is_not_there(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_KEYS")
    came, result = replayed(policy, POLICY.replace("any: [railway]", "any: [railway, cheese]"))
    assert (came["undecidable"], came["rerun"]) == (4, 0)
    assert "TEST_KEYS is not set" in result.stderr.replace("\n", " ")


def test_a_header_that_nobody_kept_is_not_taken_for_one_that_was_not_sent(policy: Path) -> None:
    new = POLICY.replace("  pii:", "  header: {team: {name: x-team, any: [blue]}}\n  pii:").replace(
        "decisions:\n", "decisions:\n  - {name: blue, priority: 9, when: {header: team}, route: {models: [b]}}\n"
    )
    came, _ = replayed(policy, new.replace("decisions: [default, rail]", "decisions: all"))
    assert (came["undecidable"], list(came["missing"])) == (4, ["header/team"])


def test_the_page_is_given_what_was_captured(policy: Path) -> None:
    [rail, _, proof, _] = records(policy)
    with StoreReader(policy.parent / "r.sqlite") as reader:
        assert captured(reader, rail, read_keys(KEY)) == {"text": ["a railway"], "images": []}
        assert captured(reader, proof, read_keys(KEY)) is None
        assert captured(reader, rail, Keys()) is None
        assert captured(reader, "no record", read_keys(KEY)) is None
