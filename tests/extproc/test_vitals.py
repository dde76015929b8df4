"""What observable metrics say of a worker that runs."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from running_worker import Running, running_worker
from tiny_packs import write_vision_pack

from router.extproc import life
from router.extproc.vitals import of_process
from router.telemetry.catalogue import METRICS

POLICY = """\
version: 1
upstreams: [{model: small, cluster: local}]
default_model: small
encoders: {text: starter, vision: ./vision}
parity: {interval: 0.05}
limits: {cache_bytes: 1000000, held_bytes: 7000000}
signals: {embedding: {clinical: {texts: [interpret a test result], threshold: 0.45}}}
decisions: [{name: med, when: {embedding: clinical}, route: {models: [small]}}]
"""


@pytest.fixture(autouse=True)
def no_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "DRAIN_NOTICE", 0.0)


def of(running: Running, name: str) -> dict[str, float]:
    """Values by their labels' values."""
    return {"/".join(map(str, labels.values())): value for labels, value in running.counted(name)}


async def test_a_worker_tells_of_its_models_caches_packs_policy_and_bodies(tmp_path: Path) -> None:
    write_vision_pack(tmp_path / "vision")
    async with running_worker(tmp_path, POLICY) as running:
        await running.until(ready=True)
        for _ in range(3):
            await running.headers_of_a_chat()
        lookups = of(running, "pointsman.cache.lookups")
        assert lookups["window/hit"] >= 2
        assert lookups["window/miss"] == of(running, "pointsman.cache.entries")["window"]
        assert of(running, "pointsman.cache.size")["window"] > 0
        assert of(running, "pointsman.cache.limit") == {"": 1_000_000}
        assert of(running, "pointsman.worker.held_limit") == {"": 7_000_000}
        assert of(running, "pointsman.inference.jobs")["done"] > 0
        assert of(running, "pointsman.policy.info") == {hashlib.sha256(POLICY.encode()).hexdigest(): 1}
        cosines = of(running, "pointsman.parity.cosine")
        assert cosines.keys() == {"starter-text/text", "tiny-vision/vision"}
        assert all(0.99 < cosine <= 1.0001 for cosine in cosines.values())
        ages = of(running, "pointsman.parity.age")
        assert ages.keys() == cosines.keys()


async def test_another_policy_is_told_of_in_place_of_the_former(tmp_path: Path) -> None:
    write_vision_pack(tmp_path / "vision")
    async with running_worker(tmp_path, POLICY) as running:
        await running.until(ready=True)
        text = POLICY.replace("held_bytes: 7000000", "held_bytes: 8000000")
        running.config.write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        running.reload.set()
        await running.until_policy(digest)
        assert of(running, "pointsman.worker.held_limit") == {"": 8_000_000}
        assert of(running, "pointsman.policy.info") == {digest: 1}


def test_the_process_tells_of_its_memory_and_time() -> None:
    sources = of_process()
    assert sources.keys() <= {metric.name for metric in METRICS}
    [(memory, labels)] = sources["process.memory.usage"]()
    assert labels == {}
    assert memory > 10_000_000
    [(seconds, _)] = sources["process.cpu.time"]()
    assert 0 < seconds <= sum(os.times()[:2])
    assert sources["pointsman.log.lines.dropped"]() == [(0, {})]
