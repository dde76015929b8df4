"""Traffic comes first: how many requests are explained at a time, and when none is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.config.load import parse_policy
from router.extproc.inspection import explaining
from router.extproc.inspection.explaining import AT_ONCE, Explainer
from router.extproc.readiness import Door, NotReadyError
from router.extproc.room import Room
from router.extproc.unary import RefusedError
from router.proto.pointsman.v1 import explain_pb2 as pb
from router.request.errors import RequestError

POLICY = b"version: 1\nupstreams: [{model: m, cluster: c}]\ndefault_model: m\n"
ASKED = pb.ExplainRequest(body=b"{}")


class SlowPipeline:
    """Judges once it is let."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.judged = 0
        self.entered: asyncio.Queue[None] = asyncio.Queue()

    async def judge_body(self, *_: object) -> Any:
        self.judged += 1
        self.entered.put_nowait(None)
        await self.go.wait()
        raise RequestError(400, "enough", "That is enough.")


class StubDoor:
    """Open, or shut."""

    def __init__(self, is_open: bool = True) -> None:
        self.is_open = is_open
        self.inside = 0

    @contextlib.contextmanager
    def judging(self) -> Iterator[None]:
        if not self.is_open:
            raise NotReadyError
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1


@pytest.fixture
def waiting() -> SimpleNamespace:
    """The executor: how many jobs of traffic wait."""
    return SimpleNamespace(waiting=0)


@pytest.fixture
def house(tmp_path: Any, waiting: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(explaining, "QUIET_SECONDS", 0.05)
    loaded = parse_policy(POLICY, tmp_path / "policy.yaml")
    machinery = SimpleNamespace(executor=waiting, parsing=None)
    return SimpleNamespace(loaded=loaded, machinery=machinery, pipeline=SlowPipeline())


def explainer(house: Any, door: Any = None, room: Room | None = None) -> Explainer:
    return Explainer(door or StubDoor(), lambda: house, room or Room())


async def code(asked: Any) -> str:
    with pytest.raises(RefusedError) as caught:
        await asked
    return caught.value.code


async def test_a_third_is_refused_while_two_are_explained_and_taken_after(house: Any) -> None:
    door = StubDoor()
    one = explainer(house, door)
    running = [asyncio.create_task(one.explain(ASKED)) for _ in range(AT_ONCE)]
    for _ in range(AT_ONCE):
        await house.pipeline.entered.get()
    assert await code(one.explain(ASKED)) == "RESOURCE_EXHAUSTED"
    assert door.inside == AT_ONCE
    house.pipeline.go.set()
    assert {(await task).error.code for task in running} == {"enough"}
    assert (await one.explain(ASKED)).error.code == "enough"
    assert door.inside == 0


async def test_nothing_is_explained_while_model_calls_wait(house: Any, waiting: SimpleNamespace) -> None:
    waiting.waiting = 1
    assert await code(explainer(house).explain(ASKED)) == "RESOURCE_EXHAUSTED"
    assert house.pipeline.judged == 0
    waiting.waiting = 0
    house.pipeline.go.set()
    assert (await explainer(house).explain(ASKED)).error.code == "enough"


async def test_a_body_that_finds_no_room_is_refused(house: Any) -> None:
    room = Room(10)
    room.hold(9)
    assert await code(explainer(house, room=room).explain(ASKED)) == "RESOURCE_EXHAUSTED"
    assert (room.held, house.pipeline.judged) == (9, 0)


async def test_a_shut_door_explains_nothing(house: Any) -> None:
    assert await code(explainer(house, StubDoor(is_open=False)).explain(ASKED)) == "UNAVAILABLE"
    assert await code(explainer(house, Door(house.loaded.policy, None)).explain(ASKED)) == "UNAVAILABLE"


async def test_what_takes_too_long_is_given_up_and_leaves_the_place(
    house: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explaining, "SLACK_SECONDS", -1.99)
    one = explainer(house)
    assert [await code(one.explain(ASKED)) for _ in range(3)] == ["DEADLINE_EXCEEDED"] * 3


async def test_bytes_that_are_no_request_are_refused(house: Any) -> None:
    assert await code(explainer(house).answer(b"\xff\xff")) == "INVALID_ARGUMENT"


@given(st.binary(max_size=200))
def test_no_bytes_break_it(data: bytes) -> None:
    async def ask() -> None:
        with contextlib.suppress(RefusedError):
            await Explainer(StubDoor(is_open=False), lambda: None, Room()).answer(data)  # type: ignore[arg-type,return-value]

    asyncio.run(ask())
