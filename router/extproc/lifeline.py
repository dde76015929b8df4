"""A pipe that ties the workers' lives to their supervisor's, also when that is killed with no chance to tell them.

Only the supervisor holds the write end, so the kernel closes it with the process, however it ends. A signal on the
parent's death (prctl) would do too, but on Linux only, and it follows the thread that forked, not the process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

VARIABLE = "POINTSMAN_LIFELINE_FD"
"""The environment variable that tells a worker which of its descriptors is the read end."""


@contextlib.contextmanager
def lifeline() -> Iterator[int]:
    """The read end, to be passed to every worker; the pipe ends with the block or with the process."""
    read_end, write_end = os.pipe()
    try:
        yield read_end
    finally:
        os.close(write_end)
        os.close(read_end)


def end_with_supervisor(grace: float) -> None:
    """In a worker: once the supervisor is gone, send SIGTERM to this process, and end it hard `grace` seconds later.

    Watches from a daemon thread, so that a blocked event loop is ended too. Does nothing in a worker that was started
    by hand.
    """
    descriptor = os.environ.get(VARIABLE)
    if descriptor is None:
        return
    threading.Thread(target=_watch, args=(int(descriptor), grace), name="lifeline", daemon=True).start()


def _watch(descriptor: int, grace: float) -> None:
    # Nothing is ever written: the read returns when the last write end is closed.
    os.read(descriptor, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace)
    os._exit(1)
