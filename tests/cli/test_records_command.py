from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.metrics import NoOpMeterProvider
from typer.testing import CliRunner, Result

from router.cli.main import app
from router.config.load import load_policy
from router.extproc.head import RequestHead
from router.extproc.house import move_in
from router.extproc.telling.desk import Desk
from router.extproc.telling.teller import Teller
from router.records.record_id import new_record_id
from router.records.sqlite_store import SqliteStore
from router.records.store import AnswerRow
from router.records.stored import StoredAnswer, StoredFinding, encode_beside
from router.records.writer import RecordWriter
from router.telemetry.instruments import create_instruments

POLICY = """\
version: 1
upstreams: [{model: a, cluster: x}, {model: b, cluster: y}]
default_model: a
records: {path: kept/r.sqlite}
signals:
  keyword: {trains: {any: [railway, "[/bold]"]}, proofs: {any: [proof]}}
projections:
  score: {s: {inputs: [{keyword: trains, weight: 0.2}, {keyword: proofs, weight: 0.3}]}}
decisions:
  - {name: rail, priority: 3, when: {keyword: trains}, route: {models: [b]}}
  - {name: math, priority: 2, when: {score: s, gte: 0.3}, respond: {message: "No."}}
"""
TEXTS = ["a railway", "a proof", "hello", "a railway proof"]


