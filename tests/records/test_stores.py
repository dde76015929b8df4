"""What every store of records has to do, asked of each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kept_records import basis_at, row
from postgres_server import Server

from router.records.postgres_reader import PostgresReader
from router.records.postgres_store import PostgresStore
from router.records.record_id import first_id, new_record_id
from router.records.sqlite_store import SqliteStore, StoreReader
from router.records.store import AnswerRow, AnyRow, ContentRow, Filter, Keep, Reader, Row, ShadowRow, Store
from router.records.stored import RecordFormatError, StoredAnswer, StoredFinding, StoredShadow, encode_beside

DAY = 86_400.0
START = 1_700_000_000.0
LARGE = 1 << 40
BASIS = basis_at(Path("anywhere"))
BASES = {BASIS.digest: BASIS.body}


@dataclass(frozen=True)
class Kind:
    """A store of one kind, empty at first; `turn` lets the next `prune` be this store's."""

    store: Callable[[], Store]
    reader: Callable[[], Reader]
    turn: Callable[[], None]

    def put(self, rows: list[AnyRow], bases: dict[str, bytes] = BASES) -> None:
        store = self.store()
        store.append(rows, bases)
        store.close()

    def kept(self, **chosen: object) -> list[str]:
        with self.reader() as reader:
            return [stored.record for stored, _ in reader.newest(Filter(**chosen))]  # type: ignore[arg-type]

    def prune(self, keep: Keep, now: float) -> int:
        self.turn()
        store = self.store()
        try:
            return store.prune(keep, now)
        finally:
            store.close()


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kind]:
    if request.param == "sqlite":
        path = tmp_path / "r.sqlite"
        yield Kind(lambda: SqliteStore(path), lambda: StoreReader(path), lambda: None)
        return
    server: Server = request.getfixturevalue("postgres")
    dsn = server.database()

    def turn() -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute("UPDATE pointsman_meta SET pruned = 0, sized = 0")

    yield Kind(lambda: PostgresStore(dsn), lambda: PostgresReader(dsn), turn)


def ids(count: int, since: float = START) -> list[str]:
    """Identifiers a second apart."""
    return [first_id(since + n)[:-1] + "1" for n in range(count)]


def shadow_of(differs: bool) -> StoredShadow:
    return StoredShadow("0" * 64, "two", "route", ("a", "b"), exact=False, differs=differs)


UNPASSED = StoredAnswer(
    "no-keys", "matched", stream=True, evidence=(StoredFinding("secret/key", "/choices/0/message/content", "AWS"),)
)


def test_records_come_back_the_newest_first_and_filtered(kind: Kind) -> None:
    names = ids(4)
    kind.put([row(BASIS, name, decision) for name, decision in zip(names, "abab", strict=True)])
    assert kind.kept() == names[::-1]
    assert kind.kept(limit=1) == [names[3]]
    assert kind.kept(decision="a") == [names[2], names[0]]
    assert kind.kept(model="b", since=START + 2) == [names[3], names[2]]
    assert kind.kept(model="nobody") == []
    with kind.reader() as reader:
        for _, digest in reader.newest(Filter()):
            # While many are read.
            assert reader.basis(digest).models == ("a", "b")
        with pytest.raises(RecordFormatError):
            reader.basis("none")


def test_a_record_is_found_by_the_beginning_of_its_name(kind: Kind) -> None:
    names = ["01890000-aaaa-7000-8000-000000000001", "01890000-aaab-7000-8000-000000000001"]
    kind.put([row(BASIS, name) for name in names])
    with kind.reader() as reader:
        found = [[one.record for one, _ in reader.find(prefix)] for prefix in ("01890000-aaab", names[0], "ff")]
        assert found == [[names[1]], [names[0]], []]
        assert len(reader.find("01890000")) == 2


def test_what_lies_beside_a_record_is_read_with_it_whichever_came_first(kind: Kind) -> None:
    one, two, three = (row(BASIS, name) for name in ids(3))
    kind.put(
        [ContentRow(one.record, body=b"\x00sealed\xff"), ShadowRow(one.record, True, encode_beside(shadow_of(True)))]
    )
    kind.put([AnswerRow(three.record, encode_beside(UNPASSED))])
    kind.put([one, two, three])
    kind.put([ContentRow(two.record, "too_large"), ShadowRow(two.record, False, encode_beside(shadow_of(False)))])
    with kind.reader() as reader:
        read = {stored.record: stored for stored, _ in reader.newest(Filter())}
        assert [read[each.record].content for each in (one, two, three)] == ["kept", "too_large", None]
        assert [read[each.record].shadow for each in (one, two, three)] == [shadow_of(True), shadow_of(False), None]
        assert [read[each.record].answer for each in (one, two, three)] == [None, None, UNPASSED]
        assert reader.content(one.record) == ContentRow(one.record, "", b"\x00sealed\xff")
        assert reader.content(two.record) == ContentRow(two.record, "too_large", None)
        assert reader.content(three.record) is None
        assert reader.find(one.record)[0][0] == read[one.record]
    assert kind.kept(differing=True) == [one.record]
    assert kind.kept(unpassed=True) == [three.record]
    assert kind.kept(unpassed=True, differing=True) == []


