from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

import pytest

from router.extproc.courtesy import QUIET_SECONDS, Courtesy
from router.inference.executor import InferenceExecutor

LONG = math.inf


async def until(there: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not there():  # noqa: ASYNC110 - of nothing that tells
            await asyncio.sleep(0)


class Street:
    """Where requests are, or are not."""

    def __init__(self) -> None:
        self.quiet_for = LONG
        self.courtesy = Courtesy()
        self.courtesy.attend(self.look)
        self.looks = 0

    def look(self) -> float:
        self.looks += 1
        return self.quiet_for

    async def looked(self, times: int = 3) -> None:
        seen = self.looks
        await until(lambda: self.looks >= seen + times)


async def test_no_step_begins_while_there_are_requests() -> None:
    street = Street()
    steps: list[int] = []
    answer = asyncio.get_running_loop().create_future()

    async def work() -> str:
        steps.append(1)
        await asyncio.sleep(0)
        steps.append(2)
        said: str = await answer
        steps.append(3)
        return said

    street.quiet_for = 0.0
    doing = asyncio.create_task(street.courtesy.step_by_step(work()))
    await street.looked()
    assert steps == []
    street.quiet_for = QUIET_SECONDS
    await until(lambda: steps == [1, 2])
    street.quiet_for = QUIET_SECONDS / 2
    answer.set_result("done")
    await street.looked()
    assert steps == [1, 2]
    street.quiet_for = LONG
    assert await doing == "done"
    assert steps == [1, 2, 3]


@pytest.mark.parametrize("where", ["before", "within", "between"])
async def test_work_that_is_cancelled_ends_at_once_also_where_it_gives_way(where: str) -> None:
    street = Street()
    ended: list[str] = []
    answer = asyncio.get_running_loop().create_future()

    async def work() -> None:
        try:
            await answer
        finally:
            ended.append("work")

    street.quiet_for = 0.0 if where == "before" else LONG
    doing = asyncio.create_task(street.courtesy.step_by_step(work()))
    await street.looked(1)
    if where == "between":
        street.quiet_for = 0.0
        answer.set_result(None)
        await street.looked()
    doing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doing
    assert ended == ([] if where == "before" else ["work"])


async def test_what_the_work_raises_and_its_own_time_limits_are_its_own() -> None:
    street = Street()

    async def broken() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    async def slow() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return "late"
        return "never"

    with pytest.raises(ZeroDivisionError):
        await street.courtesy.step_by_step(broken())
    assert await street.courtesy.step_by_step(slow()) == "late"


async def test_a_turn_is_not_waited_for_longer_than_was_said() -> None:
    street = Street()
    assert await street.courtesy.turn(0.005)
    street.quiet_for = 0.0
    assert not await street.courtesy.turn(0.005)


async def test_jobs_of_the_work_wait_behind_those_of_requests() -> None:
    executor = InferenceExecutor(1, 4)
    done: list[str] = []
    begin = asyncio.Event()
    first = asyncio.create_task(executor.ask(begin.wait))
    await until(lambda: executor.running == 1)
    behind = asyncio.create_task(Courtesy().step_by_step(executor.run(done.append, "behind")))
    await until(lambda: executor.waiting == 1)
    ahead = asyncio.create_task(executor.run(done.append, "ahead"))
    await until(lambda: executor.waiting == 2)
    begin.set()
    await asyncio.gather(first, behind, ahead)
    assert done == ["ahead", "behind"]
    executor.close()
