"""A state file is believed while the process that wrote it lives, and not a moment longer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from router.telemetry.worker_state import (
    StateFileError,
    WorkerState,
    process_start,
    read_state,
    state_file,
    state_of_this_process,
    write_state,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return state_file(tmp_path / "worker-3.sock")


def test_what_is_written_is_what_is_read(file: Path) -> None:
    state = state_of_this_process(3, "not_ready", ["one reason", "another"])
    write_state(file, state)
    assert read_state(file) == state
    assert [path.name for path in file.parent.iterdir()] == ["worker-3.state.json"]


def test_no_file_is_no_state(file: Path) -> None:
    assert read_state(file) is None


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"state": "ready"}', b'{"worker": 3, "state": "rea'])
def test_what_is_no_state_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(StateFileError, match=r"worker-3\.state\.json is not a worker's state"):
        read_state(file)


def test_a_state_of_an_unknown_word_is_refused(file: Path) -> None:
    write_state(file, replace(state_of_this_process(3, "ready"), state="perhaps"))  # type: ignore[arg-type]
    with pytest.raises(StateFileError):
        read_state(file)


def test_a_folder_in_its_place_is_refused(file: Path) -> None:
    file.mkdir()
    with pytest.raises(StateFileError, match="Is a directory"):
        read_state(file)


def test_a_reader_never_sees_half_a_state(file: Path) -> None:
    states = [state_of_this_process(3, "not_ready", ["x" * length]) for length in (1, 60_000)]
    write_state(file, states[0])
    writing = threading.Thread(target=lambda: [write_state(file, states[n % 2]) for n in range(300)])
    writing.start()
    while writing.is_alive():
        assert read_state(file) in states
    writing.join()


def test_the_living_are_believed() -> None:
    assert state_of_this_process(0, "ready").is_of_a_living_process()


def test_the_dead_are_not_believed_neither_before_nor_after_they_are_reaped() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    state = WorkerState(0, "ready", "2026-01-01T00:00:00Z", (), child.pid, process_start(child.pid))
    assert state.is_of_a_living_process()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{child.pid}").exists()
    assert not state.is_of_a_living_process()
    child.communicate()
    assert not state.is_of_a_living_process()


@pytest.mark.parametrize("start", [None, 1])
def test_another_process_with_the_same_pid_is_not_believed(start: int | None) -> None:
    assert not replace(state_of_this_process(0, "ready"), process_start=start).is_of_a_living_process()


def test_a_program_with_parentheses_and_spaces_in_its_name_has_a_start(tmp_path: Path) -> None:
    sleep = shutil.which("sleep")
    assert sleep is not None
    program = tmp_path / "a) S 1 (b"
    shutil.copy(sleep, program)
    child = subprocess.Popen([program, "60"])
    try:
        start, own = process_start(child.pid), process_start(os.getpid())
        assert start is not None
        assert own is not None
        assert start >= own
    finally:
        child.kill()
        child.wait()