def test_what_is_written_twice_is_kept_once(kind: Kind) -> None:
    one = row(BASIS)
    beside: list[AnyRow] = [
        ContentRow(one.record, "why"),
        ShadowRow(one.record, True, encode_beside(shadow_of(True))),
        AnswerRow(one.record, encode_beside(UNPASSED)),
    ]
    kind.put([one, *beside])
    kind.put([one, *beside, row(BASIS)])
    assert len(kind.kept()) == 2


def test_what_is_too_old_goes_with_all_that_lies_beside_it(kind: Kind) -> None:
    names = ids(6)
    rows = [row(BASIS, name) for name in names]
    beside: list[AnyRow] = [ContentRow(name, body=b"x") for name in names]
    shadows: list[AnyRow] = [ShadowRow(name, True, encode_beside(shadow_of(True))) for name in names]
    answers: list[AnyRow] = [AnswerRow(name, encode_beside(UNPASSED)) for name in names]
    kind.put([*rows, *beside, *shadows, *answers])
    assert kind.prune(Keep(DAY, LARGE), START + 4 + DAY) == 4
    assert kind.kept(differing=True) == kind.kept(unpassed=True) == [names[5], names[4]]
    with kind.reader() as reader:
        assert [reader.content(name) is not None for name in names] == [False] * 4 + [True] * 2
    assert kind.prune(Keep(DAY, LARGE), START + 4 + DAY) == 0


def test_content_may_go_before_its_record(kind: Kind) -> None:
    names = ids(4)
    kind.put([*(row(BASIS, name) for name in names), *(ContentRow(name, body=b"x") for name in names)])
    assert kind.prune(Keep(DAY, LARGE, 60), START + 62) == 0
    with kind.reader() as reader:
        assert [stored.content for stored, _ in reader.newest(Filter())] == ["kept", "kept", None, None]


def test_a_policy_goes_with_the_last_record_that_rests_on_it(kind: Kind) -> None:
    names = ids(4)
    old, new = row(BASIS, names[0]), row(BASIS, names[3])
    other = Row(new.record, new.decision, new.model, "other", new.body)
    kind.put([old, other], {**BASES, "other": BASIS.body})
    assert kind.prune(Keep(DAY, LARGE), START + 2 + DAY) == 1
    with kind.reader() as reader:
        reader.basis("other")
        with pytest.raises(RecordFormatError):
            reader.basis(BASIS.digest)


def test_what_is_too_much_goes_the_oldest_first(kind: Kind) -> None:
    names = ids(900)
    kind.put([row(BASIS, name, padding=10_000) for name in names])
    assert kind.prune(Keep(100_000 * DAY, LARGE), START) == 0
    assert kind.prune(Keep(100_000 * DAY, 3_000_000), START) > 400
    left = kind.kept()
    assert len(left) > 100
    assert left == names[: len(names) - len(left) - 1 : -1]
    assert kind.prune(Keep(100_000 * DAY, 1), START) == len(left)
    assert kind.kept() == []


def test_many_writers_at_once_lose_nothing_and_wait_for_each_other(kind: Kind) -> None:
    kind.put([])
    written: list[str] = []
    troubles: list[BaseException] = []

    def write(number: int) -> None:
        try:
            store = kind.store()
            for turn in range(15):
                # Several policies, each writer in another order.
                rows = [Row(new_record_id(), "d", None, f"b{(number + n) % 5}", row(BASIS).body) for n in range(5)]
                store.append(rows, {f"b{n}": BASIS.body for n in range(5)})
                written.extend(one.record for one in rows)
                if turn % 5 == number % 5:
                    store.prune(Keep(DAY * 36_500, LARGE))
            store.close()
        except BaseException as error:
            troubles.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == []
    with kind.reader() as reader:
        assert sum(1 for _ in reader.newest(Filter())) == len(written) == 300


NAMES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=30)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    decision=NAMES,
    model=st.none() | NAMES,
    content=st.none() | st.binary(max_size=3000),
    why=NAMES,
    differs=st.booleans(),
)
def test_a_store_gives_back_what_was_put(
    kind: Kind, decision: str, model: str | None, content: bytes | None, why: str, differs: bool
) -> None:
    made = row(BASIS)
    put = Row(made.record, decision, model, made.basis, made.body)
    beside = ContentRow(put.record, "" if content is not None else why, content)
    kind.put([put, beside, ShadowRow(put.record, differs, encode_beside(shadow_of(differs)))])
    with kind.reader() as reader:
        [(stored, digest)] = reader.find(put.record)
        assert digest == BASIS.digest
        assert stored.shadow == shadow_of(differs)
        assert reader.content(put.record) == beside
        chosen = Filter(decision=decision, model=model, differing=differs)
        assert put.record in [one.record for one, _ in reader.newest(chosen)]
