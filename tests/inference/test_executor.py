from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.inference.executor import InferenceExecutor, Overloaded, giving_way


class Gate:
    """A job that says when it has started and ends when it is told to."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.may_end = threading.Event()

    def __call__(self) -> str:
        self.started.set()
        assert self.may_end.wait(10)
        return "done"


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def _until_idle(executor: InferenceExecutor) -> None:
    async with asyncio.timeout(10):
        while not executor.idle:  # noqa: ASYNC110 - told from a thread, by no event
            await asyncio.sleep(0.001)


async def _until_started(gate: Gate) -> None:
    assert await asyncio.to_thread(gate.started.wait, 10)


@pytest.fixture
async def one() -> Any:
    executor = InferenceExecutor(threads=1, queue=2)
    yield executor
    executor.close()


async def test_a_result_and_an_exception_come_back_to_their_caller(one: InferenceExecutor) -> None:
    assert await one.run(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await one.run(divmod, 7, 0)
    assert await one.run(divmod, 7, 2) == (3, 1)


async def test_no_more_jobs_run_at_a_time_than_there_are_threads() -> None:
    executor = InferenceExecutor(threads=2, queue=100)
    lock = threading.Lock()
    now = peak = 0

    def job() -> None:
        nonlocal now, peak
        with lock:
            now += 1
            peak = max(peak, now)
        time.sleep(0.002)
        with lock:
            now -= 1

    await asyncio.gather(*(executor.run(job) for _ in range(20)))
    assert peak == 2
    executor.close()


async def test_what_may_not_wait_is_shed_at_once(one: InferenceExecutor) -> None:
    gate = Gate()
    running = asyncio.create_task(one.run(gate))
    await _until_started(gate)
    waiting = [asyncio.create_task(one.run(str)) for _ in range(2)]
    await _settle()
    assert one.waiting == 2
    with pytest.raises(Overloaded):
        await one.run(str)
    gate.may_end.set()
    assert (one.running, one.done, one.shed) == (1, 0, 1)
    assert await running == "done"
    assert await asyncio.gather(*waiting) == ["", ""]
    await _until_idle(one)
    assert (one.running, one.done, one.shed) == (0, 3, 1)


async def test_a_job_cancelled_while_it_waits_never_starts(one: InferenceExecutor) -> None:
    first, second = Gate(), Gate()
    running = asyncio.create_task(one.run(first))
    await _until_started(first)
    waiting = asyncio.create_task(one.run(second))
    await _settle()
    waiting.cancel()
    await _settle()
    assert one.waiting == 0
    first.may_end.set()
    await running
    assert await one.run(str) == ""
    assert not second.started.is_set()


async def test_a_cancelled_caller_leaves_the_slot_taken_until_the_thread_has_finished(one: InferenceExecutor) -> None:
    first, second = Gate(), Gate()
    running = asyncio.create_task(one.run(first))
    await _until_started(first)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    following = asyncio.create_task(one.run(second))
    await _settle()
    assert one.waiting == 1
    assert not second.started.is_set()
    first.may_end.set()
    second.may_end.set()
    assert await following == "done"


async def test_closing_sheds_what_waits_and_lets_finish_what_runs(one: InferenceExecutor) -> None:
    gate = Gate()
    running = asyncio.create_task(one.run(gate))
    await _until_started(gate)
    waiting = asyncio.create_task(one.run(str))
    await _settle()
    one.close()
    gate.may_end.set()
    assert await running == "done"
    with pytest.raises(Overloaded):
        await waiting
    with pytest.raises(Overloaded):
        await one.run(str)


@pytest.mark.parametrize(("threads", "queue"), [(0, 1), (1, -1)])
async def test_sizes_that_make_no_sense_are_refused(threads: int, queue: int) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        InferenceExecutor(threads, queue)


async def test_work_that_gives_way_runs_after_what_came_later_and_takes_no_place_of_it(one: InferenceExecutor) -> None:
    gate = Gate()
    done: list[str] = []
    running = asyncio.create_task(one.run(gate))
    await _until_started(gate)
    with giving_way():
        behind = [asyncio.create_task(one.run(done.append, name)) for name in ("x", "y")]
        await _settle()
        with pytest.raises(Overloaded):
            await one.run(str)
    ahead = [asyncio.create_task(one.run(done.append, name)) for name in ("a", "b")]
    await _settle()
    assert one.waiting == 4
    with pytest.raises(Overloaded):
        await one.run(str)
    gate.may_end.set()
    await asyncio.gather(running, *behind, *ahead)
    assert done == ["a", "b", "x", "y"]


async def test_work_that_came_behind_does_not_take_the_place_of_what_waits(one: InferenceExecutor) -> None:
    """Nor does a caller that is cancelled in the moment of its turn take that with it."""
    gate = Gate()
    done: list[str] = []
    running = asyncio.create_task(one.run(gate))
    await _until_started(gate)
    with giving_way():
        behind = asyncio.create_task(one.run(done.append, "x"))
    ahead = asyncio.create_task(one.run(done.append, "a"))
    await _settle()
    gate.may_end.set()
    await running
    ahead.cancel()
    await behind
    assert done in (["x"], ["a", "x"])
    await _until_idle(one)
    assert await one.run(str) == ""


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["wait", "drop", "raise"])), max_size=12), st.integers(1, 3))
def test_every_slot_comes_back_whatever_becomes_of_the_callers(callers: list[tuple[bool, str]], threads: int) -> None:
    async def run() -> None:
        executor = InferenceExecutor(threads, queue=20)
        tasks = []
        for behind, end in callers:
            with giving_way() if behind else contextlib.nullcontext():
                tasks.append((asyncio.create_task(executor.run(divmod, 1, end != "raise")), end))
            await asyncio.sleep(0)
            if end == "drop":
                tasks[-1][0].cancel()
        await asyncio.gather(*(task for task, _ in tasks), return_exceptions=True)
        await _until_idle(executor)
        gate = [Gate() for _ in range(threads)]
        full = [asyncio.create_task(executor.run(each)) for each in gate]
        for each in gate:
            await _until_started(each)
            each.may_end.set()
        await asyncio.gather(*full)
        executor.close()

    asyncio.run(run())
