from __future__ import annotations

import sqlite3
import stat
import threading
import time
from pathlib import Path

import pytest
from kept_records import basis_at, fill, kept, row

from router.records.record_id import first_id, new_record_id
from router.records.sqlite_store import SqliteStore, StoreReader
from router.records.store import AnswerRow, ContentRow, Filter, Keep, StoreError
from router.records.stored import RecordFormatError, StoredAnswer, encode_beside

DAY = 86_400.0
LARGE = 1 << 40


def ids(count: int, since: float = 1_700_000_000.0) -> list[str]:
    """Identifiers a second apart."""
    return [first_id(since + n)[:-1] + "1" for n in range(count)]


def test_what_was_appended_is_read_the_newest_first_and_filtered(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    basis, names = basis_at(path), ids(4)
    store = SqliteStore(path)
    fill(store, basis, [row(basis, name, decision) for name, decision in zip(names, "abab", strict=True)])
    store.close()
    with StoreReader(path) as reader:

        def found(**chosen: object) -> list[str]:
            return [stored.record for stored, _ in reader.newest(Filter(**chosen))]  # type: ignore[arg-type]

        assert found() == names[::-1]
        assert found(limit=1) == [names[3]]
        assert found(decision="a") == [names[2], names[0]]
        assert found(model="b", since=1_700_000_002.0) == [names[3], names[2]]
        assert found(model="nobody") == []
        [(_, digest)] = reader.newest(Filter(limit=1))
        assert reader.basis(digest).policy == "".join(reader.basis(basis.digest).policy)
        with pytest.raises(RecordFormatError):
            reader.basis("none")


def test_a_record_is_found_by_the_beginning_of_its_identifier(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    basis, names = basis_at(path), ["01890000-aaaa-7000-8000-000000000001", "01890000-aaab-7000-8000-000000000001"]
    store = SqliteStore(path)
    fill(store, basis, [row(basis, name) for name in names])
    store.close()
    with StoreReader(path) as reader:
        assert [
            [stored.record for stored, _ in reader.find(prefix)] for prefix in ("01890000-aaab", names[0], "ff")
        ] == [
            [names[1]],
            [names[0]],
            [],
        ]
        assert len(reader.find("01890000")) == 2


def test_appending_the_same_again_keeps_one(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    basis = basis_at(path)
    store = SqliteStore(path)
    one = row(basis)
    fill(store, basis, [one])
    fill(store, basis, [one, row(basis)])
    assert len(kept(path)) == 2
    store.close()


def test_only_its_owner_can_read_the_file_and_its_log(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    basis = basis_at(path)
    store = SqliteStore(path)
    fill(store, basis, [row(basis)])
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    store.close()


def test_records_past_their_age_go_and_their_policy_with_the_last_of_them(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    old, new = basis_at(path), basis_at(path, keep_days=1)
    later = old.__class__("other", old.body, new.settings)
    store = SqliteStore(path)
    names = ids(10)
    fill(store, old, [row(old, name) for name in names[:6]])
    fill(store, later, [row(later, name) for name in names[6:]])
    assert store.prune(Keep(DAY, LARGE), now=1_700_000_006.0 + DAY) == 6
    assert kept(path) == names[:5:-1]
    with StoreReader(path) as reader:
        reader.basis("other")
        with pytest.raises(RecordFormatError):
            reader.basis(old.digest)
    assert store.prune(Keep(DAY, LARGE), now=1_700_000_006.0 + DAY) == 0
    store.close()


def test_a_file_past_its_size_loses_the_oldest_and_shrinks(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    basis = basis_at(path)
    store = SqliteStore(path)
    names = ids(3000)
    fill(store, basis, [row(basis, name, padding=1000) for name in names])
    bound = store.used_bytes() // 3
    assert store.prune(Keep(100_000 * DAY, bound)) > 1000
    assert bound // 2 < store.used_bytes() <= bound
    left = kept(path)
    assert left == names[: len(names) - len(left) - 1 : -1]
    store.close()
    assert path.stat().st_size <= bound


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="something else"):
        SqliteStore(path)
    with pytest.raises(StoreError, match="something else"):
        StoreReader(path)
    assert path.read_bytes() == before


def test_a_store_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    SqliteStore(path).close()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 4")
    other.close()
    with pytest.raises(StoreError, match="version 4"):
        SqliteStore(path)
    with pytest.raises(StoreError, match="version 4"):
        StoreReader(path)


def test_a_store_of_the_first_version_is_read_as_it_is_and_completed_by_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    basis = basis_at(path)
    store = SqliteStore(path)
    fill(store, basis, [one := row(basis)])
    store.close()
    with sqlite3.connect(path) as other:
        other.execute("DROP TABLE contents")
        other.execute("DROP TABLE shadows")
        other.execute("PRAGMA user_version = 1")
    other.close()
    with StoreReader(path) as reader:
        assert [stored.record for stored, _ in reader.newest(Filter())] == [one.record]
        assert list(reader.newest(Filter(differing=True))) == list(reader.newest(Filter(unpassed=True))) == []
        assert reader.content(one.record) is None
        assert len(reader.find(one.record)) == 1
    store = SqliteStore(path)
    store.append([ContentRow(one.record, "too_large")], {})
    store.close()
    with StoreReader(path) as reader:
        assert reader.find(one.record)[0][0].content == "too_large"


def test_a_store_of_the_second_version_is_read_as_it_is_and_completed_by_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    basis = basis_at(path)
    store = SqliteStore(path)
    fill(store, basis, [one := row(basis)])
    store.append([ContentRow(one.record, "too_large")], {})
    store.close()
    with sqlite3.connect(path) as other:
        other.execute("DROP TABLE answers")
        other.execute("PRAGMA user_version = 2")
    other.close()
    with StoreReader(path) as reader:
        assert reader.find(one.record)[0][0].content == "too_large"
        assert list(reader.newest(Filter(unpassed=True))) == []
    store = SqliteStore(path)
    store.append([AnswerRow(one.record, encode_beside(StoredAnswer("no-keys", "matched")))], {})
    store.close()
    with StoreReader(path) as reader:
        [(stored, _)] = reader.newest(Filter(unpassed=True))
        assert stored.answer == StoredAnswer("no-keys", "matched")


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to be one" * 100, b"SQLite format 3\x00" + b"\xff" * 8192]
)
def test_a_file_that_is_no_database_is_an_error_of_the_store(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.sqlite"
    path.write_bytes(content)
    with pytest.raises(StoreError) as told:
        SqliteStore(path)
    assert not told.value.busy
    with pytest.raises(StoreError):
        StoreReader(path)


def test_a_broken_page_is_an_error_of_the_store_and_not_of_the_program(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    basis = basis_at(path)
    store = SqliteStore(path)
    fill(store, basis, [row(basis, padding=500) for _ in range(500)])
    store.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreError):
        kept(path)
    with pytest.raises(StoreError) as told:
        fill(SqliteStore(path), basis, [row(basis)])
    assert not told.value.busy


def test_whoever_else_writes_makes_it_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.records.sqlite_store.BUSY_SECONDS", 0.01)
    path = tmp_path / "r.sqlite"
    basis = basis_at(path)
    store = SqliteStore(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError) as told:
        fill(store, basis, [row(basis)])
    assert told.value.busy
    other.execute("ROLLBACK")
    other.close()
    fill(store, basis, [row(basis)])
    assert len(kept(path)) == 1
    store.close()


def test_several_writers_and_readers_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    basis = basis_at(path)
    SqliteStore(path).close()
    troubles: list[BaseException] = []
    done = threading.Event()

    def write() -> None:
        try:
            store = SqliteStore(path)
            for _ in range(20):
                rows = [row(basis, new_record_id()) for _ in range(10)]
                limit = time.monotonic() + 20
                while True:
                    try:
                        fill(store, basis, rows)
                        break
                    except StoreError as error:
                        if not error.busy or time.monotonic() > limit:
                            raise
            store.close()
        except BaseException as error:
            troubles.append(error)

    def read() -> None:
        seen = 0
        try:
            while not done.is_set():
                found = kept(path)
                # A batch is there as a whole or not at all, and nothing goes again.
                assert len(found) % 10 == 0
                assert len(found) >= seen
                assert found == sorted(found, reverse=True)
                seen = len(found)
        except BaseException as error:
            troubles.append(error)

    writers = [threading.Thread(target=write) for _ in range(3)]
    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in (*writers, *readers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert troubles == []
    assert len(kept(path)) == 600
