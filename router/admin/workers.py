"""How the workers are, as seen from outside their processes: by what each wrote, and whether it still lives.

A worker that is killed leaves its last word behind, and one that has just been started has said nothing yet: neither
is ready. Not the place that decides whether a worker may be believed; that is the worker's own gate.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from router.telemetry.worker_state import StateFileError, read_state


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """One worker: `since` is when it said so (RFC 3339 in UTC; None when it said nothing), `why` why it is not ready.

    `ended`: its process is gone and nothing came after it yet; `missing`: there is no word of it, or none to be read.
    `policy` is the digest that it serves, empty where it serves none; `refused_policy` what is wrong with the policy
    file where that has changed to something that cannot be served.
    """

    worker: int
    state: Literal["starting", "ready", "not_ready", "ended", "missing"]
    since: str | None
    why: tuple[str, ...]
    policy: str = ""
    refused_policy: tuple[str, ...] = ()


def report_on(worker: int, file: Path) -> WorkerReport:
    """Read the worker's state file; two small reads, no waiting."""
    try:
        said = read_state(file)
    except StateFileError as error:
        return WorkerReport(worker, "missing", None, (str(error),))
    if said is None:
        return WorkerReport(worker, "missing", None, ("it has not said anything yet",))
    if not said.is_of_a_living_process():
        return WorkerReport(worker, "ended", said.since, ("its process has ended and none has followed yet",))
    return WorkerReport(worker, said.state, said.since, said.why, said.policy, said.refused_policy)
