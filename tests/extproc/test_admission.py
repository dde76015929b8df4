"""A model that hangs: requests behind it are shed or time out, none waits beyond its decision, nothing is left over."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from running_worker import running_worker
from tiny_classifier import write_classifier_pack

from router.actions.edits import Edits
from router.config.load import parse_policy
from router.extproc import house as composition
from router.extproc import stuck
from router.extproc.head import RequestHead
from router.extproc.house import House, build_house
from router.extproc.stuck import STUCK_SECONDS
from router.extproc.telling.desk import Telling
from router.extproc.telling.handled import Handled
from router.inference.batching import BATCH
from router.inference.executor import InferenceExecutor
from router.records.record import DecisionRecord
from router.request.reply import Reply

QUEUE = 3
POLICY = f"""\
version: 1
limits: {{decision_ms: 1000, queue: {QUEUE}}}
upstreams: [{{model: small, cluster: local}}]
default_model: small
signals: {{classifier: {{toxic: {{pack: ./packs/toxicity, any: [toxic], threshold: 0.8, over: user}}}}}}
decisions:
  - {{name: block, guard: true, when: {{classifier: toxic}}, respond: {{status: 451, code: no, message: No.}}}}
"""
CHAT = RequestHead("POST", "/v1/chat/completions", {})


def chat(text: str) -> bytes:
    return json.dumps({"model": "auto", "messages": [{"role": "user", "content": text}]}).encode()


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> list[DecisionRecord]:
    kept: list[DecisionRecord] = []

    def keep(handled: Handled) -> None:
        if handled.record is not None:
            kept.append(handled.record)

    monkeypatch.setattr(composition, "Telling", lambda: Telling(keep))
    return kept


@pytest.fixture
async def house(tmp_path: Path, records: list[DecisionRecord]) -> AsyncIterator[House]:
    write_classifier_pack(tmp_path / "packs/toxicity", {"idiot": "toxic"}, ["fine", "toxic"], drift_allowed=True)
    async with build_house(parse_policy(POLICY.encode(), tmp_path / "policy.yaml"), 1) as built:
        yield built


async def hang(house: House) -> tuple[asyncio.Task[bool], threading.Event]:
    """The worker's one model thread is taken until the event is set."""
    begun, release = threading.Event(), threading.Event()

    def stuck() -> bool:
        begun.set()
        return release.wait(60)

    task = asyncio.create_task(house.machinery.executor.run(stuck))
    await asyncio.to_thread(begun.wait, 30)
    return task, release


async def test_behind_a_hung_model_a_few_wait_and_the_rest_is_shed_and_guards_hold(
    house: House, records: list[DecisionRecord]
) -> None:
    hung, release = await hang(house)
    async with asyncio.timeout(30):
        answers = await asyncio.gather(*(house.pipeline.judge(CHAT, chat("hello " * n)) for n in range(1, 61)))
    assert all(isinstance(answer, Reply) for answer in answers)
    statuses = Counter(o.status for record in records for o in record.verdict.observations.values())
    assert set(statuses) == {"shed", "timed_out"}
    # Texts of different lengths, or one would be worked out for all; short ones of one moment are one call.
    assert statuses["timed_out"] <= QUEUE * BATCH
    assert house.machinery.executor.waiting == 0
    release.set()
    await hung
    assert isinstance(await house.pipeline.judge(CHAT, chat("hello again")), Edits)


async def test_a_request_that_is_cancelled_takes_its_model_work_along(house: House) -> None:
    hung, release = await hang(house)
    executor = house.machinery.executor
    judging = asyncio.create_task(house.pipeline.judge(CHAT, chat("hello")))
    while not executor.waiting:  # noqa: ASYNC110  a number tells nobody of its changes
        await asyncio.sleep(0)
    judging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await judging
    assert executor.waiting == 0
    release.set()
    await hung
    assert executor.idle


async def test_how_long_the_oldest_call_has_run_is_known(house: House) -> None:
    executor = house.machinery.executor
    assert executor.longest == 0
    hung, release = await hang(house)
    assert executor.longest > 0
    release.set()
    await hung
    while not executor.idle:  # noqa: ASYNC110  as above
        await asyncio.sleep(0)
    assert executor.longest == 0


async def test_a_worker_whose_model_hangs_for_good_drains_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stuck, "LOOK_SECONDS", 0.01)
    write_classifier_pack(tmp_path / "packs/toxicity", {"idiot": "toxic"}, ["fine", "toxic"], drift_allowed=True)
    async with running_worker(tmp_path, POLICY) as worker:
        await worker.until(ready=True)
        monkeypatch.setattr(InferenceExecutor, "longest", STUCK_SECONDS)
        while worker.state():  # noqa: ASYNC110  a file tells nobody of its end
            await asyncio.sleep(0.01)
    assert "model hangs" in caplog.text


STUCK_WORKER = """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from router.extproc import life, stuck, worker
from router.inference.executor import InferenceExecutor

ThreadPoolExecutor(1).submit(threading.Event().wait)
stuck.LOOK_SECONDS = life.DRAIN_NOTICE = 0.01
InferenceExecutor.longest = stuck.STUCK_SECONDS
sys.exit(worker.main())
"""


@pytest.mark.slow
def test_its_process_does_not_wait_for_the_thread_that_hangs(tmp_path: Path) -> None:
    write_classifier_pack(tmp_path / "packs/toxicity", {"idiot": "toxic"}, ["fine", "toxic"], drift_allowed=True)
    (tmp_path / "policy.yaml").write_text(POLICY)
    words = ["--config", tmp_path / "policy.yaml", "--socket", tmp_path / "worker-0.sock"]
    run = subprocess.run(
        [sys.executable, "-c", STUCK_WORKER, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 1
    assert '"event":"model hangs"' in run.stdout + run.stderr
    assert '"event":"ended"' in run.stdout + run.stderr
