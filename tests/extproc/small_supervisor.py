"""A supervisor in a process of its own: `small_supervisor.py MODE FOLDER COUNT GRACE`; ends with `supervise`'s code.

What it logs goes to `supervisor.log` in the folder. The modes are those of small_worker.py; with `untried` no trial
succeeds and with `unready` no worker is ever ready, both of obedient workers.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from router.extproc.supervisor import WorkerSpec, supervise

mode, folder, count, grace = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
worker = str(Path(__file__).with_name("small_worker.py"))
logging.basicConfig(filename=Path(folder) / "supervisor.log", level=logging.INFO)


def ready(index: int, pid: int) -> bool:
    return mode != "unready" and Path(folder, f"{index}.{pid}").exists()


workers = "obedient" if mode in ("untried", "unready") else mode
spec = WorkerSpec(
    argv=lambda index: [sys.executable, worker, workers, folder, str(index)],
    environment={"TEST_WORD": "given", "MALLOC_TOP_PAD_": "1"},
    grace=grace,
    first_delay=0.05,
    last_delay=0.2,
    silence=2.5,
    trial=[sys.executable, "-c", f"raise SystemExit({int(mode == 'untried')})"],
    ready=ready,
    ready_within=0.5 if mode == "unready" else 60.0,
    settle=0.1,
)
code = asyncio.run(supervise(spec, count))
assert "grpc" not in sys.modules, "the supervisor must stay small"
sys.exit(code)
