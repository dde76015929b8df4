"""Processes of the tests of the chart and the image; what e2e tests stand on is taken from there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

# Its modules are imported by their names alone.
sys.path.append(str(Path(__file__).parents[1] / "e2e"))

from e2e_harness import Child


@pytest.fixture
def start_process(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    """`start_process(argv, env={...})`; the last one is ended first. What they wrote is shown beside a failure."""
    children: list[Child] = []

    def start(argv: Sequence[str | Path], env: dict[str, str] | None = None) -> Child:
        log = tmp_path / f"process-{len(children)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [str(word) for word in argv],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
            )
        children.append(Child(process, log))
        return children[-1]

    yield start
    for child in reversed(children):
        child.hurry(20)
        print(f"--- {child.words} (pid {child.pid}, ended with {child.process.returncode})")
        print(child.log.read_text(errors="replace")[-4000:])
