from __future__ import annotations

import asyncio

import pytest

from router.extproc.afterwards import Afterwards, idle_within
from router.inference.executor import InferenceExecutor


class Jobs:
    """What was done, and what was given up."""

    def __init__(self, count: int = 2, seconds: float = 60.0) -> None:
        self.done: list[str] = []
        self.left: list[tuple[str, str]] = []
        self.gate = asyncio.Event()
        self.running = 0
        self.afterwards: Afterwards[str] = Afterwards(self.work, self.gave_up, count, seconds)

    async def work(self, job: str) -> None:
        self.running += 1
        assert self.running == 1
        try:
            if job == "broken":
                raise ValueError("content")
            if job == "slow":
                await asyncio.Event().wait()
            await self.gate.wait()
            self.done.append(job)
        finally:
            self.running -= 1

    def gave_up(self, job: str, error: Exception | None) -> None:
        self.left.append((job, type(error).__name__))


async def test_work_is_done_one_after_the_other_and_what_finds_no_room_is_left() -> None:
    jobs = Jobs()
    assert [jobs.afterwards.offer(name, 1) for name in ("a", "b", "c")] == [True, True, False]
    jobs.gate.set()
    await jobs.afterwards.settled()
    assert jobs.afterwards.offer("d", 1)
    await jobs.afterwards.settled()
    assert jobs.done == ["a", "b", "d"]


async def test_bytes_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.extproc.afterwards.WAITING_BYTES", 10)
    jobs = Jobs(count=100)
    assert [jobs.afterwards.offer(name, size) for name, size in (("a", 6), ("b", 6), ("c", 4))] == [True, False, True]
    jobs.gate.set()
    await jobs.afterwards.settled()
    assert jobs.afterwards.offer("d", 10)
    await jobs.afterwards.settled()
    assert jobs.done == ["a", "c", "d"]


async def test_what_fails_or_takes_too_long_is_told_and_the_next_is_done(caplog: pytest.LogCaptureFixture) -> None:
    jobs = Jobs(count=3, seconds=0.05)
    jobs.gate.set()
    for name in ("broken", "slow", "a"):
        jobs.afterwards.offer(name, 1)
    await jobs.afterwards.settled()
    assert jobs.done == ["a"]
    assert jobs.left == [("broken", "ValueError"), ("slow", "TimeoutError")]
    assert not [one for one in caplog.records if "content" in str(one.__dict__["fields"])]


async def test_what_waits_when_it_is_closed_is_told() -> None:
    jobs = Jobs(count=3)
    for name in ("a", "b"):
        jobs.afterwards.offer(name, 1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    jobs.afterwards.close()
    await jobs.afterwards.settled()
    assert sorted(jobs.left) == [("a", "NoneType"), ("b", "NoneType")]
    assert not jobs.afterwards.offer("c", 1)


async def test_models_that_have_nothing_to_do_are_not_waited_for() -> None:
    executor = InferenceExecutor(1, 1)
    assert await idle_within(executor, 0)
    executor.close()
