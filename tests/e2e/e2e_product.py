"""The product by its own commands, as an operator starts it: `serve` with real workers, and `envoy` to go with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from e2e_harness import Child, RunningEnvoy, free_address, wait_until

COMMAND = [sys.executable, "-m", "router.cli.main"]


def start_serve(
    start_child: Callable[..., Child], policy: Path, runtime: Path, workers: int, flags: Sequence[str] = ()
) -> Child:
    """A `serve` whose workers are all ready."""
    words = ["serve", "--config", str(policy), "--workers", str(workers), "--runtime-dir", str(runtime), *flags]
    server = start_child([*COMMAND, *words])
    wait_until(lambda: count_ready(server) == workers or not server.alive, "the workers")
    return server


def count_ready(server: Child) -> int:
    """How often a worker of this `serve` got ready so far."""
    return server.log.read_bytes().count(b'"event":"ready"')


def start_product_envoy(
    start_envoy: Callable[..., RunningEnvoy], policy: Path, runtime: Path, workers: int, flags: Sequence[str] = ()
) -> RunningEnvoy:
    """An Envoy with the bootstrap that `envoy` prints, and an admin address."""
    listen, admin = free_address(), free_address()
    words = ["envoy", str(policy), "--workers", str(workers), "--runtime-dir", str(runtime), *flags]
    words += ["--listen", f"{listen.host}:{listen.port}", "--admin", f"{admin.host}:{admin.port}"]
    rendered = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=True, timeout=60)
    return start_envoy(rendered.stdout, listen, admin)
