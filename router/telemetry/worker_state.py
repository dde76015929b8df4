"""What a worker says of itself in a file beside its socket: whether it takes requests, and if not, why.

The worker writes it, whoever looks from outside its process reads it. A file outlives a process that is killed, so it
names its process, and says nothing any more once that is gone. Needs Linux's /proc; without it no file is believed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

Stage = Literal["starting", "ready", "not_ready"]


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A worker's state: `worker` is its index, `since` RFC 3339 in UTC, `why` has the reasons of one that is not ready.

    `policy` is the digest of the policy that it serves, empty before it serves one; `refused_policy` says what is wrong
    with the policy file where that has changed to something that cannot be served.

    `pid` and `process_start` (clock ticks since boot; None where it cannot be known) name the process together: a pid
    alone is given to another process some day, and to the same worker of a restarted container at once.
    """

    worker: int
    state: Stage
    since: str
    why: tuple[str, ...]
    pid: int
    process_start: int | None
    policy: str = ""
    refused_policy: tuple[str, ...] = ()

    def is_of_a_living_process(self) -> bool:
        """Whether the process that wrote this still runs."""
        return self.process_start is not None and process_start(self.pid) == self.process_start


class StateFileError(Exception):
    """A state file that cannot be read or is none. The text is for the operator."""


def state_file(socket: Path) -> Path:
    """Where a worker with this socket writes its state: `worker-0.state.json` beside `worker-0.sock`."""
    return socket.with_suffix(".state.json")


def state_of_this_process(
    worker: int, state: Stage, why: Sequence[str] = (), policy: str = "", refused_policy: Sequence[str] = ()
) -> WorkerState:
    """A state from now on, of the process that asks."""
    pid = os.getpid()
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return WorkerState(worker, state, since, tuple(why), pid, process_start(pid), policy, tuple(refused_policy))


def write_state(file: Path, state: WorkerState) -> None:
    """Replace the file: a reader sees the old state or this one. Raises OSError."""
    fresh = file.with_suffix(".tmp")
    fresh.write_bytes(msgspec.json.encode(state))
    fresh.rename(file)


def read_state(file: Path) -> WorkerState | None:
    """What the file says, by whatever process; None when there is no file. Raises StateFileError."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=WorkerState)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateFileError(f"{file.name}: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StateFileError(f"{file.name} is not a worker's state") from error


def process_start(pid: int) -> int | None:
    """When the process started, in clock ticks since boot (proc(5), `stat`); None when it is gone, or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The second field is the program's name in parentheses, which may hold spaces and parentheses itself.
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
