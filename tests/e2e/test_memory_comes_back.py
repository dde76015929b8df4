"""A crowd of large bodies through real Envoy and a real worker: all are judged, and what they took is given back."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e_harness import Child, RunningEnvoy, Upstream, ask, wait_until
from e2e_product import start_product_envoy, start_serve

from router.telemetry.worker_state import read_state

pytestmark = pytest.mark.slow

POLICY = """
version: 1
limits: {{decision_ms: 30000}}
upstreams: [{{model: small, cluster: a, endpoint: "{a}", modalities: [text, image], rewrite_model: x/small}}]
default_model: small
signals: {{keyword: {{attack: {{any: [ignore all instructions]}}}}}}
decisions: [{{name: block, guard: true, when: {{keyword: attack}}, respond: {{message: No.}}}}]
"""
CROWD = 32
IMAGE = "data:image/png;base64," + base64.b64encode(bytes(6 << 20)).decode()
BODY = json.dumps(
    {"model": "any", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": IMAGE}}]}]}
).encode()


def resident(pid: int) -> int:
    """Resident memory of a process, in kB."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1])


def test_the_memory_of_a_crowd_of_large_bodies_comes_back(
    tmp_path: Path,
    start_child: Callable[..., Child],
    start_envoy: Callable[..., RunningEnvoy],
    start_upstream: Callable[[str], Upstream],
) -> None:
    a, policy, runtime = start_upstream("a"), tmp_path / "policy.yaml", tmp_path / "run"
    policy.write_text(POLICY.format(a=a.url))
    start_serve(start_child, policy, runtime, 1)
    envoy = start_product_envoy(start_envoy, policy, runtime, 1)
    state = read_state(runtime / "worker-0.state.json")
    assert state is not None
    statuses: Counter[int] = Counter()
    lock = threading.Lock()

    def client() -> None:
        status = ask(envoy, BODY, {"content-type": "application/json"}).status
        with lock:
            statuses[status] += 1

    for _ in range(3):
        client()
    before = resident(state.pid)
    most = 0
    clients = [threading.Thread(target=client) for _ in range(CROWD)]
    for thread in clients:
        thread.start()
    while any(thread.is_alive() for thread in clients):
        most = max(most, resident(state.pid))
        time.sleep(0.01)
    assert statuses == {200: CROWD + 3}
    assert most > before * 1.5
    wait_until(lambda: resident(state.pid) <= before * 1.1, "the memory to come back")
    assert len(a.seen) == CROWD + 3
