from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from router.inference.batching import BATCH, SHORT_TOKENS, WindowBatcher
from router.inference.executor import InferenceExecutor


class Session:
    """Gives every window its sum, and remembers the lengths it was given."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.hold = threading.Event()
        self.hold.set()
        self.started = threading.Event()

    def forward(self, windows: Sequence[NDArray[np.int32]]) -> NDArray[np.float32]:
        self.batches.append([len(window) for window in windows])
        self.started.set()
        assert self.hold.wait(10)
        return np.array([[window.sum()] for window in windows], dtype=np.float32)


def window(length: int, value: int = 1) -> NDArray[np.int32]:
    return np.full(length, value, dtype=np.int32)


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_short_windows_asked_together_run_together_in_order_of_length(executor: InferenceExecutor) -> None:
    session = Session()
    batcher = WindowBatcher(executor, session.forward)
    lengths = [9, 2, 31, 4, 17, 3, 8, 5, 6, 7]
    rows = await asyncio.gather(*(batcher.embed(window(length)) for length in lengths))
    assert [row[0] for row in rows] == lengths
    assert sorted(session.batches) == [[2, 3, 4, 5, 6, 7, 8, 9], [17, 31]]
    assert max(map(len, session.batches)) == BATCH


async def test_a_long_window_runs_alone(executor: InferenceExecutor) -> None:
    session = Session()
    batcher = WindowBatcher(executor, session.forward)
    await asyncio.gather(*(batcher.embed(window(SHORT_TOKENS + 1)) for _ in range(3)))
    assert session.batches == [[SHORT_TOKENS + 1]] * 3


async def test_a_failure_reaches_every_caller_of_the_batch(executor: InferenceExecutor) -> None:
    def broken(windows: Sequence[NDArray[np.int32]]) -> NDArray[np.float32]:
        raise ValueError("no")

    batcher = WindowBatcher(executor, broken)
    results = await asyncio.gather(*(batcher.embed(window(3)) for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [ValueError] * 3


async def test_windows_that_nobody_waits_for_any_more_never_reach_the_session() -> None:
    executor, session = InferenceExecutor(threads=1, queue=8), Session()
    batcher = WindowBatcher(executor, session.forward)
    session.hold.clear()
    running = asyncio.create_task(batcher.embed(window(1)))
    assert await asyncio.to_thread(session.started.wait, 10)
    kept, dropped = (asyncio.create_task(batcher.embed(window(length))) for length in (2, 3))
    await _settle()
    dropped.cancel()
    alone = asyncio.create_task(batcher.embed(window(4)))
    await _settle()
    alone.cancel()
    await _settle()
    assert executor.waiting == 1
    session.hold.set()
    assert (await running)[0] == 1
    assert (await kept)[0] == 2
    assert session.batches == [[1], [2]]
    executor.close()


@pytest.mark.parametrize("count", [1, 2, 20])
async def test_no_task_is_left_behind(executor: InferenceExecutor, count: int) -> None:
    batcher = WindowBatcher(executor, Session().forward)
    await asyncio.gather(*(batcher.embed(window(3)) for _ in range(count)))
    await _settle()
    assert asyncio.all_tasks() == {asyncio.current_task()}
