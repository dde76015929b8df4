"""What a worker holds that serves: no more than it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from running_worker import running_worker

from router.extproc import life
from router.extproc.memory import WORTHWHILE_BYTES, Trimmer

POLICY = "version: 1\nupstreams: [{model: m, cluster: c}]\ndefault_model: m\n"

DEAR = ("grpc", "cryptography", "psycopg", "opentelemetry.exporter.otlp", "uvicorn", "starlette", "typer", "torch")
"""Some megabytes each, and only for those who ask for what they do."""


def test_a_worker_loads_nothing_dear_that_its_policy_does_not_ask_for() -> None:
    look = "import sys, router.extproc.worker; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", look], check=True, capture_output=True, text=True).stdout.split()
    assert "router.extproc.life" in loaded
    assert [name for name in loaded if name in DEAR] == []


async def test_what_starting_took_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "DRAIN_NOTICE", 0.0)
    asked: list[int] = []

    class Told(Trimmer):
        def after(self, most: int) -> None:
            asked.append(most)

    monkeypatch.setattr(life, "Trimmer", Told)
    async with running_worker(tmp_path, POLICY) as worker:
        await worker.until(ready=True)
        assert asked == [WORTHWHILE_BYTES]


@pytest.mark.parametrize(("given", "said"), [(None, "NONE"), ("INFO", "INFO")])
def test_grpc_writes_nothing_past_the_log_unless_it_is_asked_to(tmp_path: Path, given: str | None, said: str) -> None:
    """It reads the variable when it is loaded, which is later."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    script = f"""
import os, sys
from router.extproc import worker
sys.argv = ["worker", "--check", "--config", {str(policy)!r}, "--socket", "unused"]
worker.main()
assert "grpc" not in sys.modules
print(os.environ["GRPC_VERBOSITY"])
"""
    environment = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
    environment |= {} if given is None else {"GRPC_VERBOSITY": given}
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment)
    assert ran.stdout.split() == [said]
