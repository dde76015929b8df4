"""A supervisor in a process of its own: `small_supervisor.py MODE FOLDER COUNT GRACE`; ends with `supervise`'s code."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from router.extproc.supervisor import WorkerSpec, supervise

mode, folder, count, grace = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
worker = str(Path(__file__).with_name("small_worker.py"))
spec = WorkerSpec(
    argv=lambda index: [sys.executable, worker, mode, folder, str(index)],
    environment={"TEST_WORD": "given", "MALLOC_TOP_PAD_": "1"},
    grace=grace,
    first_delay=0.05,
    last_delay=0.2,
    silence=2.5,
)
code = asyncio.run(supervise(spec, count))
assert "grpc" not in sys.modules, "the supervisor must stay small"
sys.exit(code)
