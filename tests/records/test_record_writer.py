from __future__ import annotations

import logging
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kept_records import WORDS, Counted, basis_at, kept, quick_writer, record, until

from router.records.sqlite_store import SqliteStore
from router.records.store import AnswerRow, ContentRow, ShadowRow
from router.records.writer import RecordWriter
from router.signals.base import Evidence, Observation

HERE = Path(__file__).parent


@pytest.fixture
def counted() -> Iterator[Counted]:
    counted = Counted()
    yield counted
    counted.close()


def lines(caplog: pytest.LogCaptureFixture, event: str) -> list[logging.LogRecord]:
    return [each for each in caplog.records if each.getMessage() == event]


def test_records_are_in_the_store_soon_and_all_of_them_after_the_end(tmp_path: Path, counted: Counted) -> None:
    path = tmp_path / "r.sqlite"
    basis, writer = basis_at(path), quick_writer(counted)
    writer.start()
    first = record()
    writer.put(basis, first)
    until(lambda: kept(path) == [first.record], "the record")
    later = [record() for _ in range(2500)]
    for one in later:
        writer.put(basis, one)
    writer.close()
    assert sorted(kept(path)) == sorted(one.record for one in (first, *later))
    assert counted.dropped() == {}


def test_what_finds_the_queue_full_is_dropped_and_counted(tmp_path: Path, counted: Counted) -> None:
    path = tmp_path / "r.sqlite"
    basis, writer = basis_at(path), RecordWriter(counted.counter, limit=3, pause=60)
    for _ in range(10):
        writer.put(basis, record())
    writer.start()
    writer.close()
    assert len(kept(path)) == 3
    assert counted.dropped() == {"queue_full": 7}


def test_what_lies_beside_records_is_counted_apart(tmp_path: Path, counted: Counted) -> None:
    basis, writer = basis_at(tmp_path / "r.sqlite"), RecordWriter(counted.counter, limit=3, pause=60)
    first = record()
    writer.put(basis, first)
    writer.put_beside(basis, ContentRow(first.record, "failed"))
    writer.put_beside(basis, ShadowRow(first.record, False, b"{}"))
    for _ in range(2):
        writer.put_beside(basis, ContentRow(first.record, "failed"))
    for _ in range(4):
        writer.put_beside(basis, ShadowRow(first.record, False, b"{}"))
    for _ in range(5):
        writer.put_beside(basis, AnswerRow(first.record, b"{}"))
    for _ in range(3):
        writer.put(basis, first)
    writer.start()
    writer.close()
    found = {kind: counted.dropped(kind) for kind in ("record", "content", "shadow", "answer")}
    full = {"record": 3, "content": 2, "shadow": 4, "answer": 5}
    assert found == {kind: {"queue_full": count} for kind, count in full.items()}


def test_what_a_store_does_not_take_is_counted_apart(tmp_path: Path, counted: Counted) -> None:
    (tmp_path / "no-folder").write_text("")
    basis, writer = basis_at(tmp_path / "no-folder" / "r.sqlite"), RecordWriter(counted.counter, pause=60)
    first = record()
    writer.put(basis, first)
    writer.put_beside(basis, ContentRow(first.record, "failed"))
    writer.put_beside(basis, ShadowRow(first.record, False, b"{}"))
    writer.start()
    writer.close()
    assert [counted.dropped(kind) for kind in ("record", "content", "shadow")] == [{"store": 1}] * 3


