"""How long jobs wait for a thread is told to whoever asked for them, and to nobody else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from router.inference.executor import InferenceExecutor, Overloaded
from router.telemetry.waiting import WAITING, Waiting


@pytest.fixture
async def executor() -> AsyncIterator[InferenceExecutor]:
    made = InferenceExecutor(1, 1)
    yield made
    made.close()


async def busy(executor: InferenceExecutor) -> tuple[asyncio.Task[bool], threading.Event]:
    """Its one thread is taken until the event is set."""
    begun, release = threading.Event(), threading.Event()

    def hold() -> bool:
        begun.set()
        return release.wait(60)

    task = asyncio.create_task(executor.run(hold))
    assert await asyncio.to_thread(begun.wait, 60)
    return task, release


async def test_the_time_behind_another_job_counts_and_that_at_work_does_not(executor: InferenceExecutor) -> None:
    task, release = await busy(executor)
    waiting = Waiting()
    WAITING.set(waiting)
    job = asyncio.create_task(executor.run(lambda: 7))
    while waiting.seconds == 0.0:  # noqa: ASYNC110 - no event says so
        await asyncio.sleep(0)
    release.set()
    assert await job == 7
    waited = waiting.seconds
    assert waited > 0.0
    await executor.run(threading.Event().wait, 0.0)
    await task
    assert waiting.seconds >= waited


async def test_who_is_shed_or_gives_up_waits_no_more(executor: InferenceExecutor) -> None:
    task, release = await busy(executor)
    waiting = Waiting()
    WAITING.set(waiting)
    job = asyncio.create_task(executor.run(lambda: 7))
    while not executor.waiting:  # noqa: ASYNC110 - no event says so
        await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await executor.run(lambda: 8)
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    waited = waiting.seconds
    release.set()
    await task
    assert waiting.seconds == waited


async def test_a_job_that_raises_is_done(executor: InferenceExecutor) -> None:
    waiting = Waiting()
    WAITING.set(waiting)
    with pytest.raises(ZeroDivisionError):
        await executor.run(lambda: 1 / 0)
    waited = waiting.seconds
    assert waiting.seconds == waited


async def test_nobody_has_to_ask(executor: InferenceExecutor) -> None:
    assert WAITING.get() is None
    assert await executor.run(lambda: 7) == 7
