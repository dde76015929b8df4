from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selection_cases import DECISION, after, rewarded, snapshots

from router.selection import keeper as keeper_module
from router.selection.keeper import FullError, Keeper
from router.selection.learning import Measurement, Reward
from router.selection.snapshot import EMPTY, Snapshot
from router.selection.state_file import FILE_NAME, StateFileError, decode, encode, load, save
from router.selection.watch import StateWatch

STATE = after(*rewarded("a", 1.0, 3), Measurement("a", 10.0, 20.0, 0.5), Reward("x", DECISION, "a", 1.0, "b"))
NEVER = 3600.0


@given(snapshots)
def test_a_state_goes_through_its_file_unchanged(snapshot: Snapshot) -> None:
    data = encode(snapshot)
    found = decode(data)
    assert (found.version, found.arms, found.speeds) == (snapshot.version, snapshot.arms, snapshot.speeds)
    assert encode(found) == data


@given(st.binary(max_size=60) | st.integers(0, len(encode(STATE)) - 1).map(lambda n: encode(STATE)[:n]))
def test_what_is_no_state_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(StateFileError):
        decode(data)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"format":1', b'"format":2'),
        (b'"gained":', b'"gained":-'),
        (b'"rating":1508.0', b'"rating":1e9'),
        (b'"load":0.5', b'"load":1.5'),
        (b'"ttft":[10.0]', b'"ttft":[' + b"1.0," * 300 + b"1.0]"),
        (b'"version":', b'"more":1,"version":'),
        (b'"ttft":[10.0]', b'"ttft":' + b"[" * 100_000),
    ],
)
def test_numbers_out_of_their_bounds_are_no_state(old: bytes, new: bytes) -> None:
    data = encode(STATE)
    assert old in data
    with pytest.raises(StateFileError):
        decode(data.replace(old, new, 1))


def test_no_file_is_the_empty_state(tmp_path: Path) -> None:
    assert load(tmp_path / FILE_NAME) is EMPTY


def test_a_save_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / FILE_NAME
    save(file, STATE)
    before = file.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        save(file, after(*rewarded("b", 1.0)))
    assert file.read_bytes() == before


def test_what_was_taken_is_there_after_a_restart_and_the_count_goes_on(tmp_path: Path) -> None:
    file = tmp_path / FILE_NAME
    with Keeper(file, NEVER).running() as keeper:
        assert keeper.take(rewarded("a", 1.0, 3)) == 3
    with Keeper(file, NEVER).running() as keeper:
        assert keeper.snapshot.arm(DECISION, "a").rewards == 3
        keeper.take([Measurement("a", 5.0)])
        assert keeper.snapshot.version == 4


def test_it_is_saved_while_it_runs(tmp_path: Path) -> None:
    file = tmp_path / FILE_NAME
    with Keeper(file, 0.001).running() as keeper:
        keeper.take(rewarded("a", 1.0))
        arrived = threading.Event()
        watch = StateWatch(file, 0.001)
        watch.start()
        for _ in range(10_000):
            if watch.snapshot().version == 1:
                break
            arrived.wait(0.001)
        watch.close()
    assert watch.snapshot().version == 1
    assert len(watch.snapshot().digest) == 64


def test_a_broken_file_is_kept_aside_and_the_state_starts_empty(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / FILE_NAME
    file.write_bytes(b'{"format":1,')
    with caplog.at_level(logging.WARNING), Keeper(file, NEVER).running() as keeper:
        assert keeper.snapshot is EMPTY
        keeper.take(rewarded("a", 1.0))
    [aside] = tmp_path.glob("selection.broken-*.json")
    assert aside.read_bytes() == b'{"format":1,'
    assert load(file).version == 1
    assert [record.getMessage() for record in caplog.records] == ["state is broken, starting without"]


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_that_feed_at_once_lose_nothing(tmp_path: Path, switching: None) -> None:
    file = tmp_path / FILE_NAME
    with Keeper(file, 0.001).running() as keeper:
        threads = [
            threading.Thread(
                target=lambda who=who: [
                    keeper.take([Reward(f"{who}-{n}", DECISION, "a", 1.0), Measurement("a", float(n))])
                    for n in range(100)
                ]
            )
            for who in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    kept = load(file)
    assert kept.version == 1600
    assert kept.arm(DECISION, "a").rewards == 800


def test_a_reward_that_comes_again_counts_once(tmp_path: Path) -> None:
    with Keeper(tmp_path / FILE_NAME, NEVER).running() as keeper:
        one = Reward("r", DECISION, "a", 1.0)
        assert keeper.take([one, one]) == 1
        assert keeper.take([one]) == 0
        assert keeper.take([Reward("r", DECISION, "b", 1.0), Reward("r", DECISION, "a", 1.0, "b")]) == 2
        assert keeper.take([Measurement("a", 1.0), Measurement("a", 1.0)]) == 2


def test_what_is_remembered_of_rewards_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper_module, "REMEMBERED", 5)
    with Keeper(tmp_path / FILE_NAME, NEVER).running() as keeper:
        keeper.take(rewarded("a", 1.0, 8))
        assert keeper.take(rewarded("a", 1.0, 3)) == 3
        assert len(keeper._known) == 5


def test_more_models_than_there_is_room_for_are_refused_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper_module, "MAX_ARMS", 2)
    with Keeper(tmp_path / FILE_NAME, NEVER).running() as keeper:
        keeper.take([Reward("1", DECISION, "a", 1.0)])
        with pytest.raises(FullError):
            keeper.take([Reward("2", DECISION, "b", 1.0), Reward("3", DECISION, "c", 1.0)])
        assert keeper.snapshot.version == 1
        assert keeper.take([Reward("2", DECISION, "b", 1.0)]) == 1


def test_a_disk_that_is_full_is_told_of_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / FILE_NAME

    def full(_file: Path, _snapshot: Snapshot) -> None:
        raise OSError(28, "No space left on device")

    with Keeper(file, NEVER).running() as keeper:
        monkeypatch.setattr(keeper_module, "save", full)
        keeper.take(rewarded("a", 1.0))
        keeper._save()
        assert [record.getMessage() for record in caplog.records] == ["state not saved"]
        monkeypatch.undo()
    assert load(file).version == 1


def test_a_worker_sees_a_new_file_and_keeps_the_last_good_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / FILE_NAME
    watch = StateWatch(file, NEVER)
    watch.look()
    assert watch.snapshot() is EMPTY
    save(file, STATE)
    watch.look()
    assert watch.snapshot().version == STATE.version
    seen = watch.snapshot()
    watch.look()
    assert watch.snapshot() is seen
    file.write_bytes(b"no state")
    for _ in range(3):
        watch.look()
    assert watch.snapshot() is seen
    assert [record.getMessage() for record in caplog.records] == ["state not read"]
    file.unlink()
    watch.look()
    assert watch.snapshot() is seen


def test_readers_only_ever_see_whole_states(tmp_path: Path) -> None:
    file = tmp_path / FILE_NAME
    states = [after(*rewarded("a", 1.0, n)) for n in range(1, 40)]
    save(file, states[0])
    broken: list[Exception] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            try:
                load(file)
            except Exception as error:
                broken.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for state in states:
        save(file, state)
    done.set()
    reader.join()
    assert not broken
