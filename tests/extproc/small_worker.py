"""A worker of a few lines: `small_worker.py MODE FOLDER INDEX`.

Every start writes a file `INDEX.PID` into the folder. `obedient` ends on SIGTERM and says so in `INDEX.PID.ended`,
`stubborn` ignores it, `crash` ends at once, `hanging` beats for a moment and is then stopped, `beating` goes on
beating and writes `INDEX.PID.hangup` on SIGHUP. All but `crash` follow their supervisor.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path

from router.extproc.heartbeat import beat
from router.extproc.lifeline import end_with_supervisor


async def live() -> None:
    beating = asyncio.create_task(beat())
    await asyncio.sleep(0.1)
    if mode == "hanging":
        os.kill(os.getpid(), signal.SIGSTOP)
    await beating


mode, folder, index = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
mark = folder / f"{index}.{os.getpid()}"
stop = threading.Event()
if mode == "obedient":
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
if mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if mode == "beating":
    signal.signal(signal.SIGHUP, lambda *_: mark.with_name(mark.name + ".hangup").touch())
signal.signal(signal.SIGINT, signal.SIG_DFL)
if mode != "crash":
    end_with_supervisor(grace=0.5)
environment = [f"{name}={os.environ[name]}" for name in sorted(os.environ) if name.startswith(("MALLOC_", "TEST_"))]
mark.with_name(mark.name + ".tmp").write_text("\n".join(environment))
mark.with_name(mark.name + ".tmp").rename(mark)
if mode == "crash":
    sys.exit(3)
if mode in ("hanging", "beating"):
    asyncio.run(live())
stop.wait()
mark.with_name(mark.name + ".ended").touch()