def test_a_store_that_is_busy_gets_its_records_later(
    tmp_path: Path, counted: Counted, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.records.sqlite_store.BUSY_SECONDS", 0.01)
    caplog.set_level(logging.INFO)
    path = tmp_path / "r.sqlite"
    SqliteStore(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    basis, writer = basis_at(path), quick_writer(counted)
    writer.start()
    sent = [record() for _ in range(5)]
    for one in sent:
        writer.put(basis, one)
    until(lambda: lines(caplog, "records are not kept"), "the log line")
    other.execute("ROLLBACK")
    other.close()
    until(lambda: len(kept(path)) == 5, "the records")
    writer.close()
    assert counted.dropped() == {}
    assert len(lines(caplog, "records are not kept")) == len(lines(caplog, "records are kept again")) == 1


def test_a_store_that_stays_locked_loses_what_does_not_fit_the_queue(
    tmp_path: Path, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.records.sqlite_store.BUSY_SECONDS", 0.01)
    path = tmp_path / "r.sqlite"
    SqliteStore(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    basis, writer = basis_at(path), quick_writer(counted, limit=10)
    writer.start()
    for _ in range(3000):
        writer.put(basis, record())
    writer.close()
    other.close()
    assert kept(path) == []
    assert sum(counted.dropped().values()) == 3000


@pytest.mark.parametrize("fault", ["garbage", "folder", "nowhere"])
def test_a_store_that_cannot_be_used_drops_records_with_one_line_and_comes_back(
    tmp_path: Path, counted: Counted, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / "sub" / "r.sqlite"
    if fault != "nowhere":
        path.parent.mkdir()
    if fault == "garbage":
        path.write_bytes(b"this is no database" * 1000)
    if fault == "folder":
        path.mkdir()
    basis, writer = basis_at(path), quick_writer(counted)
    writer.start()
    for n in range(1, 4):
        writer.put(basis, record())
        until(lambda n=n: counted.dropped() == {"store": n}, "the drop")  # type: ignore[misc]
    [line] = lines(caplog, "records are not kept")
    assert line.__dict__["fields"]["file"] == "r.sqlite"
    if fault == "garbage":
        path.unlink()
    elif fault == "folder":
        path.rmdir()
    else:
        path.parent.mkdir()
    last = record()
    writer.put(basis, last)
    until(lambda: path.is_file() and kept(path) == [last.record], "the record")
    writer.close()
    [back] = lines(caplog, "records are kept again")
    assert back.__dict__["fields"]["lost"] == 3
    assert counted.dropped() == {"store": 3}


def test_another_policy_may_name_another_store(tmp_path: Path, counted: Counted) -> None:
    first, second = tmp_path / "1.sqlite", tmp_path / "2.sqlite"
    writer = RecordWriter(counted.counter, pause=60)
    for path in (first, first, second, first):
        writer.put(basis_at(path), record())
    writer.start()
    writer.close()
    assert (len(kept(first)), len(kept(second))) == (3, 1)


def test_a_record_that_cannot_be_written_costs_no_other(tmp_path: Path, counted: Counted) -> None:
    path = tmp_path / "r.sqlite"
    basis, writer = basis_at(path), RecordWriter(counted.counter, pause=60)
    broken = record(observations={WORDS: Observation("observed", True, evidence=(Evidence("/\ud800"),))})
    for one in (record(), broken, record()):
        writer.put(basis, one)
    writer.start()
    writer.close()
    assert len(kept(path)) == 2
    assert counted.dropped() == {"unreadable": 1}


def test_what_is_too_old_is_gone_after_a_while(tmp_path: Path, counted: Counted) -> None:
    path = tmp_path / "r.sqlite"
    basis, writer = basis_at(path, keep_days=1), quick_writer(counted)
    new = record()
    writer.put(basis, record("01890000-0000-7000-8000-000000000001"))
    writer.put(basis, new)
    writer.start()
    writer.close()
    assert kept(path) == [new.record]


def child(mode: str, path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(HERE / "writing_child.py"), mode, str(path)]
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.slow
def test_a_writer_that_is_killed_loses_only_what_it_had_not_committed_and_breaks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    before = 0
    for _ in range(2):
        with child("endless", path) as process:
            until(lambda: path.is_file() and len(kept(path)) >= before + 200, "some records")  # noqa: B023
            # Whoever has seen a record will see it again after the kill.
            seen = set(kept(path))
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            process.stdout.read()
        left = kept(path)
        assert seen <= set(left)
        before = len(left)
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()


@pytest.mark.slow
def test_a_full_disk_drops_records_and_leaves_a_store_that_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with child("full", path) as process:
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 0, told
    dropped, stored = (int(word) for word in told.split())
    assert dropped > 0
    assert stored > 0
    assert dropped + stored == 3000
    assert len(kept(path)) == stored
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
