from __future__ import annotations

import importlib
import json
import logging
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from kept_records import LOADED, Counted, quick_writer, record, row, until
from postgres_server import Server, running
from typer.testing import CliRunner

from router.cli.main import app
from router.config.handling import RecordSettings
from router.records.basis import Basis, basis_of
from router.records.opening import check_place, open_reader
from router.records.postgres_reader import PostgresReader
from router.records.postgres_schema import SCHEMA_VERSION
from router.records.postgres_store import PostgresStore
from router.records.store import AnswerRow, Filter, Keep, StoreError
from router.records.stored import StoredAnswer, encode_beside

VARIABLE = "POINTSMAN_TEST_DSN"
CANARY = "canary7secret"


@pytest.fixture
def own() -> Iterator[Server]:
    """A server that a test may end."""
    with running() as server:
        yield server


@pytest.fixture
def counted() -> Iterator[Counted]:
    counted = Counted()
    yield counted
    counted.close()


def basis_in(dsn: str, monkeypatch: pytest.MonkeyPatch, **settings: object) -> Basis:
    monkeypatch.setenv(VARIABLE, dsn)
    made = RecordSettings.model_validate({"store": "postgres", "dsn_env": VARIABLE, **settings})
    return basis_of(LOADED, {}, made)


def kept(dsn: str) -> list[str]:
    with PostgresReader(dsn) as reader:
        return [stored.record for stored, _ in reader.newest(Filter())]


def test_a_writer_puts_records_into_the_database(
    postgres: Server, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = postgres.database()
    basis, writer = basis_in(dsn, monkeypatch), quick_writer(counted)
    writer.start()
    sent = [record() for _ in range(2500)]
    for one in sent:
        writer.put(basis, one)
    writer.close()
    assert sorted(kept(dsn)) == sorted(one.record for one in sent)
    assert counted.dropped() == {}


def test_many_make_the_tables_at_once(postgres: Server) -> None:
    dsn = postgres.database()
    troubles: list[BaseException] = []
    together = threading.Barrier(6)

    def make() -> None:
        try:
            together.wait(30)
            PostgresStore(dsn).close()
        except BaseException as error:
            troubles.append(error)

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == []
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT version FROM pointsman_meta").fetchall() == [(SCHEMA_VERSION,)]


def test_tables_of_the_first_version_are_read_as_they_are_and_completed_by_a_writer(postgres: Server) -> None:
    dsn = postgres.database()
    store, basis = PostgresStore(dsn), basis_of(LOADED, {}, RecordSettings(store="postgres", dsn_env=VARIABLE))
    store.append([one := row(basis)], {basis.digest: basis.body})
    store.close()
    with psycopg.connect(dsn) as connection:
        connection.execute("DROP TABLE pointsman_answers")
        connection.execute("UPDATE pointsman_meta SET version = 1")
    with PostgresReader(dsn) as reader:
        assert len(reader.find(one.record)) == 1
        assert list(reader.newest(Filter(unpassed=True))) == []
    store = PostgresStore(dsn)
    store.append([AnswerRow(one.record, encode_beside(StoredAnswer("no-keys", "matched")))], {})
    store.close()
    with PostgresReader(dsn) as reader:
        [(stored, _)] = reader.newest(Filter(unpassed=True))
        assert stored.answer == StoredAnswer("no-keys", "matched")


def test_who_may_make_no_tables_may_use_those_that_are_there(postgres: Server) -> None:
    dsn = postgres.database()
    PostgresStore(dsn).close()
    role = f"writer_{dsn.rpartition('=')[2]}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}")
    store = PostgresStore(dsn.replace("user=tester", f"user={role}"))
    basis = basis_of(LOADED, {}, RecordSettings(store="postgres", dsn_env=VARIABLE))
    store.append([row(basis)], {basis.digest: basis.body})
    store.close()
    assert len(kept(dsn)) == 1


