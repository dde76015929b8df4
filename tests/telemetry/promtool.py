"""promtool where there is one: on PATH, or where POINTSMAN_PROMTOOL says. Debian's package `prometheus` has it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

PROMTOOL = os.environ.get("POINTSMAN_PROMTOOL") or shutil.which("promtool")


def run_promtool(*words: str | Path, given: bytes = b"") -> None:
    """Run it; fails with what it says unless it finds everything right."""
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *map(str, words)], input=given, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    assert done.stderr == b"", done.stderr.decode()
