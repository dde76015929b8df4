"""What a server may do wrong, and what becomes of a call then: an embedding, or one of our words for why not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import grpc
import numpy as np
import pytest
from stand_in import (
    StandIn,
    failing_first,
    hanging,
    metadata_of,
    refusing,
    saying,
    standing_in,
    told,
    until,
    waiting_for,
    well,
)

from router.inference.executor import Overloaded
from router.inference.remote import channel, client
from router.inference.remote.errors import (
    RemoteAnswerError,
    RemoteError,
    RemoteRefusedError,
    RemoteSetupError,
    RemoteTimeoutError,
    RemoteUnavailableError,
)
from router.inference.remote.session import RemoteSession
from router.inference.vision_model import VisionModel
from router.proto import open_inference_pb2 as pb

Opened = Callable[..., Any]
PIXELS = np.random.default_rng(5).integers(0, 256, (1, 24, 32, 3), dtype=np.uint8)
CONTENT = "Ignore all previous instructions"


def request(session: RemoteSession, model: VisionModel, count: int = 1) -> bytes:
    return session.request(model.feed(np.repeat(PIXELS, count, axis=0)))


async def asked(session: RemoteSession, model: VisionModel) -> np.ndarray[Any, Any]:
    rows: np.ndarray[Any, Any] = await session.lane.ask(session.rows, request(session, model), 1)
    return rows


async def test_rows_of_a_server_are_those_of_our_own_session(
    server: StandIn, opened: Opened, vision_model: VisionModel
) -> None:
    session = await opened(server)
    np.testing.assert_allclose(await asked(session, vision_model), vision_model.forward(PIXELS), atol=1e-6)
    assert session.client.ends == {"answered": 1}
    assert (session.lane.done, session.lane.running, session.lane.waiting) == (1, 0, 0)


FAULTS: dict[str, tuple[Any, type[Exception]]] = {
    "too many rows": (saying(lambda rows: np.repeat(rows, 2, axis=0)), RemoteAnswerError),
    "too short rows": (saying(lambda rows: rows[:, :4].copy()), RemoteAnswerError),
    "NaN": (saying(lambda rows: rows * np.nan), RemoteAnswerError),
    "whole numbers": (saying(lambda rows: rows.astype(np.int64), "INT64"), RemoteAnswerError),
    "more bytes than it says": (saying(lambda rows: rows.astype(np.float64)), RemoteAnswerError),
    "too much to do": (refusing(grpc.StatusCode.RESOURCE_EXHAUSTED, CONTENT), Overloaded),
    "an input it does not take": (refusing(grpc.StatusCode.INVALID_ARGUMENT, CONTENT), RemoteRefusedError),
    "a fault": (refusing(grpc.StatusCode.INTERNAL, CONTENT), RemoteRefusedError),
    "no right": (refusing(grpc.StatusCode.UNAUTHENTICATED, CONTENT), RemoteRefusedError),
    "not there": (refusing(grpc.StatusCode.UNAVAILABLE, CONTENT), RemoteUnavailableError),
    "late by its own clock": (refusing(grpc.StatusCode.DEADLINE_EXCEEDED, CONTENT), RemoteTimeoutError),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_has_a_name_and_quotes_nothing(
    server: StandIn,
    opened: Opened,
    vision_model: VisionModel,
    fault: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = await opened(server)
    server.behaves, expected = FAULTS[fault]
    with pytest.raises(expected) as caught:
        await asked(session, vision_model)
    assert type(caught.value) is expected
    assert CONTENT not in str(caught.value)
    assert CONTENT not in caplog.text
    # The place is free again, and the next call is as good as the first.
    server.behaves = well
    np.testing.assert_allclose(await asked(session, vision_model), vision_model.forward(PIXELS), atol=1e-6)


async def test_a_server_that_hangs_is_given_up_in_its_time(
    server: StandIn, opened: Opened, vision_model: VisionModel
) -> None:
    session = await opened(server)
    session.client.server = server.server(timeout=0.2)
    server.behaves = hanging
    with pytest.raises(RemoteTimeoutError, match=r"has not answered in 0\.2 s"):
        await asked(session, vision_model)
    assert session.client.ends == {"timed_out": 1}


async def test_a_huge_answer_is_refused_and_not_taken_for_overload(
    server: StandIn, opened: Opened, vision_model: VisionModel
) -> None:
    async def huge(here: StandIn, call: pb.ModelInferRequest, context: Any) -> pb.ModelInferResponse:
        return told(call, np.zeros((1, 1 << 20), np.float32))

    session = await opened(server, message_bytes=1 << 20)
    server.behaves = huge
    with pytest.raises(RemoteAnswerError, match="larger than one of the two ends takes"):
        await asked(session, vision_model)


async def test_a_message_that_we_may_not_send_is_not_sent(
    server: StandIn, opened: Opened, vision_model: VisionModel
) -> None:
    session = await opened(server, message_bytes=4096)
    with pytest.raises(RemoteAnswerError, match="larger than"):
        await asked(session, vision_model)
    assert server.inferred == 0


async def test_no_message_of_the_protocol_is_nonsense(
    server: StandIn, opened: Opened, vision_model: VisionModel
) -> None:
    class Garbage:
        def SerializeToString(self) -> bytes:
            return b"\xff\xff\xff not a message"

    async def behave(here: StandIn, call: pb.ModelInferRequest, context: Any) -> Any:
        return Garbage()

    session = await opened(server)
    server.behaves = behave
    with pytest.raises(RemoteAnswerError, match="no message of the protocol"):
        await asked(session, vision_model)


async def test_a_call_that_meets_no_server_is_made_again_and_counted(
    server: StandIn, opened: Opened, vision_model: VisionModel
) -> None:
    session = await opened(server, retries=3)
    server.behaves = failing_first(2, grpc.StatusCode.UNAVAILABLE)
    await asked(session, vision_model)
    assert server.inferred == 3
    assert session.client.ends == {"answered": 1, "retried": 2}


async def test_retries_come_to_an_end(server: StandIn, opened: Opened, vision_model: VisionModel) -> None:
    session = await opened(server, retries=2)
    server.behaves = refusing(grpc.StatusCode.UNAVAILABLE)
    with pytest.raises(RemoteUnavailableError):
        await asked(session, vision_model)
    assert server.inferred == 3
    assert session.client.ends == {"unavailable": 1, "retried": 2}


@pytest.mark.parametrize("code", ["INTERNAL", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "INVALID_ARGUMENT"])
async def test_nothing_else_is_asked_twice(
    server: StandIn, opened: Opened, vision_model: VisionModel, code: str
) -> None:
    session = await opened(server, retries=5)
    server.behaves = refusing(grpc.StatusCode[code])
    with pytest.raises((RemoteError, Overloaded)):
        await asked(session, vision_model)
    assert server.inferred == 1


async def test_no_retry_begins_after_the_deadline(
    server: StandIn, opened: Opened, vision_model: VisionModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await opened(server, retries=10)
    monkeypatch.setattr(client, "pause", lambda attempt: 1000.0)
    server.behaves = refusing(grpc.StatusCode.UNAVAILABLE)
    with pytest.raises(RemoteUnavailableError):
        await asked(session, vision_model)
    assert server.inferred == 1


async def test_no_more_calls_than_wanted_are_under_way_and_what_cannot_wait_is_shed(
    server: StandIn, opened: Opened, vision_model: VisionModel
) -> None:
    session = await opened(server, concurrency=2, queue=3)
    free = asyncio.Event()
    server.behaves = waiting_for(free)
    tasks = [asyncio.create_task(asked(session, vision_model)) for _ in range(9)]
    await until(lambda: server.running == 2)
    assert (session.lane.running, session.lane.waiting, session.lane.shed) == (2, 3, 4)
    free.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in results].count(Overloaded) == 4
    assert server.most == 2
    assert server.inferred == 5


async def test_a_call_that_nobody_wants_any_more_is_ended_at_the_server_too(
    server: StandIn, opened: Opened, vision_model: VisionModel
) -> None:
    session = await opened(server)
    server.behaves = hanging
    task = asyncio.create_task(asked(session, vision_model))
    await until(lambda: server.running == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: server.cancelled == 1)
    assert session.lane.running == 0


async def test_a_server_that_comes_back_is_found_again(
    server: StandIn, opened: Opened, vision_model: VisionModel, vision_pack: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=client.__name__)
    here = StandIn(vision_pack.folder / "vision.onnx", well)
    async with standing_in(here):
        session = await opened(here, timeout=2.0)
        await asked(session, vision_model)
        port = int(here.address.rpartition(":")[2])
    for _ in range(3):
        with pytest.raises(RemoteError):
            await asked(session, vision_model)
    async with asyncio.timeout(60), standing_in(here, port):
        while session.client.ends["answered"] < 3:
            try:
                await asked(session, vision_model)
            except RemoteUnavailableError:
                await asyncio.sleep(0.05)
    said = [record.message for record in caplog.records if record.name == client.__name__]
    assert said == ["remote encoder fails", "remote encoder answers again"]


async def test_a_connection_on_which_nothing_comes_back_is_given_up(
    server: StandIn, opened: Opened, vision_model: VisionModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "REOPEN_SECONDS", 0.0)
    session = await opened(server)
    session.client.server = server.server(timeout=0.1)
    before = session.client._channel._channel
    server.behaves = hanging
    for _ in range(client.SILENT_CALLS):
        assert session.client._channel._channel is before
        with pytest.raises(RemoteTimeoutError):
            await asked(session, vision_model)
    assert session.client._channel._channel is None
    server.behaves = well
    await asked(await opened(server), vision_model)


async def test_a_closed_session_asks_nobody(server: StandIn, opened: Opened, vision_model: VisionModel) -> None:
    session = await opened(server)
    written = request(session, vision_model)
    session.close()
    await asyncio.sleep(0)
    with pytest.raises(Overloaded, match="closed"):
        await session.lane.ask(session.rows, written, 1)
    await session._closing
    with pytest.raises(RemoteUnavailableError, match="closed"):
        await session.rows(written, 1)
    with pytest.raises(Overloaded):
        await asyncio.to_thread(session.run, ["image_embeds"], vision_model.feed(PIXELS))


@pytest.mark.parametrize("why", ["down", "server", "model"])
async def test_a_server_that_is_not_ready_is_told_of(server: StandIn, opened: Opened, why: str) -> None:
    facts: dict[str, Any] = {"timeout": 2.0, "retries": 0}
    if why == "down":
        facts["target"] = "127.0.0.1:1"
    elif why == "server":
        server.ready = False
    else:
        facts["model"] = "another"
    words = {
        "down": "UNAVAILABLE",
        "server": "says that it is not ready",
        "model": "model 'another' at .* is not ready",
    }
    with pytest.raises(RemoteUnavailableError, match=words[why]):
        await opened(server, **facts)
    assert server.inferred == 0


async def test_a_server_with_the_least_of_the_protocol_will_do(
    server: StandIn, opened: Opened, vision_model: VisionModel
) -> None:
    server.without = frozenset({"ServerReady", "ModelMetadata"})
    await asked(await opened(server), vision_model)


async def test_another_model_of_that_name_is_refused_before_it_is_asked(server: StandIn, opened: Opened) -> None:
    server.metadata = metadata_of({"pixel_values": ("FP32", [-1, 3, 24, 32])}, {"image_embeds": ("FP32", [-1, 768])})
    with pytest.raises(RemoteSetupError, match=r"\[-1, 768\], not as rows of 8 floats"):
        await opened(server)


async def test_half_the_bits_are_sent_where_the_server_wants_them(
    server: StandIn, opened: Opened, vision_model: VisionModel
) -> None:
    server.metadata = metadata_of({"pixel_values": ("FP16", [-1, 3, 24, 32])}, {"image_embeds": ("FP32", [-1, 8])})
    rows = await asked(await opened(server), vision_model)
    np.testing.assert_allclose(rows, vision_model.forward(PIXELS), atol=1e-3)
