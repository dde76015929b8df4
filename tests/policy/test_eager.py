from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.policy.eager import Done, Waits, begin


async def work(steps: list[str], log: list[str]) -> str:
    """Does what the steps say; what happens to it goes to the log."""
    for step in steps:
        try:
            if step == "turn":
                await asyncio.sleep(0)
            elif step == "wait":
                await asyncio.sleep(0.001)
            elif step == "task":
                await asyncio.create_task(asyncio.sleep(0))
            elif step == "raise":
                raise ValueError(step)
            elif step == "late":
                async with asyncio.timeout(0):
                    await asyncio.sleep(10)
        except TimeoutError:
            log.append("timeout")
        log.append(step)
    return "done"


async def outcome(steps: list[str], eager: bool) -> tuple[list[str], str]:
    log: list[str] = []
    try:
        if not eager:
            return log, await work(steps, log)
        begun = begin(work(steps, log))
        return log, begun.value if isinstance(begun, Done) else await begun
    except ValueError as error:
        return log, f"raised {error}"


@given(st.lists(st.sampled_from(["plain", "turn", "wait", "task", "raise", "late"]), max_size=5))
async def test_what_is_begun_ends_as_what_is_awaited(steps: list[str]) -> None:
    assert await outcome(steps, eager=True) == await outcome(steps, eager=False)


async def test_what_does_not_wait_is_done_at_once() -> None:
    assert begin(work(["plain"], [])) == Done("done")


@pytest.mark.parametrize("steps", [["turn", "wait"], ["wait"], ["task"]])
async def test_what_waits_is_cancelled_with_who_awaits_it(steps: list[str]) -> None:
    ended = []

    async def held() -> None:
        try:
            await work([*steps, *["wait"] * 10_000], [])
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def run() -> None:
        begun = begin(held())
        assert isinstance(begun, Waits)
        await begun

    task = asyncio.create_task(run())
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cancelled"]


async def test_a_deadline_around_what_waits_ends_it() -> None:
    begun = begin(work(["wait"] * 10_000, []))
    assert isinstance(begun, Waits)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await begun
