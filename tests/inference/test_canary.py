"""The canary's rounds, one golden vector of each pack at a time."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from router.inference.cache import EmbeddingCache
from router.inference.canary import Canary
from router.inference.encoders import Encoders
from router.inference.executor import InferenceExecutor
from router.inference.ledger import Ledger
from router.inference.open import open_encoders
from router.packs.store import Pack
from router.request.images import ImageLimits

NEVER = 3600.0


@pytest.fixture
def encoders(
    text_pack: Pack, vision_pack: Pack, executor: InferenceExecutor, cache: EmbeddingCache, weights: Path
) -> Encoders:
    return open_encoders(text_pack, vision_pack, executor, cache, ImageLimits(), weights=weights)


async def test_every_golden_vector_passes_in_its_turn(encoders: Encoders, executor: InferenceExecutor) -> None:
    canary = Canary(encoders, executor, NEVER)
    assert [await canary.round(turn) for turn in range(12)] == [[]] * 12


async def test_a_miss_names_pack_stage_and_golden_vector(
    encoders: Encoders, executor: InferenceExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = Canary(encoders, executor, NEVER)
    assert encoders.vision is not None
    forward = encoders.vision.model.forward
    monkeypatch.setattr(encoders.vision.model, "forward", lambda pixels: forward(pixels)[:, ::-1])
    (miss,) = await canary.round(7)
    assert (miss.pack, miss.stage) == ("tiny-vision", "embeddings")
    assert miss.detail.startswith("golden 2 has cosine")


async def test_a_model_that_raises_has_drifted(
    encoders: Encoders, executor: InferenceExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = Canary(encoders, executor, NEVER)

    def broken(windows: Any) -> Any:
        raise MemoryError

    assert encoders.text is not None
    monkeypatch.setattr(encoders.text.model, "forward", broken)
    (miss,) = await canary.round(0)
    assert (miss.pack, miss.stage, miss.detail) == ("starter-text", "embeddings", "a golden input raised MemoryError")


async def test_it_waits_for_an_idle_moment(encoders: Encoders, executor: InferenceExecutor) -> None:
    canary = Canary(encoders, executor, NEVER)
    gate = threading.Event()
    busy = asyncio.create_task(executor.run(gate.wait, 30.0))
    round_ = asyncio.create_task(canary.round(0))
    await asyncio.sleep(0.3)
    assert not executor.idle
    assert not round_.done()
    gate.set()
    await busy
    assert await round_ == []


async def test_an_executor_without_a_place_leaves_the_canary_out(encoders: Encoders) -> None:
    full = InferenceExecutor(threads=1, queue=0)
    canary = Canary(encoders, full, interval=0)
    gate = threading.Event()
    busy = asyncio.create_task(full.run(gate.wait, 30.0))
    await asyncio.sleep(0)
    assert await canary.round(0) == []
    gate.set()
    await busy
    full.close()


async def test_it_watches_until_something_is_missed(
    encoders: Encoders, executor: InferenceExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = Canary(encoders, executor, interval=0.01)
    rounds: list[int] = []
    round_ = canary.round

    async def counted(turn: int) -> Any:
        rounds.append(turn)
        return await round_(turn) if turn < 3 else ["a miss"]

    monkeypatch.setattr(canary, "round", counted)
    assert await canary.watch() == ["a miss"]
    assert rounds == [0, 1, 2, 3]


async def test_each_check_is_entered_with_what_it_saw(encoders: Encoders, executor: InferenceExecutor) -> None:
    ledger = Ledger()
    canary = Canary(encoders, executor, NEVER, ledger)
    assert await canary.round(0) == []
    assert [(last.pack, last.tower) for last in ledger.last()] == [("starter-text", "text"), ("tiny-vision", "vision")]
    assert all(last.cosine is not None and last.cosine > 0.99 for last in ledger.last())


async def test_what_was_left_out_is_not_entered(encoders: Encoders) -> None:
    closed, ledger = InferenceExecutor(threads=1, queue=0), Ledger()
    closed.close()
    assert await Canary(encoders, closed, 0, ledger).round(0) == []
    assert ledger.last() == ()
