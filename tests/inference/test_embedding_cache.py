from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from numpy.typing import NDArray

from router.inference.cache import ENTRY_OVERHEAD, CacheKey, EmbeddingCache, Tally

Row = NDArray[np.uint8]


def key(content: str) -> CacheKey:
    return CacheKey("pack", "window", content)


def row(size: int) -> Row:
    return np.zeros(size, dtype=np.uint8)


class Source:
    """Computations that end when they are told to."""

    def __init__(self) -> None:
        self.started = 0
        self.cancelled = 0
        self.result: asyncio.Future[Row] = asyncio.get_running_loop().create_future()

    async def __call__(self) -> Row:
        self.started += 1
        try:
            return await asyncio.shield(self.result)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_second_asker_gets_the_same_object_without_computing() -> None:
    cache, source = EmbeddingCache(10_000), Source()
    source.result.set_result(row(5))
    assert await cache.get(key("a"), source) is await cache.get(key("a"), source)
    assert source.started == 1


async def test_keys_differ_by_pack_stage_and_content() -> None:
    cache = EmbeddingCache(100_000)
    for each in (CacheKey("p", "s", "c"), CacheKey("q", "s", "c"), CacheKey("p", "t", "c"), CacheKey("p", "s", "d")):
        source = Source()
        source.result.set_result(row(1))
        await cache.get(each, source)
        assert source.started == 1


async def test_askers_at_the_same_time_share_one_computation() -> None:
    cache, source = EmbeddingCache(10_000), Source()
    askers = [asyncio.create_task(cache.get(key("a"), source)) for _ in range(3)]
    await _settle()
    source.result.set_result(row(5))
    assert len({id(value) for value in await asyncio.gather(*askers)}) == 1
    assert source.started == 1


async def test_a_cancelled_asker_does_not_take_the_others_answer() -> None:
    cache, source = EmbeddingCache(10_000), Source()
    first, second = (asyncio.create_task(cache.get(key("a"), source)) for _ in range(2))
    await _settle()
    first.cancel()
    await _settle()
    source.result.set_result(row(5))
    assert len(await second) == 5
    assert (source.started, source.cancelled) == (1, 0)


async def test_work_that_nobody_waits_for_is_cancelled_and_asked_anew_later() -> None:
    cache, source = EmbeddingCache(10_000), Source()
    askers = [asyncio.create_task(cache.get(key("a"), source)) for _ in range(2)]
    await _settle()
    for asker in askers:
        asker.cancel()
    later = asyncio.create_task(cache.get(key("a"), source))
    await _settle()
    assert (source.started, source.cancelled) == (2, 1)
    source.result.set_result(row(5))
    assert len(await later) == 5


async def test_a_failure_reaches_all_askers_and_is_not_kept() -> None:
    cache, source = EmbeddingCache(10_000), Source()
    askers = [asyncio.create_task(cache.get(key("a"), source)) for _ in range(2)]
    await _settle()
    source.result.set_exception(ValueError("no"))
    assert [type(each) for each in await asyncio.gather(*askers, return_exceptions=True)] == [ValueError] * 2
    healthy = Source()
    healthy.result.set_result(row(5))
    assert len(await cache.get(key("a"), healthy)) == 5


async def test_least_recently_used_goes_first() -> None:
    cache = EmbeddingCache(3 * (ENTRY_OVERHEAD + 10))

    async def put(name: str) -> bool:
        """Whether it had to be computed."""
        source = Source()
        source.result.set_result(row(10))
        await cache.get(key(name), source)
        return source.started == 1

    assert [await put(name) for name in "abc"] == [True] * 3
    assert not await put("a")
    assert await put("d")
    assert [await put(name) for name in "acd"] == [False] * 3
    assert await put("b")


async def test_a_value_larger_than_the_cache_is_given_but_not_kept() -> None:
    cache, source = EmbeddingCache(1_000), Source()
    source.result.set_result(row(5_000))
    assert len(await cache.get(key("a"), source)) == 5_000
    assert (len(cache), cache.nbytes) == (0, 0)


class CacheMachine(RuleBasedStateMachine):
    """Any order of asking, finishing, failing and leaving."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.cache = EmbeddingCache(4_000)
        self.open: dict[str, asyncio.Future[Row]] = {}
        self.running: Counter[str] = Counter()
        self.askers: list[tuple[str, asyncio.Task[Any]]] = []
        self.asked = self.computed = 0

    def settle(self) -> None:
        self.loop.run_until_complete(_settle())
        answered = [task for _, task in self.askers if task.done()]
        assert all(task.exception() is None or isinstance(task.exception(), ValueError) for task in answered)
        self.askers = [(name, task) for name, task in self.askers if not task.done()]

    async def compute(self, name: str) -> Row:
        self.running[name] += 1
        self.computed += 1
        self.open[name] = future = self.loop.create_future()
        try:
            return await future
        finally:
            self.running[name] -= 1
            if self.open.get(name) is future:
                del self.open[name]

    @rule(name=st.sampled_from("abcdef"))
    def ask(self, name: str) -> None:
        task = self.loop.create_task(self.cache.get(key(name), lambda: self.compute(name)))
        self.askers.append((name, task))
        self.asked += 1
        self.settle()

    @precondition(lambda self: self.open)
    @rule(data=st.data(), size=st.integers(0, 5_000))
    def finish(self, data: st.DataObject, size: int) -> None:
        self.open[data.draw(st.sampled_from(sorted(self.open)))].set_result(row(size))
        self.settle()

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        self.open[data.draw(st.sampled_from(sorted(self.open)))].set_exception(ValueError("no"))
        self.settle()

    @precondition(lambda self: self.askers)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        _, task = self.askers.pop(data.draw(st.integers(0, len(self.askers) - 1)))
        task.cancel()
        self.settle()

    @invariant()
    def keeps_no_more_bytes_than_allowed(self) -> None:
        assert 0 <= self.cache.nbytes <= 4_000
        assert self.cache.nbytes >= len(self.cache) * ENTRY_OVERHEAD

    @invariant()
    def computes_exactly_what_somebody_waits_for_once(self) -> None:
        waited_for = {name for name, _ in self.askers}
        assert {name: count for name, count in self.running.items() if count} == dict.fromkeys(waited_for, 1)

    @invariant()
    def tells_what_it_keeps_and_what_it_was_asked(self) -> None:
        tally = self.cache.tallies().get("window", Tally())
        assert (tally.entries, tally.nbytes) == (len(self.cache), self.cache.nbytes)
        assert (tally.hits + tally.joined + tally.misses, tally.misses) == (self.asked, self.computed)

    def teardown(self) -> None:
        for _, task in self.askers:
            task.cancel()
        self.loop.run_until_complete(_settle())
        self.loop.close()


TestCacheMachine = CacheMachine.TestCase


@pytest.mark.parametrize("content", ["digest", b"digest"])
async def test_text_and_byte_digests_are_keys(content: str | bytes) -> None:
    cache, source = EmbeddingCache(10_000), Source()
    source.result.set_result(row(1))
    await cache.get(CacheKey("p", "s", content), source)
    await cache.get(CacheKey("p", "s", content), source)
    assert source.started == 1
