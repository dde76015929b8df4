from __future__ import annotations

import io
import json
import logging
import os
import select
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.telemetry.log import ConsoleFormatter, JsonFormatter, LineWriter, QueuedHandler


def record_of(message: str, fields: object = None, exc_info: object = None) -> logging.LogRecord:
    row = {"name": "room", "levelname": "INFO", "msg": message, "created": 1_700_000_000.25, "exc_info": exc_info}
    return logging.makeLogRecord(row if fields is None else {**row, "fields": fields})


def test_a_json_line_has_time_level_logger_event_and_fields() -> None:
    line = JsonFormatter().format(record_of("ready", {"worker": 1}))
    expected = {"time": "2023-11-14T22:13:20.250Z", "level": "info", "logger": "room", "event": "ready", "worker": 1}
    assert json.loads(line) == expected


def test_an_exception_is_named_by_its_type_alone() -> None:
    try:
        raise ValueError("words of a client")
    except ValueError:
        record = record_of("oops", exc_info=sys.exc_info())
    for formatter in (JsonFormatter(), ConsoleFormatter()):
        line = formatter.format(record)
        assert "ValueError" in line
        assert "words" not in line


def test_a_console_line_is_one_line_whatever_a_name_says() -> None:
    made = logging.makeLogRecord(
        {"msg": "e", "levelname": "INFO", "fields": {"why": "a\n00:00:00 info ready\x1b[2J\u202e"}}
    )
    assert ConsoleFormatter().format(made).endswith(r"why=a\u000a00:00:00 info ready\u001b[2J\u202e")


def test_a_console_line_leaves_nested_fields_out() -> None:
    assert ConsoleFormatter().format(record_of("ready", {"a": 1, "b": {"c": 2}})).endswith("info  ready  a=1")


def test_what_nobody_caught_is_named_by_its_type_and_place_alone() -> None:
    script = """if True:
        import asyncio, gc, logging, threading
        from router.telemetry.log import configure_logging
        configure_logging("json", "DEBUG")
        class Odd:
            def __del__(self):
                raise KeyError("words of a client")
        def fail(text):
            raise ValueError(text)
        async def lose():
            asyncio.get_running_loop().call_soon(fail, "words of a client")
            asyncio.ensure_future(later())
            await asyncio.sleep(0.01)
        async def later():
            fail("words of a client")
        thread = threading.Thread(target=fail, args=("words of a client",))
        thread.start()
        thread.join()
        Odd()
        asyncio.run(lose())
        gc.collect()
        logging.getLogger("urllib3").debug("words of a client")
        logging.getLogger("router.x").debug("our own")
        fail("words of a client")
    """
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert ended.returncode == 1
    assert b"words" not in ended.stderr
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    events = {line["event"]: line.get("error_type") for line in lines}
    assert events == {
        "thread ended": "ValueError",
        "not raised": "KeyError",
        "Exception in callback fail": "ValueError",
        "Task exception was never retrieved": "ValueError",
        "our own": None,
        "uncaught": "ValueError",
    }
    assert all(line["at"].startswith("__main__:") for line in lines if "error_type" in line)


class Stuck:
    """A writer that does not return until told to."""

    def __init__(self) -> None:
        self.busy, self.go_on = threading.Event(), threading.Event()
        self.lines: list[str] = []

    def write(self, lines: Sequence[str]) -> None:
        self.busy.set()
        self.go_on.wait(10)
        self.lines += lines


def test_a_stuck_reader_delays_nobody_and_what_was_dropped_is_counted() -> None:
    stuck = Stuck()
    handler = QueuedHandler(stuck.write, limit=2, pause=0.001)
    handler.emit(record_of("first"))
    assert stuck.busy.wait(10)
    for number in range(5):
        handler.emit(record_of(f"line {number}"))
    assert handler.lost == 3
    stuck.go_on.set()
    handler.close()
    assert stuck.lines == ["first\n", "line 0\n", "line 1\n", "log lines dropped\n"]


def test_what_cannot_be_formatted_costs_the_other_lines_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    written: list[str] = []
    handler = QueuedHandler(written.extend)
    handler.emit(logging.LogRecord("x", logging.INFO, "", 0, "%d", ("no number",), None))
    handler.emit(record_of("hello"))
    handler.close()
    assert written == ["hello\n"]


@pytest.mark.parametrize("form", ["json", "console"])
def test_lines_that_are_queued_at_the_end_of_the_process_are_written(form: str) -> None:
    script = (
        "import logging; from router.telemetry.log import configure_logging; "
        f"configure_logging({form!r}); [logging.getLogger('x').info('line %d', n) for n in range(500)]"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, env={**os.environ})
    assert ended.stderr.decode().count("line ") == 500


class Writes(io.StringIO):
    """A stream that remembers what was written at once."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[str] = []

    def write(self, text: str) -> int:
        self.all.append(text)
        return len(text)


@given(st.lists(st.text("a\u00e9\U0001f600", max_size=3000), max_size=8))
def test_lines_are_written_some_at_a_time_and_never_cut_or_mixed(messages: list[str]) -> None:
    out = Writes()
    LineWriter(out).write([f"{message}\n" for message in messages])
    assert "".join(out.all) == "".join(f"{message}\n" for message in messages)
    for text in out.all:
        assert text.endswith("\n")
        assert len(text.encode()) <= select.PIPE_BUF or text.count("\n") == 1


def test_lines_are_measured_as_the_stream_writes_them() -> None:
    writes: list[bytes] = []

    class Pipe(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            writes.append(bytes(data))
            return len(writes[-1])

    stream = io.TextIOWrapper(io.BufferedWriter(Pipe()), encoding="latin-1", errors="backslashreplace")
    LineWriter(stream).write(["\u4e2d" * 300 + "\n"] * 4)
    assert [len(write) for write in writes] == [2 * 1801, 2 * 1801]
    stream.close()


def test_a_process_without_standard_error_logs_to_nobody() -> None:
    LineWriter(None).write(["line\n"])


def test_a_file_takes_more_at_once_than_a_pipe(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        sizes: list[int] = []
        write = file.write
        file.write = lambda text: (sizes.append(len(text)), write(text))[1]  # type: ignore[method-assign]
        LineWriter(file).write(["x" * 999 + "\n"] * 100)
    assert sizes == [65_000, 35_000]
    assert (tmp_path / "log").read_text() == ("x" * 999 + "\n") * 100
