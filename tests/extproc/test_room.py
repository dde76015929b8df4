"""Bodies in hand: what fits, what is shed and when, and that memory is given back after a crowd."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.actions.edits import Edits
from router.extproc.exchange import Exchange, FailureKind
from router.extproc.head import RequestHead
from router.extproc.memory import FEW_BYTES, WORTHWHILE_BYTES, Trimmer
from router.extproc.room import Room
from router.proto import ext_proc_pb2 as pb
from router.request.reply import Reply
from router.telemetry.instruments import create_instruments

HEADER = Edits((("x-pointsman-cluster", "default"),))


class Judge:
    """Judges when the gate opens; a failure is refused, or, with `opened`, goes on."""

    def __init__(self, opened: bool = False) -> None:
        self.gate = asyncio.Event()
        self.failures: list[FailureKind] = []
        self._opened = opened

    def reads_body(self, head: RequestHead) -> bool:
        return head.path != "/unseen"

    async def judge_headers(self, head: RequestHead) -> Edits | Reply:
        return HEADER

    async def judge(self, head: RequestHead, body: bytes) -> Edits | Reply:
        await self.gate.wait()
        return HEADER

    def failed(self, head: RequestHead | None, kind: FailureKind) -> Edits | Reply:
        self.failures.append(kind)
        return HEADER if self._opened else Reply(503, "text/plain", kind.encode())


def headers(length: int | None = None, path: str = "/v1", pieces: bool = False) -> pb.ProcessingRequest:
    pairs = [(":path", path)] + ([("content-length", str(length))] if length is not None else [])
    mode = pb.ProcessingMode.FULL_DUPLEX_STREAMED if pieces else pb.ProcessingMode.BUFFERED
    message = pb.ProcessingRequest(protocol_config=pb.ProtocolConfiguration(request_body_mode=mode))
    found = [pb.HeaderValue(key=key, raw_value=value.encode()) for key, value in pairs]
    message.request_headers.CopyFrom(pb.HttpHeaders(headers=pb.HeaderMap(headers=found)))
    return message


def body(size: int, last: bool = True) -> pb.ProcessingRequest:
    return pb.ProcessingRequest(request_body=pb.HttpBody(body=bytes(size), end_of_stream=last))


class Asked:
    """An exchange under way: its messages are sent one by one."""

    def __init__(self, judge: Judge, room: Room) -> None:
        self._messages: asyncio.Queue[pb.ProcessingRequest | None] = asyncio.Queue()
        exchange = Exchange(judge, 30.0, create_instruments(), 10_000, room=room)
        self.answers = exchange.answers(self._sent())

    async def _sent(self) -> AsyncIterator[pb.ProcessingRequest]:
        while (message := await self._messages.get()) is not None:
            yield message

    def send(self, *messages: pb.ProcessingRequest | None) -> None:
        for message in messages:
            self._messages.put_nowait(message)

    async def rest(self) -> list[str]:
        return [str(answer.WhichOneof("response")) async for answer in self.answers]


async def holding(judge: Judge, room: Room, size: int) -> asyncio.Task[list[str]]:
    """A request of this size that is being judged."""
    asked = Asked(judge, room)
    asked.send(headers(size), body(size))
    before = room.held
    task = asyncio.create_task(asked.rest())
    while room.held == before:  # noqa: ASYNC110  a sum tells nobody of its changes
        await asyncio.sleep(0)
    return task


async def test_what_was_in_hand_is_let_go_of_when_it_is_answered() -> None:
    judge, room = Judge(), Room(1000)
    first = await holding(judge, room, 600)
    second = await holding(judge, room, 400)
    assert room.held == 1000
    judge.gate.set()
    assert await first == await second == ["request_headers", "request_body"]
    assert (room.held, judge.failures) == (0, [])


async def test_past_the_bound_a_request_is_shed_before_its_body_is_sent() -> None:
    judge, room = Judge(), Room(1000)
    first = await holding(judge, room, 600)
    asked = Asked(judge, room)
    asked.send(headers(401))
    assert await asked.rest() == ["immediate_response"]
    assert judge.failures == ["shed"]
    judge.gate.set()
    await first


async def test_one_that_does_not_say_its_length_is_shed_when_it_comes() -> None:
    judge, room = Judge(), Room(1000)
    first = await holding(judge, room, 600)
    asked = Asked(judge, room)
    asked.send(headers(), body(401))
    assert await asked.rest() == ["request_headers", "immediate_response"]
    assert (room.held, judge.failures) == (600, ["shed"])
    judge.gate.set()
    await first


async def test_a_body_that_is_on_its_way_takes_no_room() -> None:
    judge, room = Judge(), Room(1000)
    slow = [Asked(judge, room) for _ in range(5)]
    for one in slow:
        one.send(headers(900))
        assert (await anext(one.answers)).HasField("request_headers")
    assert room.held == 0
    for one in slow:
        one.send(None)
        assert await one.rest() == []


@pytest.mark.parametrize("pieces", [False, True])
async def test_what_is_shed_goes_on_as_it_came_where_the_policy_is_open(pieces: bool) -> None:
    judge, room = Judge(opened=True), Room(1000)
    first = await holding(judge, room, 1000)
    asked = Asked(judge, room)
    asked.send(headers(500, pieces=pieces))
    if pieces:
        asked.send(body(300, last=False), body(200))
    assert await asked.rest() == ["request_headers", *(["request_body"] * 2 if pieces else [])]
    assert (room.held, judge.failures) == (1000, ["shed"])
    judge.gate.set()
    await first


async def test_one_body_is_let_in_however_large() -> None:
    judge, room = Judge(), Room(10)
    first = await holding(judge, room, 5_000)
    judge.gate.set()
    assert await first == ["request_headers", "request_body"]


async def test_a_body_that_nobody_reads_needs_no_room() -> None:
    judge, room = Judge(), Room(10)
    first = await holding(judge, room, 5_000)
    asked = Asked(judge, room)
    asked.send(headers(10**12, path="/unseen"))
    assert await asked.rest() == ["request_headers"]
    judge.gate.set()
    await first


async def test_a_client_that_leaves_frees_its_room() -> None:
    judge, room = Judge(), Room(1000)
    task = await holding(judge, room, 600)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    asked = Asked(judge, room)
    asked.send(headers(pieces=True), body(700, last=False))
    gathering = asyncio.create_task(asked.rest())
    while room.held != 700:  # noqa: ASYNC110  as above
        await asyncio.sleep(0)
    asked.send(None)
    assert await gathering == []
    assert room.held == 0


@pytest.mark.parametrize("length", ["", "-1", "+5", "1_000", "٣", "1e3", "9" * 5000])
def test_a_length_that_is_no_number_is_none(length: str) -> None:
    assert RequestHead("POST", "/v1", {"content-length": length}).content_length == 0


@given(st.lists(st.tuples(st.integers(0, 200), st.booleans())))
def test_the_bound_holds_but_for_one_body_alone(steps: list[tuple[int, bool]]) -> None:
    room, held = Room(300), []
    for size, leave in steps:
        if leave and held:
            room.let_go(held.pop())
        elif room.fits(size):
            room.hold(size)
            held.append(size)
        assert room.held == sum(held)
        assert room.held <= 300


def test_a_crowd_is_told_of_once_when_most_of_it_has_gone() -> None:
    told: list[int] = []
    room = Room(cleared=told.append)
    for _ in range(16):
        room.hold(100)
    for _ in range(13):
        room.let_go(100)
    assert told == []
    room.let_go(100)
    assert told == [1600]
    room.let_go(100)
    room.let_go(100)
    assert [most for most in told[1:] if most >= 1600] == []


async def test_memory_is_given_back_after_a_crowd_and_not_after_small_bodies() -> None:
    calls: list[None] = []
    trimmer = Trimmer(lambda: calls.append(None), quiet=0.01, idle=3600)
    trimmer.after(WORTHWHILE_BYTES)
    async with asyncio.timeout(30):
        await trimmer.done()
    assert len(calls) == 1
    trimmer.after(FEW_BYTES - 1)
    await trimmer.done()
    assert len(calls) == 1


async def test_memory_of_a_few_large_bodies_is_given_back_once_no_more_come() -> None:
    calls: list[None] = []
    trimmer = Trimmer(lambda: calls.append(None), quiet=3600, idle=0.01)
    for _ in range(10):
        trimmer.after(FEW_BYTES)
    async with asyncio.timeout(30):
        await trimmer.done()
    assert len(calls) == 1


async def test_bodies_that_go_while_memory_is_given_back_have_theirs_given_back_too() -> None:
    calls: list[None] = []
    trimming, go_on = threading.Event(), threading.Event()

    def trim() -> None:
        calls.append(None)
        trimming.set()
        go_on.wait(30)

    trimmer = Trimmer(trim, quiet=0.01, idle=0.01)
    trimmer.after(FEW_BYTES)
    await asyncio.to_thread(trimming.wait, 30)
    trimmer.after(FEW_BYTES)
    go_on.set()
    async with asyncio.timeout(30):
        await trimmer.done()
    assert len(calls) == 2


async def test_a_few_bodies_do_not_put_off_what_follows_a_crowd() -> None:
    calls: list[None] = []
    trimmer = Trimmer(lambda: calls.append(None), quiet=0.01, idle=3600)
    trimmer.after(FEW_BYTES)
    trimmer.after(WORTHWHILE_BYTES)
    trimmer.after(FEW_BYTES)
    async with asyncio.timeout(30):
        await trimmer.done()
    assert len(calls) == 1


async def test_a_crowd_that_comes_back_puts_it_off_and_the_end_stops_it() -> None:
    calls: list[None] = []
    trimmer = Trimmer(lambda: calls.append(None), quiet=0.01)
    for _ in range(10):
        trimmer.after(WORTHWHILE_BYTES)
    await trimmer.done()
    assert len(calls) == 1
    trimmer.after(WORTHWHILE_BYTES)
    trimmer.close()
    await trimmer.done()
    assert len(calls) == 1


async def test_the_c_library_can_do_it() -> None:
    trimmer = Trimmer(quiet=0)
    trimmer.after(WORTHWHILE_BYTES)
    await trimmer.done()