def test_a_database_of_a_later_version_is_left_alone(postgres: Server) -> None:
    dsn = postgres.database()
    PostgresStore(dsn).close()
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE pointsman_meta SET version = 99")
    for opened in (PostgresStore, PostgresReader):
        with pytest.raises(StoreError, match="version 99"):
            opened(dsn)


def test_a_database_without_records_is_no_store_to_read(postgres: Server) -> None:
    with pytest.raises(StoreError, match="holds no records"):
        PostgresReader(postgres.database())


def test_only_one_looks_for_what_is_too_old(postgres: Server) -> None:
    dsn = postgres.database()
    basis = basis_of(LOADED, {}, RecordSettings(store="postgres", dsn_env=VARIABLE))
    store = PostgresStore(dsn)
    store.append([row(basis, "01890000-0000-7000-8000-000000000001")], {basis.digest: basis.body})
    assert store.prune(Keep(60, 1 << 40)) == 1
    store.append([row(basis, "01890000-0000-7000-8000-000000000002")], {basis.digest: basis.body})
    other = PostgresStore(dsn)
    assert other.prune(Keep(60, 1 << 40)) == 0
    other.close()
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_a_server_that_goes_costs_no_record_that_waits_and_gets_them_when_it_is_back(
    own: Server,
    counted: Counted,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    how: signal.Signals,
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("router.records.writer.AWAY_SECONDS", 0.1)
    dsn = own.database()
    basis, writer = basis_in(dsn, monkeypatch), quick_writer(counted)
    writer.start()
    writer.put(basis, record())
    until(lambda: _some(dsn), "the first record")
    own.stop(how)
    for _ in range(20):
        writer.put(basis, record())
    until(lambda: "records are not kept" in caplog.messages, "the log line")
    own.start()
    until(lambda: len(kept(dsn)) == 21, "all records")
    writer.close()
    assert counted.dropped() == {}
    assert "records are kept again" in caplog.messages


def _some(dsn: str) -> bool:
    try:
        return bool(kept(dsn))
    except StoreError:
        return False


@pytest.mark.slow
def test_a_server_that_stays_away_drops_what_does_not_fit_the_queue(
    own: Server, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = own.database()
    own.stop()
    basis, writer = basis_in(dsn, monkeypatch), quick_writer(counted, limit=10)
    writer.start()
    for _ in range(3000):
        writer.put(basis, record())
    writer.close()
    assert sum(counted.dropped().values()) == 3000
    assert counted.dropped()["queue_full"] > 0


def test_a_server_that_has_no_room_drops_and_counts(
    postgres: Server, counted: Counted, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dsn = postgres.database()
    PostgresStore(dsn).close()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION full_up() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'no space left, says canary7secret' USING ERRCODE = '53100'; END $$"
        )
        connection.execute("CREATE TRIGGER t BEFORE INSERT ON pointsman_records EXECUTE FUNCTION full_up()")
        basis, writer = basis_in(dsn, monkeypatch), quick_writer(counted)
        writer.start()
        writer.put(basis, record())
        until(lambda: counted.dropped() == {"store": 1}, "the drop")
        connection.execute("DROP TRIGGER t ON pointsman_records")
    last = record()
    writer.put(basis, last)
    until(lambda: kept(dsn) == [last.record], "the record")
    writer.close()
    [line] = [one for one in caplog.records if one.getMessage() == "records are not kept"]
    assert line.__dict__["fields"] == {"file": "postgres", "why": "the server refuses: DiskFull (53100)"}
    assert CANARY not in caplog.text


def test_a_statement_that_takes_too_long_is_given_up_and_tried_again(
    postgres: Server, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresStore, "_seconds", 0.2)
    dsn = postgres.database()
    PostgresStore(dsn).close()
    basis, writer = basis_in(dsn, monkeypatch), quick_writer(counted)
    with psycopg.connect(dsn) as other:
        other.execute("LOCK TABLE pointsman_records IN ACCESS EXCLUSIVE MODE")
        writer.start()
        sent = record()
        writer.put(basis, sent)
        until(lambda: writer._failing, "the failure")
    until(lambda: kept(dsn) == [sent.record], "the record")
    writer.close()
    assert counted.dropped() == {}


def test_an_answer_that_never_comes_is_not_waited_for(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.records.postgres_link.ANSWER_SLACK", 0.1)
    monkeypatch.setattr(PostgresStore, "_seconds", 0.2)
    basis = basis_of(LOADED, {}, RecordSettings(store="postgres", dsn_env=VARIABLE))
    store = PostgresStore(postgres.database())
    backend = store._connection.info.backend_pid
    with postgres.frozen(backend), pytest.raises(StoreError) as told:
        store.append([row(basis)], {basis.digest: basis.body})
    assert told.value.away
    store.close()


@pytest.mark.parametrize(
    ("dsn", "why"),
    [
        (f"postgres//user:{CANARY}@host/db", "no connection string"),
        (f"host=localhost passwort={CANARY}", "no connection string"),
        (f"host=/nowhere password={CANARY} dbname={CANARY}", "cannot be reached|no such user or database"),
    ],
)
def test_no_error_quotes_the_connection_string(dsn: str, why: str) -> None:
    with pytest.raises(StoreError, match=why) as told:
        PostgresStore(dsn)
    assert CANARY not in str(told.value)
    assert told.value.__cause__ is None
    assert told.value.__suppress_context__


def test_an_unknown_database_is_told_in_our_words(postgres: Server) -> None:
    with pytest.raises(StoreError, match="no such user or database"):
        PostgresStore(postgres.dsn(CANARY))


def test_the_commands_read_a_database(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    dsn = postgres.database()
    basis = basis_in(dsn, monkeypatch)
    store = PostgresStore(dsn)
    rows = [row(basis) for _ in range(3)]
    store.append(rows, {basis.digest: basis.body})
    store.close()
    listed = CliRunner().invoke(app, ["records", "list", "--dsn-env", VARIABLE, "--json"])
    assert sorted(one["record"] for one in json.loads(listed.stdout)) == sorted(one.record for one in rows)
    shown = CliRunner().invoke(app, ["records", "show", rows[0].record, "--dsn-env", VARIABLE])
    assert (shown.exit_code, rows[0].record in shown.stdout) == (0, True)
    both = CliRunner().invoke(app, ["records", "list", "--dsn-env", VARIABLE, "--store", "x"])
    assert both.exit_code == 2
    monkeypatch.setenv(VARIABLE, postgres.dsn(CANARY))
    refused = CliRunner().invoke(app, ["records", "list", "--dsn-env", VARIABLE])
    assert refused.exit_code == 1
    assert CANARY not in refused.output


def test_without_the_driver_the_store_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    monkeypatch.setenv(VARIABLE, "host=nowhere")
    with pytest.raises(StoreError, match=r"pip install 'pointsman\[postgres\]'"):
        check_place(RecordSettings(store="postgres", dsn_env=VARIABLE))


def test_a_connection_string_that_is_not_there_is_told_by_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(StoreError, match=VARIABLE):
        check_place(RecordSettings(store="postgres", dsn_env=VARIABLE))
    missing = RecordSettings(store="postgres", dsn_file="dsn").placed(tmp_path)
    with pytest.raises(StoreError, match="dsn: No such file"):
        check_place(missing)
    (tmp_path / "dsn").write_text("\n")
    with pytest.raises(StoreError, match="is empty"):
        check_place(missing)


def test_the_connection_string_may_stand_in_a_file(postgres: Server, tmp_path: Path) -> None:
    dsn = postgres.database()
    PostgresStore(dsn).close()
    (tmp_path / "dsn").write_text(dsn + "\n")
    with open_reader(RecordSettings(store="postgres", dsn_file="dsn").placed(tmp_path)) as reader:
        assert list(reader.newest(Filter())) == []


def test_what_the_driver_says_is_in_no_log() -> None:
    """It names hosts and users, and quotes servers; of a rollback that fails it warns."""
    assert not logging.getLogger("psycopg.transaction").isEnabledFor(logging.ERROR)
