"""Logging set-up: one line an event, as JSON for machines or as text for people. Nobody logs content.

Lines are written by a thread of their own behind a bounded queue: a reader of standard error that has stopped reading
delays no request. What finds the queue full is dropped and counted. Extra fields of an event are passed as
`extra={"fields": {...}}`.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import select
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, TextIO

import msgspec

logger = logging.getLogger(__name__)

LogFormat = Literal["json", "console"]

QUEUED_LINES = 8192
"""Lines that may wait to be written; a decision's line is about 1 kB."""

PAUSE_SECONDS = 0.05
"""How long a line may wait; what is not yet written is lost when the process is killed."""

BATCH_LINES = 256
"""Lines that are taken from the queue at a time."""

FILE_BYTES = 1 << 16
"""Of one write into a regular file."""

CLOSE_SECONDS = 2.0
"""How long the end of the process waits for lines that are still queued."""

OURS = "router"
"""The logger above all of the project's own."""

_LEVEL_WORDS = {"DEBUG": "debug", "INFO": "info", "WARNING": "warn", "ERROR": "error", "CRITICAL": "fatal"}


def quieten_grpc() -> None:
    """Call it before gRPC is loaded, which writes lines of its own to standard error. The environment goes first."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")


class JsonFormatter(logging.Formatter):
    """`{"time": RFC 3339 in UTC, "level", "logger", "event", ...fields}`."""

    def format(self, record: logging.LogRecord) -> str:
        """A line of JSON; an exception is given by its type and place, since its text may quote a request."""
        line: dict[str, Any] = {
            "time": _rfc3339(record.created),
            "level": _LEVEL_WORDS.get(record.levelname, record.levelname),
            "logger": record.name,
            "event": _event(record),
            **_fields(record),
            **_error(record),
        }
        return msgspec.json.encode(line, enc_hook=str).decode()


class ConsoleFormatter(logging.Formatter):
    """`12:03:44 info  ready  key=value ...`."""

    def format(self, record: logging.LogRecord) -> str:
        """A line of text; nested fields are left to the JSON format, which has room for them."""
        flat = " ".join(f"{k}={v}" for k, v in _fields(record).items() if not isinstance(v, dict | list | tuple))
        level = _LEVEL_WORDS.get(record.levelname, record.levelname)
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        error = "".join(f" {key}={value}" for key, value in _error(record).items())
        line = f"{clock} {level:<5} {_event(record)}  {flat}{error}".rstrip()
        return line if line.isprintable() else "".join(map(_shown, line))


class LineWriter:
    """Writes lines to a stream, many at a time: a write is a call of the system, and a line is one of many.

    A write has whole lines. Into anything but a regular file it has no more bytes than a pipe takes at once (POSIX's
    `PIPE_BUF`), so that the lines of several processes that share it do not mix. A process may have no stream.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        # By these, a line may be longer than in UTF-8.
        self._encoding = getattr(stream, "encoding", None) or "utf-8"
        self._errors = getattr(stream, "errors", None) or "surrogatepass"
        self._most = FILE_BYTES if _is_regular(stream) else select.PIPE_BUF

    def write(self, lines: Iterable[str]) -> None:
        """Write them, in order; where nobody can take them any more, they are lost."""
        chunk: list[str] = []
        held = 0
        for line in lines:
            size = len(line) if line.isascii() else len(line.encode(self._encoding, self._errors))
            if chunk and held + size > self._most:
                self._put("".join(chunk))
                chunk, held = [], 0
            chunk.append(line)
            held += size
        if chunk:
            self._put("".join(chunk))

    def _put(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            if self._stream is not None:
                self._stream.write(text)
                self._stream.flush()


def _is_regular(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):
        return False


class QueuedHandler(logging.Handler):
    """Makes lines of records at once, and has them written in a thread of its own; drops and counts what is too much.

    The thread is not woken for a line, and has no more to do than to write: it would contend for the interpreter with
    the request that is logged.
    """

    def __init__(
        self, write: Callable[[Sequence[str]], None], limit: int = QUEUED_LINES, pause: float = PAUSE_SECONDS
    ) -> None:
        super().__init__()
        self._write = write
        self._limit = limit
        self._pause = pause
        self._queue: deque[str] = deque()
        self._dropped = 0
        self.lost = 0
        """Lines that were dropped so far."""
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Never waits."""
        if len(self._queue) >= self._limit:
            self._dropped += 1
            self.lost += 1
            return
        try:
            self._queue.append(f"{self.format(record)}\n")
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Write what is queued, for at most CLOSE_SECONDS."""
        self._closing.set()
        self._thread.join(CLOSE_SECONDS)
        super().close()

    @property
    def stuck(self) -> bool:
        """Whether, after closing, a line is still being written."""
        return self._thread.is_alive()

    def _run(self) -> None:
        while not self._closing.wait(self._pause):
            self._work()
        self._work()

    def _work(self) -> None:
        while self._queue:
            self._write([self._queue.popleft() for _ in range(min(BATCH_LINES, len(self._queue)))])
        dropped, self._dropped = self._dropped, 0
        if dropped:
            fields = {"fields": {"lines": dropped}}
            record = logging.makeLogRecord({"msg": "log lines dropped", "levelname": "WARNING", **fields})
            self._write([f"{self.format(record)}\n"])


def configure_logging(form: LogFormat, level: str = "INFO") -> None:
    """Send every logger of the process to standard error in the given form."""
    handler = QueuedHandler(LineWriter(sys.stderr).write)
    handler.setFormatter(JsonFormatter() if form == "json" else ConsoleFormatter())
    atexit.register(_close_at_exit, handler)
    # What no format prints need not be found out for every line: the caller's place, thread and process.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # documented under "Optimization" in logging's how-to
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(logging.INFO, logging.getLevelNamesMapping()[level]))
    # What libraries say at DEBUG is theirs to choose, and may be what a client sent.
    logging.getLogger(OURS).setLevel(level)
    # Python itself would write out the text of an exception that nobody caught.
    sys.excepthook = lambda kind, error, trace: _say("uncaught", kind, error, trace)
    sys.unraisablehook = lambda args: _say("not raised", args.exc_type, args.exc_value, args.exc_traceback)
    threading.excepthook = lambda args: _say("thread ended", args.exc_type, args.exc_value, args.exc_traceback)


