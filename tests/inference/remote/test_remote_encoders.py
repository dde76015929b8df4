"""Encoders whose model is at a server: cached, batched, bounded, gated and watched as those of our own."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from stand_in import StandIn, hanging, refusing, saying, standing_in, until, waiting_for, well
from tiny_tower import photo

from router.inference.cache import EmbeddingCache
from router.inference.canary import Canary
from router.inference.encoders import Encoders
from router.inference.executor import InferenceExecutor, Overloaded
from router.inference.gate import check_encoders
from router.inference.ledger import Ledger
from router.inference.open import open_encoders, open_remote
from router.inference.remote.client import RemoteClient
from router.inference.remote.errors import RemoteAnswerError, RemoteTimeoutError, RemoteUnavailableError
from router.inference.text import TextEncoder
from router.inference.text_model import TextModel
from router.inference.vision import VisionEncoder
from router.inference.vision_model import VisionModel
from router.packs.files import PackError
from router.packs.layout import lay_out
from router.packs.store import Pack, open_pack
from router.request.images import ImageLimits
from router.request.view import ImagePart

Opened = Callable[..., Any]


def image(seed: int) -> ImagePart:
    return ImagePart(f"/messages/{seed}", "inline", photo(seed))


@pytest.fixture
async def text_server(text_pack: Pack, weights: Path) -> AsyncIterator[StandIn]:
    async with standing_in(StandIn(lay_out(text_pack, "text", weights) / "text.onnx", well)) as here:
        yield here


@pytest.fixture
async def encoders(
    server: StandIn, opened: Opened, vision_pack: Pack, executor: InferenceExecutor, cache: EmbeddingCache
) -> Encoders:
    session = await opened(server)
    return open_encoders(None, vision_pack, executor, cache, ImageLimits(), remotes={"vision": session})


@pytest.fixture
def vision(encoders: Encoders) -> VisionEncoder:
    assert encoders.vision is not None
    return encoders.vision


@pytest.fixture
async def text(
    text_server: StandIn,
    opened: Opened,
    text_pack: Pack,
    weights: Path,
    executor: InferenceExecutor,
    cache: EmbeddingCache,
) -> TextEncoder:
    session = await opened(text_server, text_pack, "text")
    limits = ImageLimits()
    found = open_encoders(text_pack, None, executor, cache, limits, weights=weights, remotes={"text": session}).text
    assert found is not None
    return found


async def test_an_image_means_the_same_and_is_asked_for_once(
    vision: VisionEncoder, vision_model: VisionModel, server: StandIn
) -> None:
    rows = await asyncio.gather(*(vision.embed(image(1)) for _ in range(5)))
    np.testing.assert_allclose(rows[0], vision_model.encode(photo(1)), atol=1e-6)
    await vision.embed(image(1))
    assert server.inferred == 1
    assert vision.remote is not None
    assert vision.remote.client.ends == {"answered": 1}


async def test_short_texts_go_together_and_mean_the_same(
    text: TextEncoder, text_model: TextModel, text_server: StandIn
) -> None:
    texts = [f"a question about number {index}" for index in range(11)]
    rows = await text.embed(texts)
    for row, one in zip(rows, texts, strict=True):
        window = text_model.window(text_model.tokenise(one), 0)
        np.testing.assert_allclose(row, text_model.forward([window])[0], atol=1e-5)
    assert sorted(text_server.rows) == [3, 8]


async def test_every_window_of_a_long_text_is_asked_for(
    text: TextEncoder, text_model: TextModel, text_server: StandIn
) -> None:
    long = " ".join(f"the quick brown fox jumps over lazy dog number {number}" for number in range(100))
    found = await text.embed_windows(long)
    tokens = text_model.tokenise(long)
    assert found.spans == tokens.spans
    assert len(found.spans) > 2
    for index, row in enumerate(found.embeddings):
        np.testing.assert_allclose(row, text_model.forward([text_model.window(tokens, index)])[0], atol=1e-5)
    assert text_server.rows == [1] * len(found.spans)


async def test_no_more_rows_go_in_a_call_than_the_policy_says(
    text_server: StandIn, opened: Opened, text_pack: Pack, weights: Path, executor: InferenceExecutor, cache: Any
) -> None:
    session = await opened(text_server, text_pack, "text", batch=2)
    encoders = open_encoders(
        text_pack, None, executor, cache, ImageLimits(), weights=weights, remotes={"text": session}
    )
    assert encoders.text is not None
    await encoders.text.embed([f"number {index}" for index in range(7)])
    assert await asyncio.to_thread(check_encoders, encoders) == []
    assert max(text_server.rows) == 2


async def test_a_remote_model_takes_no_thread_of_those_that_run_models(
    vision: VisionEncoder, server: StandIn, executor: InferenceExecutor
) -> None:
    free = asyncio.Event()
    server.behaves = waiting_for(free)
    asked = [asyncio.create_task(vision.embed(image(index))) for index in range(4)]
    await until(lambda: server.running == 4)
    assert executor.idle
    assert vision.remote is not None
    assert vision.remote.lane.running == 4
    free.set()
    await asyncio.gather(*asked)


async def test_what_nobody_wants_any_more_is_ended(vision: VisionEncoder, server: StandIn) -> None:
    server.behaves = hanging
    asked = [asyncio.create_task(vision.embed(image(1))) for _ in range(3)]
    await until(lambda: server.running == 1)
    asked[0].cancel()
    asked[1].cancel()
    await asyncio.gather(*asked[:2], return_exceptions=True)
    assert server.running == 1
    asked[2].cancel()
    await asyncio.gather(asked[2], return_exceptions=True)
    await until(lambda: server.cancelled == 1)


async def test_what_failed_is_not_remembered(vision: VisionEncoder, server: StandIn) -> None:
    server.behaves = refusing(grpc.StatusCode.RESOURCE_EXHAUSTED)
    with pytest.raises(Overloaded):
        await vision.embed(image(1))
    server.behaves = saying(lambda rows: rows * np.nan)
    with pytest.raises(RemoteAnswerError):
        await vision.embed(image(1))
    server.behaves = well
    assert np.isfinite(await vision.embed(image(1))).all()


async def test_the_gate_goes_over_the_wire(encoders: Encoders, text: TextEncoder, server: StandIn) -> None:
    ledger = Ledger()
    both = Encoders(text, encoders.vision)
    assert await asyncio.to_thread(check_encoders, both, ledger) == []
    worst = {each.tower: each.cosine for each in ledger.last()}
    assert worst["text"] is not None
    assert worst["text"] >= 0.99999
    assert worst["vision"] is not None
    assert worst["vision"] >= 0.99999
    assert 4 in server.rows


async def test_a_drifted_remote_is_a_miss(encoders: Encoders, server: StandIn) -> None:
    noise = np.random.default_rng(1).normal(size=8).astype(np.float32) / 5
    server.behaves = saying(lambda rows: (rows + noise).astype(np.float32))
    misses = await asyncio.to_thread(check_encoders, encoders)
    assert {miss.stage for miss in misses} == {"embeddings"}
    assert "at least 0.99999 is asked" in str(misses[0])


async def test_a_model_that_minds_its_neighbours_is_a_miss(encoders: Encoders, server: StandIn) -> None:
    def mixed(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.ascontiguousarray(rows + 0.3 * rows[::-1]).astype(np.float32)

    server.behaves = saying(mixed)
    misses = await asyncio.to_thread(check_encoders, encoders)
    assert {miss.stage for miss in misses} == {"batch"}


async def test_an_answer_of_another_shape_is_a_miss_that_says_so(encoders: Encoders, server: StandIn) -> None:
    server.behaves = saying(lambda rows: rows[:, :4].copy())
    [miss] = await asyncio.to_thread(check_encoders, encoders)
    assert "answers with a tensor [1, 4] where [1, 8]" in str(miss)


@pytest.mark.parametrize("code", ["UNAVAILABLE", "INTERNAL", "RESOURCE_EXHAUSTED"])
async def test_a_server_that_does_not_answer_has_not_drifted(encoders: Encoders, server: StandIn, code: str) -> None:
    server.behaves = refusing(grpc.StatusCode[code])
    with pytest.raises(Exception) as caught:
        await asyncio.to_thread(check_encoders, encoders)
    assert type(caught.value).__name__ in ("RemoteUnavailableError", "RemoteRefusedError", "Overloaded")


async def test_the_canary_looks_through_the_wire(
    encoders: Encoders, executor: InferenceExecutor, server: StandIn
) -> None:
    canary = Canary(encoders, executor, 600)
    assert await canary.round(0) == []
    server.behaves = saying(lambda rows: np.ascontiguousarray(rows[:, ::-1]))
    assert {miss.stage for miss in await canary.round(1)} == {"embeddings"}
    assert executor.done == 0


@pytest.mark.parametrize("fault", ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "hangs"])
async def test_the_canary_does_not_take_an_outage_for_drift(
    encoders: Encoders, executor: InferenceExecutor, server: StandIn, fault: str
) -> None:
    assert encoders.vision is not None
    assert encoders.vision.remote is not None
    if fault == "hangs":
        encoders.vision.remote.client.server = server.server(timeout=0.2)
    server.behaves = hanging if fault == "hangs" else refusing(grpc.StatusCode[fault])
    assert await Canary(encoders, executor, 600).round(0) == []


async def test_a_thread_that_asks_is_told_of_a_timeout(vision: VisionEncoder, server: StandIn) -> None:
    assert vision.remote is not None
    vision.remote.client.server = server.server(timeout=0.2)
    server.behaves = hanging
    pixels = vision.model.preprocess(photo(1))[None]
    with pytest.raises(RemoteTimeoutError):
        await asyncio.to_thread(vision.model.forward, pixels)


async def test_no_graph_need_lie_here(
    vision_folder: Path, server: StandIn, opened: Opened, executor: InferenceExecutor, cache: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "pack"
    shutil.copytree(vision_folder, folder)
    (folder / "vision.onnx").unlink()
    with pytest.raises(PackError, match=r"vision\.onnx is missing"):
        open_pack(str(folder), "vision", tmp_path)
    pack = open_pack(str(folder), "vision", tmp_path, {"vision"})
    session = await opened(server, pack)
    encoders = open_encoders(None, pack, executor, cache, ImageLimits(), remotes={"vision": session})
    assert await asyncio.to_thread(check_encoders, encoders) == []


async def test_of_a_text_pack_only_the_tokenizer_is_laid_out(text_pack: Pack, tmp_path: Path) -> None:
    place = lay_out(text_pack, "text", tmp_path, elsewhere=True)
    assert [path.name for path in place.rglob("*") if path.is_file()] == ["tokenizer.json"]


async def test_a_classifier_is_run_here(text_pack: Pack) -> None:
    loop = asyncio.get_running_loop()
    with pytest.raises(PackError, match="has no classifier"):
        await asyncio.to_thread(open_remote, text_pack, "classifier", StandIn.server, loop)


async def test_a_session_that_could_not_be_opened_leaves_nothing_behind(
    server: StandIn, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.ready = False
    closed: list[RemoteClient] = []
    close = RemoteClient.close

    async def noted(client: RemoteClient) -> None:
        await close(client)
        closed.append(client)

    monkeypatch.setattr(RemoteClient, "close", noted)
    with pytest.raises(RemoteUnavailableError):
        await opened(server, retries=0)
    await until(lambda: len(closed) == 1)
