"""What `pointsman check` finds about the policy that serves, found once for each, in a process of its own.

Proofs may take long and take a core meanwhile: neither the supervisor nor a worker does that beside its work. As a
program it reads a policy from its standard input and writes its findings.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Any, Final

from router.config.lint import lint
from router.config.load import parse_policy

logger = logging.getLogger(__name__)

SECONDS: Final = 60.0
"""What the proofs of one policy may take."""

NICE: Final = 10

Found = list[dict[str, Any]]


class Findings:
    """The findings of the policy that was asked for last. Belongs to one event loop."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._digest = ""
        self._task: asyncio.Task[Found | None] | None = None

    async def of(self, digest: str, path: Path, text: bytes, wait: float) -> Found | None:
        """The findings of this policy; None while they are not there yet, or where there was no time for them."""
        if self._task is None or digest != self._digest:
            if self._task is not None:
                self._task.cancel()
            self._digest = digest
            self._task = asyncio.create_task(self._find(path, text))
        task = self._task
        await asyncio.wait([task], timeout=wait)
        return task.result() if task.done() and not task.cancelled() else None

    async def close(self) -> None:
        """Look for them no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _find(self, path: Path, text: bytes) -> Found | None:
        command = (sys.executable, "-m", "router.admin.findings", str(path))
        try:
            process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        except OSError as error:
            logger.warning("no findings", extra={"fields": {"why": error.strerror}})
            return None
        try:
            out, _ = await asyncio.wait_for(process.communicate(text), self._seconds)
        except TimeoutError:
            logger.warning("no findings", extra={"fields": {"why": f"they took longer than {self._seconds:g} s"}})
            return None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            logger.warning("no findings", extra={"fields": {"status": process.returncode}})
            return None
        found: Found = json.loads(out)
        return found


def main(path: Path) -> None:
    """Read a policy, write its findings in JSON."""
    os.nice(NICE)
    loaded = parse_policy(sys.stdin.buffer.read(), path)
    rows = [
        {
            "severity": each.finding.level,
            "kind": each.finding.kind,
            "message": each.problem.message,
            "line": each.problem.line,
            "column": each.problem.column,
        }
        for each in lint(loaded)
    ]
    print(json.dumps(rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