def lines_dropped() -> int:
    """Lines of the process that its log's queue had no room for."""
    return sum(handler.lost for handler in logging.getLogger().handlers if isinstance(handler, QueuedHandler))


def _close_at_exit(handler: QueuedHandler) -> None:
    """Close it; where nobody takes what is written, end the process at once, with status 1 since lines are lost.

    Python's own end would flush what the thread is writing, and wait for as long as nobody reads.
    """
    handler.close()
    if handler.stuck:
        os._exit(1)


def _say(event: str, kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    logger.error(event, exc_info=(kind, BaseException() if error is None else error, trace))


def _event(record: logging.LogRecord) -> str:
    """The message; of asyncio's what stands before the reprs of callbacks and errors, which may quote a request."""
    message = record.getMessage()
    return re.split(r"[(<\n]", message, maxsplit=1)[0].rstrip() if record.name == "asyncio" else message


def _error(record: logging.LogRecord) -> dict[str, str]:
    """Type and place of the record's exception."""
    if not record.exc_info or record.exc_info[0] is None:
        return {}
    kind, _, step = record.exc_info
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    place = {} if step is None else {"at": f"{step.tb_frame.f_globals.get('__name__', '?')}:{step.tb_lineno}"}
    return {"error_type": kind.__name__, **place}


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = getattr(record, "fields", {})
    return fields


def _shown(char: str) -> str:
    """A character that would begin a line, or speak to a terminal, by its code point."""
    return char if char.isprintable() else f"\\u{ord(char):04x}"


def _rfc3339(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds * 1000) % 1000:03d}Z"