def run(*arguments: object, environment: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, ["records", *map(str, arguments)], env={"COLUMNS": "200", **(environment or {})})


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A policy whose store has four records."""
    policy = tmp_path_factory.mktemp("records") / "policy.yaml"
    policy.write_text(POLICY)
    (policy.parent / "kept").mkdir()

    async def serve() -> None:
        instruments = create_instruments(NoOpMeterProvider().get_meter("test"))
        writer, teller = RecordWriter(instruments.records_dropped), Teller((), instruments.telemetry_dropped)
        teller.start()
        house = await move_in(load_policy(policy), 1, records=writer, desk=Desk(teller))
        for text in TEXTS:
            body = {"model": "any", "messages": [{"role": "user", "content": text}]}
            await house.pipeline.judge(RequestHead("POST", "/v1/chat/completions", {}), json.dumps(body).encode())
            # Identifiers of one millisecond are in no order.
            now = new_record_id()[:13]
            while new_record_id()[:13] == now:
                pass
        teller.close()
        await asyncio.to_thread(writer.close)
        house.close()

    asyncio.run(serve())
    yield policy


def listed(policy: Path, *flags: object) -> list[dict[str, Any]]:
    result = run("list", "--config", policy, "--json", *flags)
    assert result.exit_code == 0, result.stderr
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows


def test_records_are_listed_the_newest_first(policy: Path) -> None:
    assert [row["decision"] for row in listed(policy)] == ["rail", "default", "math", "rail"]
    result = run("list", "--config", policy)
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["time", "record", "decision", "outcome", "model", "ms"]
    assert lines[1].split()[3:6] == ["rail", "route", "b"]
    assert lines[3].split()[3:6] == ["math", "refuse", "-"]


def test_an_identifier_is_shown_whole_on_a_narrow_terminal(policy: Path) -> None:
    result = run("list", "--config", policy, environment={"COLUMNS": "80"})
    assert all(row["record"] in result.stdout for row in listed(policy))


def test_a_list_can_be_cut(policy: Path) -> None:
    assert [row["model"] for row in listed(policy, "--decision", "rail", "--limit", 1)] == ["b"]
    assert [row["decision"] for row in listed(policy, "--model", "a")] == ["default"]
    assert len(listed(policy, "--since", "1h")) == 4
    assert listed(policy, "--since", "2999-01-01") == []
    assert len(listed(policy, "--since", "2020-01-01T00:00:00+02:00")) == 4


def test_the_store_is_named_by_the_environment_or_by_itself(policy: Path) -> None:
    assert run("list", environment={"POINTSMAN_CONFIG": str(policy)}).exit_code == 0
    assert run("list", "--store", policy.parent / "kept/r.sqlite").exit_code == 0


def test_a_record_is_shown_with_its_tree(policy: Path) -> None:
    record = listed(policy)[0]["record"]
    result = run("show", record.upper(), "--config", policy)
    assert result.exit_code == 0
    assert "rail route 3: matched <- wins" in result.stdout
    assert "/messages/0/content [2:9] railway" in result.stdout
    assert "score/s (>= 0.3): yes" in result.stdout
    assert "static of route: b" in result.stdout


def test_an_answer_that_did_not_pass_is_found_and_shown(policy: Path, tmp_path: Path) -> None:
    store = tmp_path / "r.sqlite"
    shutil.copy(policy.parent / "kept/r.sqlite", store)
    record = listed(policy)[1]["record"]
    found = StoredFinding("secret/key", "/choices/0/message/content", "AWS[/bold]\x1b")
    writing = SqliteStore(store)
    writing.append([AnswerRow(record, encode_beside(StoredAnswer("no-keys", "matched", True, False, (found,))))], {})
    writing.close()
    result = run("list", "--store", store, "--unpassed")
    [_, line] = result.stdout.splitlines()
    assert line.split()[2] == record
    assert line.rstrip().endswith("no-keys, matched, streamed, let through")
    [row] = json.loads(run("list", "--store", store, "--unpassed", "--json").stdout)
    assert row["answer"] == {
        "check": "no-keys",
        "why": "matched",
        "stream": True,
        "enforced": False,
        "evidence": [{"signal": "secret/key", "pointer": "/choices/0/message/content", "label": "AWS[/bold]\x1b"}],
    }
    shown = run("show", record, "--store", store).stdout
    assert "answer: no-keys, matched, streamed, let through" in shown
    assert "  secret/key AWS[/bold]" in shown
    assert "\x1b" not in shown


def test_a_record_as_json_is_what_explain_gives(policy: Path, tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"model": "any", "messages": [{"role": "user", "content": "a railway proof"}]}))
    explained = json.loads(CliRunner().invoke(app, ["explain", str(policy), str(request), "--json"]).stdout)
    shown = json.loads(run("show", listed(policy)[0]["record"], "--config", policy, "--json").stdout)
    assert shown.pop("time").endswith("Z")

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            left = {key: timeless(one) for key, one in value.items() if key not in ("record", "seed", "body_bytes")}
            return {key: one for key, one in left.items() if key != "ms" and not key.endswith("_ms")}
        return [timeless(one) for one in value] if isinstance(value, list) else value

    assert timeless(shown) == timeless(explained)


def test_replay_tells_what_would_change(policy: Path, tmp_path: Path) -> None:
    new, page = tmp_path / "new.yaml", tmp_path / "page.html"
    new.write_text(POLICY.replace("priority: 2", "priority: 9"))
    result = run("replay", "--policy", new, "--config", policy, "--html", page)
    assert result.exit_code == 0, result.stderr
    assert "rail → b" in result.stdout
    assert "math → refuse" in result.stdout
    assert "1 of 4 would change, 3 would not" in result.stdout
    assert "1 of 4 would change" in page.read_text()
    whole = json.loads(run("replay", "--policy", new, "--config", policy, "--json").stdout)
    assert (whole["changed"], whole["unchanged"], whole["undecidable"], whole["missing"]) == (1, 3, 0, {})
    [change] = whole["changes"]
    assert change["from"] == {"decision": "rail", "outcome": "route", "models": ["b"]}
    assert change["examples"] == [listed(policy)[0]["record"]]


def test_replay_under_the_policy_that_served_finds_its_store_and_changes_nothing(policy: Path) -> None:
    result = run("replay", "--policy", policy, "--max-changed", 0)
    assert result.exit_code == 0, result.stderr
    assert "0 of 4 would change, 4 would not" in result.stdout


@pytest.mark.parametrize(("most", "code"), [(0, 1), (1, 0)])
def test_more_changes_than_allowed_are_a_failure(policy: Path, tmp_path: Path, most: int, code: int) -> None:
    new = tmp_path / "new.yaml"
    new.write_text(POLICY.replace("priority: 2", "priority: 9"))
    assert run("replay", "-p", new, "-c", policy, "--max-changed", most).exit_code == code


def test_what_cannot_be_decided_is_said_with_what_is_missing(policy: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.yaml"
    new.write_text(POLICY.replace("any: [proof]", "any: [lemma]"))
    result = run("replay", "-p", new, "-c", policy)
    assert "keyword/proofs is missing in 2" in result.stdout
    assert "0 of 4 would change, 2 would not, 2 cannot be told" in result.stdout


def test_a_replay_of_nothing_says_nothing_for_a_policy(policy: Path) -> None:
    result = run("replay", "-p", policy, "--since", "2999-01-01")
    assert result.exit_code == 1
    assert "nothing can be said" in result.stderr


def test_a_record_of_a_policy_that_cannot_be_read_any_more_is_shown_without_trees(policy: Path, tmp_path: Path) -> None:
    import sqlite3

    store = tmp_path / "r.sqlite"
    store.write_bytes((policy.parent / "kept/r.sqlite").read_bytes())
    connection = sqlite3.connect(store)
    [(body,)] = connection.execute("SELECT body FROM bases").fetchall()
    basis = {**json.loads(body), "text": "dmVyc2lvbjogMAo="}
    connection.execute("UPDATE bases SET body = ?", (json.dumps(basis).encode(),))
    connection.commit()
    connection.close()
    result = run("show", listed(policy)[0]["record"], "--store", store)
    assert result.exit_code == 0
    assert "cannot be read any more" in result.stderr
    assert "rail (priority), to b on y" in result.stdout
    same = run("replay", "-p", policy, "--store", store)
    assert "0 of 4 would change, 4 would not" in same.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("list",), 2, "--store FILE"),
        (("list", "--store", "nowhere.sqlite"), 1, "no such file"),
        (("list", "--store", "POLICY"), 1, "not a database"),
        (("list", "-c", "POLICY", "--since", "soon"), 2, "--since takes"),
        (("show", "0000", "-c", "POLICY"), 1, "no record 0000"),
        (("show", "0", "-c", "POLICY"), 2, "several records begin"),
        (("replay", "-p", "nowhere.yaml", "-c", "POLICY"), 2, "no such file"),
        (("replay", "-p", "POLICY", "--html", "/nowhere/x.html"), 2, "no folder"),
    ],
)
def test_wrong_use_and_what_is_not_there_are_told_apart(
    policy: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = run(*(str(policy) if each == "POLICY" else each for each in arguments))
    assert (result.exit_code, words in " ".join(result.stderr.split())) == (code, True)


def test_a_policy_that_keeps_no_records_is_said_to_keep_none(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.replace("records: {path: kept/r.sqlite}\n", ""))
    result = run("list", "-c", policy)
    assert result.exit_code == 2
    assert "keeps no records" in result.stderr


def test_an_empty_store_lists_nothing(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "r.sqlite").close()
    result = run("list", "--store", tmp_path / "r.sqlite", "--json")
    assert json.loads(result.stdout) == []


@pytest.mark.parametrize("flags", [("--since", f"{'9' * 400}d"), ("--since", "99999999999999h")])
def test_a_moment_that_no_clock_shows_is_wrong_use(flags: tuple[str, str], policy: Path) -> None:
    result = run("list", "--config", policy, *flags)
    assert result.exit_code == 2
    assert "--since takes a span" in result.stderr


def test_any_number_of_records_may_be_asked_for(policy: Path) -> None:
    assert len(listed(policy, "--limit", "9" * 30)) == 4
    assert run("replay", "--config", policy, "--policy", policy, "--limit", "9" * 30).exit_code == 0


def changed_store(policy: Path, folder: Path, statement: str, *values: object) -> Path:
    """A copy of the store, in which somebody else has written."""
    path = folder / "changed.sqlite"
    with (
        contextlib.closing(sqlite3.connect(policy.parent / "kept/r.sqlite")) as store,
        contextlib.closing(sqlite3.connect(path)) as changed,
    ):
        store.backup(changed)
        changed.execute(statement, values)
        changed.commit()
    return path


def everything_of(store: Path, policy: Path, record: str) -> list[Result]:
    """What each command makes of it."""
    shows = ("show", record, "--store", store)
    lists = ("list", "--store", store)
    replays = ("replay", "--store", store, "--policy", policy)
    return [run(*lists), run(*lists, "--json"), run(*shows), run(*shows, "--json"), run(*replays)]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("records SET body", 5),
        ("records SET body", '{"format":1}'),
        ("bases SET body", 5),
        ("bases SET body", b"null"),
    ],
)
def test_a_store_that_was_tampered_with_is_told_in_a_line(
    column: str, value: object, policy: Path, tmp_path: Path
) -> None:
    record = listed(policy)[0]["record"]
    for result in everything_of(changed_store(policy, tmp_path, f"UPDATE {column} = ?", value), policy, record):
        assert result.exit_code in (0, 1)
        assert result.exception is None or isinstance(result.exception, SystemExit)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("confidence", "\u202e"),
        ("policy", "[/] x"),
        ("decision", "[/b]\x1b[2J"),
        ("record", "ffffffff-ffff-7fff-bfff-ffffffffffff"),
    ],
)
def test_nonsense_of_the_right_form_breaks_nothing(key: str, value: str, policy: Path, tmp_path: Path) -> None:
    record = listed(policy)[0]["record"]
    with contextlib.closing(sqlite3.connect(policy.parent / "kept/r.sqlite")) as store:
        [body] = store.execute("SELECT body FROM records WHERE record = ?", (record,)).fetchone()
    said = json.dumps({**json.loads(body), key: value}).encode()
    changed = changed_store(policy, tmp_path, "UPDATE records SET body = ? WHERE record = ?", said, record)
    for result in everything_of(changed, policy, record):
        assert result.exit_code in (0, 1)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        assert "\x1b[2J" not in result.stdout


def test_the_place_of_a_problem_is_no_picture(tmp_path: Path) -> None:
    wrong = tmp_path / "p.yaml"
    wrong.write_text(POLICY + "\n" * (99 - POLICY.count("\n")) + "what: is this\n")
    result = run("list", "--config", wrong)
    assert "p.yaml:100:1" in result.stderr
