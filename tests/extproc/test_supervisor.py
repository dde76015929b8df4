"""A supervisor and its workers as real processes; small_worker.py says what they leave behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.extproc.supervisor import WorkerSpec, restart_delay

PATIENCE = 20.0


def eventually(holds: Callable[[], bool], what: str) -> None:
    limit = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > limit:
            pytest.fail(f"waited for {what}")
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Run:
    """A running supervisor and the folder where its workers leave their marks."""

    def __init__(self, folder: Path, mode: str, count: int, grace: float) -> None:
        self.folder = folder
        script = Path(__file__).with_name("small_supervisor.py")
        words = [sys.executable, str(script), mode, str(folder), str(count), str(grace)]
        self.process = subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True)

    def started(self, index: int) -> list[int]:
        """Pids of every worker with this index so far."""
        return [int(mark.suffix[1:]) for mark in self.folder.glob(f"{index}.*") if mark.suffix[1:].isdigit()]

    def all_started(self) -> list[int]:
        return [int(mark.suffix[1:]) for mark in self.folder.glob("*.*") if mark.suffix[1:].isdigit()]

    def running(self, index: int) -> list[int]:
        return [pid for pid in self.started(index) if alive(pid)]

    def said(self, words: str) -> int:
        """How often the supervisor has logged this."""
        return (self.folder / "supervisor.log").read_text().count(words)

    def roll(self) -> None:
        """Ask for a rolling restart, and wait until it is over, one way or the other."""
        before = self.said("rolling restart")
        self.process.send_signal(signal.SIGUSR2)
        eventually(lambda: self.said("rolling restart") > before, "the rolling restart")

    def wait_for_workers(self, count: int) -> None:
        eventually(lambda: all(self.running(index) for index in range(count)), f"{count} workers")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """`start(mode, count=2, grace=20)`; at teardown nothing of it is left."""
    runs: list[Run] = []

    def start(mode: str, count: int = 2, grace: float = PATIENCE) -> Run:
        runs.append(Run(tmp_path, mode, count, grace))
        return runs[-1]

    yield start
    for run in runs:
        run.process.kill()
        run.process.wait()
        for pid in run.all_started():
            with contextlib.suppress(ProcessLookupError):
                if alive(pid):
                    os.kill(pid, signal.SIGKILL)


def test_a_killed_worker_is_started_again_and_the_other_left_alone(start: Callable[..., Run]) -> None:
    run = start("obedient")
    run.wait_for_workers(2)
    (first,), (second,) = run.running(0), run.running(1)
    os.kill(first, signal.SIGKILL)
    eventually(lambda: len(run.started(0)) == 2, "a second start")
    assert run.running(0) != [first]
    assert run.running(1) == [second]


def test_a_worker_that_hangs_is_killed_and_started_again(start: Callable[..., Run]) -> None:
    run = start("hanging", count=1)
    eventually(lambda: len(run.started(0)) == 2, "a second start")
    assert len(run.running(0)) == 1


def test_a_worker_that_beats_or_never_began_to_is_left_alone(start: Callable[..., Run], tmp_path: Path) -> None:
    beating, silent = start("beating", count=1), start("obedient", count=1)
    beating.wait_for_workers(1)
    time.sleep(4)
    assert len(list(tmp_path.glob("0.*"))) == 2
    assert beating.process.poll() is None
    assert silent.process.poll() is None


def test_workers_get_the_allocator_settings_and_their_own_environment(start: Callable[..., Run]) -> None:
    run = start("obedient", count=1)
    run.wait_for_workers(1)
    (mark,) = run.folder.glob("0.*")
    assert mark.read_text().splitlines() == [
        "MALLOC_ARENA_MAX=1",
        "MALLOC_MMAP_THRESHOLD_=33554432",
        "MALLOC_TOP_PAD_=1",
        "MALLOC_TRIM_THRESHOLD_=536870912",
        "TEST_WORD=given",
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_every_worker_in_peace(start: Callable[..., Run], number: int) -> None:
    run = start("obedient")
    run.wait_for_workers(2)
    run.process.send_signal(number)
    assert run.process.wait(PATIENCE) == 0
    assert not any(map(alive, run.all_started()))
    assert len(list(run.folder.glob("*.ended"))) == 2


def test_ctrl_c_at_a_terminal_reaches_the_workers_through_the_supervisor_alone(start: Callable[..., Run]) -> None:
    run = start("obedient")
    run.wait_for_workers(2)
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.process.wait(PATIENCE) == 0
    assert len(list(run.folder.glob("*.ended"))) == 2


def test_a_worker_that_does_not_end_within_the_grace_is_killed(start: Callable[..., Run]) -> None:
    run = start("stubborn", grace=0.2)
    run.wait_for_workers(2)
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(PATIENCE) == 1
    assert not any(map(alive, run.all_started()))


def test_a_second_signal_kills_at_once(start: Callable[..., Run]) -> None:
    run = start("stubborn", grace=3600)
    run.wait_for_workers(2)
    run.process.send_signal(signal.SIGTERM)
    # Two signals of one kind that are both pending are one.
    time.sleep(0.2)
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(PATIENCE) == 1
    assert not any(map(alive, run.all_started()))


@pytest.mark.parametrize("mode", ["obedient", "stubborn"])
def test_no_worker_outlives_a_killed_supervisor(start: Callable[..., Run], mode: str) -> None:
    run = start(mode)
    run.wait_for_workers(2)
    run.process.kill()
    run.process.wait()
    eventually(lambda: not any(map(alive, run.all_started())), "the workers to end")


def test_a_worker_that_keeps_crashing_is_started_again_and_again_until_the_end(start: Callable[..., Run]) -> None:
    run = start("crash", count=1)
    eventually(lambda: len(run.started(0)) >= 4, "four starts")
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(PATIENCE) == 0


def test_the_delay_doubles_up_to_its_bound() -> None:
    spec = WorkerSpec(argv=lambda _: [], first_delay=0.1, last_delay=1.0)
    assert [round(restart_delay(spec, deaths), 3) for deaths in range(1, 7)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@given(st.integers(1, 10**9))
def test_the_delay_never_shrinks_nor_passes_its_bound(deaths: int) -> None:
    spec = WorkerSpec(argv=lambda _: [])
    assert spec.first_delay <= restart_delay(spec, deaths) <= restart_delay(spec, deaths + 1) <= spec.last_delay


def test_sighup_reaches_the_workers_that_can_hear_it_and_ends_nobody(start: Callable[..., Run], tmp_path: Path) -> None:
    run = start("beating")
    run.wait_for_workers(2)
    # A worker that has not beaten yet is spared: it asks for its policy soon enough.
    deadline = time.monotonic() + PATIENCE
    while len(list(tmp_path.glob("*.hangup"))) < 2:
        assert time.monotonic() < deadline
        run.process.send_signal(signal.SIGHUP)
        time.sleep(0.05)
    assert all(len(run.started(index)) == 1 for index in range(2))
    assert run.process.poll() is None


def test_a_rolling_restart_replaces_workers_one_after_the_other(start: Callable[..., Run]) -> None:
    run = start("obedient", count=3)
    run.wait_for_workers(3)
    former = [run.running(index)[0] for index in range(3)]
    run.roll()
    assert run.said("rolling restart done") == 1
    assert all(len(run.started(index)) == 2 for index in range(3))
    new = [run.running(index)[0] for index in range(3)]
    for index in range(2):
        followed = (run.folder / f"{index}.{new[index]}").stat().st_mtime_ns
        next_ended = (run.folder / f"{index + 1}.{former[index + 1]}.ended").stat().st_mtime_ns
        assert followed < next_ended
    run.roll()
    assert all(len(run.started(index)) == 3 for index in range(3))
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(PATIENCE) == 0
    assert len(list(run.folder.glob("*.ended"))) == 9


def test_no_worker_is_touched_when_the_trial_fails(start: Callable[..., Run]) -> None:
    run = start("untried")
    run.wait_for_workers(2)
    run.roll()
    assert run.said("rolling restart refused") == 1
    assert all(len(run.started(index)) == 1 for index in range(2))


def test_a_rolling_restart_stops_at_a_worker_that_does_not_get_ready(start: Callable[..., Run]) -> None:
    run = start("unready", grace=1)
    run.wait_for_workers(2)
    run.roll()
    assert run.said("rolling restart stopped") == 1
    assert [len(run.started(index)) for index in range(2)] == [2, 1]
    assert all(run.running(index) for index in range(2))


def test_a_worker_that_will_not_end_is_killed_and_followed(start: Callable[..., Run]) -> None:
    run = start("stubborn", count=1, grace=0.2)
    run.wait_for_workers(1)
    run.roll()
    assert run.said("rolling restart done") == 1
    assert (len(run.started(0)), len(run.running(0))) == (2, 1)


def test_a_dead_worker_is_replaced_by_the_one_that_comes_anyway(start: Callable[..., Run]) -> None:
    run = start("obedient", count=1)
    run.wait_for_workers(1)
    os.kill(run.running(0)[0], signal.SIGKILL)
    run.roll()
    assert run.said("rolling restart done") == 1
    assert len(run.running(0)) == 1


def test_the_end_is_not_kept_waiting_by_a_rolling_restart(start: Callable[..., Run]) -> None:
    run = start("obedient")
    run.wait_for_workers(2)
    run.process.send_signal(signal.SIGUSR2)
    eventually(lambda: len(run.started(0)) == 2, "the first replacement")
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(PATIENCE) == 0
    assert not any(map(alive, run.all_started()))
