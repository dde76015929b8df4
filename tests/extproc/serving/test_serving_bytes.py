"""The server by its bytes: what peers may send in any pieces, and what ends a connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from hpack import Decoder, Encoder
from hypothesis import given
from hypothesis import strategies as st

from router.extproc.room import Room
from router.extproc.serving import connection as connection_module
from router.extproc.serving import frames, heads
from router.extproc.serving.call import STREAM_WINDOW, Call, Status
from router.extproc.serving.connection import CONNECTION_WINDOW, Connection
from router.extproc.serving.frames import Code, Setting, frame
from tests.fuzz.connections import Wire

MESSAGE_BYTES = 1 << 20
GREETING = frames.PREFACE + frames.settings_frame({})


class Peer(Wire):
    """The other end, which understands gRPC."""

    def messages(self, number: int = 1) -> list[bytes]:
        data = b"".join(payload for kind, _, stream, payload in self.frames() if kind == 0 and stream == number)
        found = []
        while data:
            size = int.from_bytes(data[1:5], "big")
            found.append(data[5 : 5 + size])
            data = data[5 + size :]
        return found

    def trailers(self, number: int = 1) -> dict[str, str]:
        ends = [p for k, f, s, p in self.frames() if k == frames.HEADERS and s == number and f & frames.END_STREAM]
        return {name: value for block in ends for name, value in Decoder().decode(block)}

    def codes(self, kind: int) -> list[int]:
        return [int.from_bytes(payload[-4:], "big") for found, _, _, payload in self.frames() if found == kind]


class Log:
    """A handler that remembers what it was sent, and echoes it."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.messages: list[bytes] = []
        self.cancelled = 0

    async def echo(self, call: Call) -> None:
        self.calls.append(call)
        try:
            async for message in call:
                self.messages.append(message)
                await call.send(message)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


async def turns(count: int = 8) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def head(path: str = "/echo", **more: str) -> bytes:
    pairs = {":method": "POST", ":scheme": "http", ":path": path, "content-type": "application/grpc", **more}
    return b"".join(heads.literal(name, value) for name, value in pairs.items())


def begun(number: int = 1, flags: int = frames.END_HEADERS, block: bytes | None = None) -> bytes:
    return frame(frames.HEADERS, flags, number, head() if block is None else block)


def wrapped(message: bytes) -> bytes:
    return b"\x00" + len(message).to_bytes(4, "big") + message


def data(payload: bytes, number: int = 1, ended: bool = False) -> bytes:
    """Frames of a stream's data."""
    size = frames.LEAST_FRAME_BYTES
    pieces = [payload[place : place + size] for place in range(0, len(payload), size)] or [b""]
    last = len(pieces) - 1
    return b"".join(frame(frames.DATA, int(ended and index == last), number, one) for index, one in enumerate(pieces))


def connected(log: Log, *, greet: bool = True, room: Room | None = None) -> tuple[Connection, Peer]:
    wire = Peer()
    connection = Connection({"/echo": log.echo}, MESSAGE_BYTES, set(), room)
    connection.connection_made(wire)  # type: ignore[arg-type]
    if greet:
        connection.data_received(GREETING)
    return connection, wire


@pytest.fixture
async def log() -> AsyncIterator[Log]:
    yield Log()


async def test_it_begins_with_settings_and_no_table_of_headers(log: Log) -> None:
    _, wire = connected(log, greet=False)
    kind, flags, number, payload = wire.frames()[0]
    assert (kind, flags, number) == (frames.SETTINGS, 0, 0)
    assert (Setting.HEADER_TABLE_SIZE, 0) in frames.read_settings(payload)


@given(
    messages=st.lists(st.binary(max_size=200), max_size=6),
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=40),
    frame_sizes=st.lists(st.integers(1, 90), min_size=1, max_size=10),
)
def test_however_bytes_are_cut_the_messages_are_the_same(
    messages: list[bytes], sizes: list[int], frame_sizes: list[int]
) -> None:
    payload = b"".join(map(wrapped, messages))
    pieces, place = [], 0
    while place < len(payload):
        size = frame_sizes[len(pieces) % len(frame_sizes)]
        pieces.append(frame(frames.DATA, 0, 1, payload[place : place + size]))
        place += size
    sent = GREETING + begun() + b"".join(pieces) + frame(frames.DATA, frames.END_STREAM, 1)

    async def conversation() -> tuple[Log, Peer]:
        log = Log()
        connection, wire = connected(log, greet=False)
        place = index = 0
        while place < len(sent):
            size = sizes[index % len(sizes)]
            connection.data_received(sent[place : place + size])
            place, index = place + size, index + 1
            await asyncio.sleep(0)
        await turns()
        return log, wire

    log, wire = asyncio.run(conversation())
    assert log.messages == messages
    assert wire.messages() == messages
    assert wire.trailers()["grpc-status"] == "0"
    assert not wire.closed


@given(st.lists(st.binary(max_size=120), max_size=8), st.booleans())
def test_noise_never_raises(noise: list[bytes], greets: bool) -> None:
    async def conversation() -> None:
        connection, wire = connected(Log(), greet=greets)
        for piece in noise:
            connection.data_received(piece)
            await asyncio.sleep(0)
        if not greets and not frames.PREFACE.startswith(b"".join(noise)[: len(frames.PREFACE)]):
            assert wire.closed
        connection.connection_lost(None)
        await turns()

    asyncio.run(conversation())


@given(
    st.lists(
        st.tuples(
            st.integers(0, 12),
            st.integers(0, 255),
            st.integers(0, 6),
            st.one_of(st.binary(max_size=40), st.just(head())),
        ),
        max_size=12,
    )
)
def test_frames_in_any_order_never_raise(sent: list[tuple[int, int, int, bytes]]) -> None:
    async def conversation() -> None:
        connection, _ = connected(Log())
        for kind, flags, number, payload in sent:
            connection.data_received(frame(kind, flags, number, payload))
            await asyncio.sleep(0)
        connection.connection_lost(None)
        await turns()

    asyncio.run(conversation())


WRONG: list[tuple[str, bytes, Code]] = [
    ("no HTTP/2", b"GET / HTTP/1.1\r\n\r\n", Code.PROTOCOL_ERROR),
    ("data of no stream", GREETING + data(b"x", number=1), Code.PROTOCOL_ERROR),
    ("data of stream 0", GREETING + begun() + frame(frames.DATA, 0, 0, b"x"), Code.PROTOCOL_ERROR),
    ("a stream of the server's", GREETING + begun(2), Code.PROTOCOL_ERROR),
    (
        "a frame too long",
        GREETING + (frames.LEAST_FRAME_BYTES + 1).to_bytes(3, "big") + bytes(6),
        Code.FRAME_SIZE_ERROR,
    ),
    ("a push", GREETING + frame(frames.PUSH_PROMISE, 4, 1, bytes(4)), Code.PROTOCOL_ERROR),
    ("settings cut short", GREETING + frame(frames.SETTINGS, 0, 0, b"12345"), Code.FRAME_SIZE_ERROR),
    ("settings of a stream", GREETING + frame(frames.SETTINGS, 0, 1), Code.PROTOCOL_ERROR),
    (
        "a window too large",
        GREETING + frames.settings_frame({Setting.INITIAL_WINDOW_SIZE: 1 << 31}),
        Code.FLOW_CONTROL_ERROR,
    ),
    ("a frame size too small", GREETING + frames.settings_frame({Setting.MAX_FRAME_SIZE: 5}), Code.PROTOCOL_ERROR),
    ("a ping too short", GREETING + frame(frames.PING, 0, 0, b"1"), Code.PROTOCOL_ERROR),
    ("more window than there is", GREETING + frames.window_update(0, frames.LARGEST_WINDOW), Code.FLOW_CONTROL_ERROR),
    ("an empty window update", GREETING + frames.window_update(0, 0), Code.FLOW_CONTROL_ERROR),
    ("the end of no stream", GREETING + frames.reset(1, Code.NO_ERROR), Code.PROTOCOL_ERROR),
    ("headers that are none", GREETING + begun(block=b"\xff\xff\xff\xff\xff\xff\xff"), Code.COMPRESSION_ERROR),
    ("headers cut short", GREETING + begun(block=b"\x00\x05ab"), Code.COMPRESSION_ERROR),
    (
        "more padding than there is",
        GREETING + begun(flags=frames.END_HEADERS | frames.PADDED, block=b"\x09ab"),
        Code.PROTOCOL_ERROR,
    ),
    (
        "headers without priority",
        GREETING + begun(flags=frames.END_HEADERS | frames.HAS_PRIORITY, block=b"ab"),
        Code.FRAME_SIZE_ERROR,
    ),
    (
        "headers that are interrupted",
        GREETING + begun(flags=0) + frame(frames.PING, 0, 0, bytes(8)),
        Code.PROTOCOL_ERROR,
    ),
    ("headers that continue none", GREETING + frame(frames.CONTINUATION, 4, 1, b"ab"), Code.PROTOCOL_ERROR),
    (
        "headers that continue with nothing",
        GREETING + begun(flags=0) + frame(frames.CONTINUATION, 0, 1),
        Code.ENHANCE_YOUR_CALM,
    ),
    (
        "headers without end",
        GREETING + begun(flags=0) + frame(frames.CONTINUATION, 0, 1, bytes(16_000)) * 5,
        Code.ENHANCE_YOUR_CALM,
    ),
    ("trailers that are not the end", GREETING + begun() + begun(), Code.PROTOCOL_ERROR),
    ("a stream below the last", GREETING + begun(5) + begun(3), Code.PROTOCOL_ERROR),
    ("trailers of an ended stream", GREETING + begun(flags=5) + begun(flags=5), Code.STREAM_CLOSED),
    (
        "trailers of a stream that was reset",
        GREETING + begun() + frames.reset(1, Code.CANCEL) + begun(flags=5),
        Code.STREAM_CLOSED,
    ),
    ("data of an ended stream", GREETING + begun(flags=5) + data(b"x"), Code.STREAM_CLOSED),
    (
        "data of a stream that was reset",
        GREETING + begun() + frames.reset(1, Code.CANCEL) + data(b"x"),
        Code.STREAM_CLOSED,
    ),
    (
        "windows that overflow by settings",
        GREETING
        + begun()
        + frames.window_update(1, frames.LARGEST_WINDOW - frames.FIRST_WINDOW)
        + frames.settings_frame({Setting.INITIAL_WINDOW_SIZE: frames.FIRST_WINDOW + 1}),
        Code.FLOW_CONTROL_ERROR,
    ),
    ("more than the window", GREETING + begun() + data(bytes(2 * STREAM_WINDOW)), Code.FLOW_CONTROL_ERROR),
]


@pytest.mark.parametrize(("sent", "code"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
async def test_what_breaks_the_protocol_ends_the_connection(log: Log, sent: bytes, code: Code) -> None:
    connection, wire = connected(log, greet=False)
    connection.data_received(sent)
    assert wire.closed
    assert wire.codes(frames.GOAWAY) == [code]
    connection.connection_lost(None)
    await turns()


CALLS: list[tuple[str, bytes, str]] = [
    ("no such method", begun(block=head("/other")), "12"),
    ("compressed", begun() + data(b"\x01\x00\x00\x00\x01x"), "12"),
    ("too large", begun() + data(b"\x00" + (MESSAGE_BYTES + 1).to_bytes(4, "big")), "8"),
    ("too large, in pieces", begun() + data(b"\x00") + data((MESSAGE_BYTES + 1).to_bytes(4, "big")), "8"),
    ("cut within a message", begun() + data(b"\x00\x00\x00\x00\x05ab", ended=True), "13"),
    ("nothing said", begun(flags=frames.END_HEADERS | frames.END_STREAM), "0"),
    ("trailers as the end", begun() + data(wrapped(b"a")) + begun(flags=5), "0"),
    ("no time", begun(block=head(**{"grpc-timeout": "0n"})), "4"),
]


@pytest.mark.parametrize(("sent", "status"), [row[1:] for row in CALLS], ids=[row[0] for row in CALLS])
async def test_a_call_that_goes_wrong_ends_alone(log: Log, sent: bytes, status: str) -> None:
    connection, wire = connected(log)
    connection.data_received(sent)
    for _ in range(100):
        await asyncio.sleep(0.001)
        if wire.trailers():
            break
    assert wire.trailers()["grpc-status"] == status
    connection.data_received(begun(3) + data(wrapped(b"and on"), number=3, ended=True))
    await turns()
    assert wire.messages(3) == [b"and on"]
    assert not wire.closed


async def test_what_is_no_grpc_is_told_so(log: Log) -> None:
    connection, wire = connected(log)
    connection.data_received(begun(block=head(**{"content-type": "text/html"})))
    assert wire.trailers()[":status"] == "415"


async def test_a_stream_that_the_client_resets_is_cancelled_and_answered_no_more(log: Log) -> None:
    connection, wire = connected(log)
    connection.data_received(begun())
    await turns()
    written = len(wire.written)
    connection.data_received(frames.reset(1, Code.NO_ERROR))
    await turns()
    assert log.cancelled == 1
    assert len(wire.written) == written


async def test_calls_of_a_client_that_hangs_up_are_cancelled(log: Log) -> None:
    connection, _ = connected(log)
    for number in (1, 3, 5):
        connection.data_received(begun(number))
    await turns()
    connection.connection_lost(None)
    await turns()
    assert log.cancelled == 3
    await connection.idle()


async def test_calls_that_are_cancelled_here_are_told(log: Log) -> None:
    connection, wire = connected(log)
    connection.data_received(begun())
    await turns()
    connection.data_received(begun(3))
    # One has begun and one has not.
    connection.cancel()
    await connection.idle()
    connection.close()
    assert [wire.trailers(number)["grpc-status"] for number in (1, 3)] == ["14", "14"]
    assert wire.closed


async def test_pings_are_answered(log: Log) -> None:
    connection, wire = connected(log)
    connection.data_received(frame(frames.PING, 0, 0, b"12345678"))
    assert wire.frames()[-1] == (frames.PING, frames.ACK, 0, b"12345678")


async def test_a_long_message_gets_window_while_it_comes(log: Log) -> None:
    connection, wire = connected(log)
    message = bytes(range(256)) * (MESSAGE_BYTES // 256)
    connection.data_received(begun() + frames.settings_frame({Setting.INITIAL_WINDOW_SIZE: 1 << 30}))
    connection.data_received(frames.window_update(0, 1 << 30))
    sent = data(wrapped(message), ended=True)
    for place in range(0, len(sent), 70_000):
        connection.data_received(sent[place : place + 70_000])
    await turns()
    assert wire.messages() == [message]
    # It is larger than the window that a stream begins with.
    assert 1 in [stream for kind, _, stream, _ in wire.frames() if kind == frames.WINDOW_UPDATE]


async def test_connection_window_is_given_back_though_nobody_takes_the_data(log: Log) -> None:
    connection, wire = connected(log)
    number = 1
    for _ in range(3 * CONNECTION_WINDOW // STREAM_WINDOW):
        connection.data_received(begun(number, block=head("/other")) + data(bytes(STREAM_WINDOW), number=number))
        number += 2
    assert not wire.closed


@given(window=st.integers(1, 70), size=st.integers(0, 600))
def test_an_answer_keeps_to_the_windows_of_the_client(window: int, size: int) -> None:
    async def conversation() -> None:
        connection, wire = connected(Log())
        connection.data_received(frames.settings_frame({Setting.INITIAL_WINDOW_SIZE: window}))
        connection.data_received(begun() + data(wrapped(bytes(size)), ended=True))
        granted = window
        for _ in range((size + 5) // window + 2):
            await turns()
            sent = sum(len(payload) for kind, _, _, payload in wire.frames() if kind == frames.DATA)
            assert sent == min(granted, size + 5)
            connection.data_received(frames.window_update(1, window))
            granted += window
        await turns()
        assert wire.messages() == [bytes(size)]

    asyncio.run(conversation())


async def test_settings_that_change_windows_count_for_running_calls(log: Log) -> None:
    connection, wire = connected(log)
    connection.data_received(frames.settings_frame({Setting.INITIAL_WINDOW_SIZE: 0}))
    connection.data_received(begun() + data(wrapped(b"hello"), ended=True))
    await turns()
    assert wire.messages() == []
    connection.data_received(frames.settings_frame({Setting.INITIAL_WINDOW_SIZE: 100}))
    await turns()
    assert wire.messages() == [b"hello"]


async def test_a_client_that_does_not_read_makes_handlers_wait(log: Log) -> None:
    connection, wire = connected(log)
    connection.pause_writing()
    connection.data_received(begun() + data(wrapped(b"a")) + data(wrapped(b"b"), ended=True))
    await turns()
    assert log.messages == [b"a"]
    connection.resume_writing()
    await turns()
    assert wire.messages() == [b"a", b"b"]


async def test_a_client_that_asks_and_never_reads_is_given_up(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.extproc.serving.connection.MOST_UNREAD_BYTES", 10_000)
    connection, wire = connected(log)
    connection.pause_writing()
    for _ in range(1000):
        connection.data_received(frame(frames.PING, 0, 0, b"12345678"))
    assert wire.closed
    assert len(wire.written) < 20_000


async def test_streams_past_the_most_are_refused(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.extproc.serving.connection.STREAMS", 2)
    connection, wire = connected(log)
    for number in (1, 3, 5):
        connection.data_received(begun(number))
    assert [s for k, _, s, _ in wire.frames() if k == frames.RST_STREAM] == [5]
    # A stream that was reset still runs until its handler has ended.
    connection.data_received(frames.reset(1, Code.NO_ERROR) + begun(7))
    assert [s for k, _, s, _ in wire.frames() if k == frames.RST_STREAM] == [5, 7]
    await turns()
    connection.data_received(begun(9))
    assert [s for k, _, s, _ in wire.frames() if k == frames.RST_STREAM] == [5, 7]
    connection.connection_lost(None)
    await turns()


async def test_headers_come_in_pieces_with_padding_and_priority(log: Log) -> None:
    connection, wire = connected(log)
    block = head()
    first = b"\x03" + bytes(5) + block[:20] + bytes(3)
    connection.data_received(begun(flags=frames.PADDED | frames.HAS_PRIORITY, block=first))
    connection.data_received(frame(frames.CONTINUATION, 0, 1, block[20:30]))
    connection.data_received(frame(frames.CONTINUATION, frames.END_HEADERS, 1, block[30:]))
    connection.data_received(
        frame(frames.DATA, frames.PADDED | frames.END_STREAM, 1, b"\x02" + wrapped(b"x") + bytes(2))
    )
    await turns()
    assert wire.messages() == [b"x"]


async def test_headers_of_a_table_are_read_until_the_peer_gives_it_up(log: Log) -> None:
    connection, wire = connected(log)
    encoder = Encoder()
    pairs = [(":method", "POST"), (":path", "/echo"), ("content-type", "application/grpc"), ("x-a", "b")]
    for number in (1, 3):
        connection.data_received(begun(number, block=encoder.encode(pairs)))
    connection.data_received(frame(frames.SETTINGS, frames.ACK, 0))
    encoder.header_table_size = 0
    for number in (5, 7, 9):
        connection.data_received(begun(number, block=encoder.encode(pairs)))
    await turns()
    assert [call.path for call in log.calls] == ["/echo"] * 5
    assert [call.metadata["x-a"] for call in log.calls] == ["b"] * 5
    assert not wire.closed
    connection.connection_lost(None)
    await turns()


async def test_a_peer_that_keeps_the_table_it_was_told_to_give_up_is_ended(log: Log) -> None:
    connection, wire = connected(log)
    connection.data_received(frame(frames.SETTINGS, frames.ACK, 0) + begun(block=Encoder().encode([("x-a", "b")])))
    assert wire.codes(frames.GOAWAY) == [Code.COMPRESSION_ERROR]


async def test_a_handler_that_fails_says_nothing_of_why(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(call: Call) -> None:
        raise ValueError("the secret word")

    wire = Peer()
    connection = Connection({"/echo": broken}, MESSAGE_BYTES, set())
    connection.connection_made(wire)  # type: ignore[arg-type]
    connection.data_received(GREETING + begun())
    await turns()
    assert wire.trailers()["grpc-status"] == "13"
    assert b"secret" not in wire.written
    assert "secret" not in caplog.text


async def test_small_pieces_of_a_long_message_take_no_more_than_its_size(log: Log) -> None:
    connection, _ = connected(log)
    payload = wrapped(bytes(3000))
    connection.data_received(begun() + b"".join(data(payload[i : i + 1]) for i in range(len(payload))))
    await turns()
    assert log.messages == [bytes(3000)]
    connection.connection_lost(None)
    await turns()


def test_timeouts_are_read_by_their_unit() -> None:
    read: Callable[[str], float | None] = lambda text: heads.HeadReader().read(head(**{"grpc-timeout": text})).timeout  # noqa: E731
    assert [read("2S"), read("5m"), read("1H"), read("7"), read("123456789S"), read("x")] == [
        2,
        0.005,
        3600,
        None,
        None,
        None,
    ]


def test_a_literal_is_what_the_library_reads() -> None:
    for size in (0, 1, 126, 127, 128, 300, 5000):
        assert Decoder().decode(heads.literal("x-name", "v" * size)) == [("x-name", "v" * size)]


async def test_calls_that_waited_for_the_wire_keep_to_the_window_that_is_left() -> None:
    log = Log()
    connection, wire = connected(log)
    connection.data_received(frames.settings_frame({Setting.INITIAL_WINDOW_SIZE: 1 << 20}))
    message = bytes(30_000)
    for number in (1, 3, 5, 7):
        connection.data_received(begun(number) + data(wrapped(message), number=number, ended=True))
    connection.pause_writing()
    await turns()
    connection.resume_writing()
    await turns(40)
    assert sum(len(payload) for kind, _, _, payload in wire.frames() if kind == frames.DATA) <= frames.FIRST_WINDOW
    connection.data_received(frames.window_update(0, 1 << 20))
    await turns(40)
    assert [wire.messages(number) for number in (1, 3, 5, 7)] == [[message]] * 4


async def test_calls_that_are_reset_while_they_wait_leave_nothing(log: Log) -> None:
    connection, _ = connected(log)
    connection.data_received(frames.settings_frame({Setting.INITIAL_WINDOW_SIZE: 0}))
    for number in range(1, 401, 2):
        connection.data_received(begun(number) + data(wrapped(b"a"), number=number))
        await turns(3)
        connection.data_received(frames.reset(number, Code.NO_ERROR))
        await turns(3)
    assert log.cancelled == 200
    assert not connection._waiters


async def test_a_peer_that_breaks_the_protocol_and_reads_nothing_holds_no_calls(log: Log) -> None:
    connection, wire = connected(log)
    connection.data_received(begun())
    await turns()
    connection.data_received(frame(frames.PING, 0, 0, b"1"))
    await turns()
    assert wire.closed
    assert log.cancelled == 1


async def test_messages_that_are_on_their_way_count_as_held_until_they_are_taken(log: Log) -> None:
    room = Room(300_000)
    connection, _ = connected(log, room=room)
    message = wrapped(bytes(100_000))
    for number in (1, 3):
        connection.data_received(begun(number) + data(message[:60_000], number))
    await turns()
    assert room.held == 120_000
    connection.data_received(data(message[60_000:], 1))
    assert room.held == 160_005
    await turns()
    assert room.held == 60_000
    assert log.messages == [bytes(100_000)]
    connection.data_received(frames.reset(3, Code.CANCEL))
    assert room.held == 0
    connection.data_received(data(message * 2, 1))
    assert room.held == 200_010
    connection.connection_lost(None)
    assert room.held == 0
    await turns()


async def test_what_does_not_fit_is_refused_and_the_call_alone_ends(log: Log) -> None:
    room = Room(100_000)
    connection, wire = connected(log, room=room)
    message = wrapped(bytes(120_000))
    connection.data_received(begun(1) + data(message[:70_000], 1))
    connection.data_received(begun(3) + data(message[:70_000], 3))
    await turns()
    assert wire.trailers(3)["grpc-status"] == str(int(Status.RESOURCE_EXHAUSTED))
    # One alone always fits.
    assert room.held == 70_000
    connection.data_received(data(message[70_000:], 1, ended=True))
    await turns()
    assert log.messages == [bytes(120_000)]
    assert room.held == 0
    assert not wire.closed


@given(st.lists(st.tuples(st.sampled_from([1, 3, 5]), st.integers(0, 400), st.booleans()), max_size=30))
def test_what_is_held_is_let_go_of_however_calls_end(steps: list[tuple[int, int, bool]]) -> None:
    async def conversation() -> None:
        room, log = Room(900), Log()
        connection, _ = connected(log, room=room)
        connection.data_received(b"".join(begun(number) for number in (1, 3, 5)))
        ended: set[int] = set()
        for number, size, ends in steps:
            if number not in ended:
                connection.data_received(data(wrapped(bytes(200))[:size] + bytes(max(0, size - 205)), number))
            if ends and number not in ended:
                ended.add(number)
                connection.data_received(frames.reset(number, Code.CANCEL))
            await asyncio.sleep(0)
            held = [call._counted for call in connection._calls.values() if call._counted]
            assert room.held == sum(held)
            # One alone always fits.
            assert room.held <= 900 or len(held) == 1
        connection.connection_lost(None)
        await turns()
        assert room.held == 0

    asyncio.run(conversation())


async def test_trailers_of_a_stream_that_was_ended_here_are_ignored(log: Log) -> None:
    connection, wire = connected(log)
    connection.data_received(begun(block=head("/other")) + begun(flags=5) + data(b"x"))
    connection.data_received(begun(3) + data(b"\x01\x00\x00\x00\x01x", 3))
    connection.data_received(data(b"more", 3) + begun(3, flags=5))
    await turns()
    assert not wire.closed


async def test_a_peer_that_begins_and_resets_over_and_over_is_told_to_calm_down(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "RESETS", 20)
    monkeypatch.setattr(connection_module, "RESETS_A_SECOND", 0)
    connection, wire = connected(log)
    for number in range(1, 41, 2):
        connection.data_received(begun(number) + frames.reset(number, Code.CANCEL))
    assert not wire.closed
    # Streams that have ended anyway, as clients reset that were answered before they said all, count for nothing.
    for number in range(1, 41, 2):
        connection.data_received(frames.reset(number, Code.NO_ERROR))
    assert not wire.closed
    connection.data_received(begun(41) + frames.reset(41, Code.CANCEL))
    assert wire.codes(frames.GOAWAY) == [Code.ENHANCE_YOUR_CALM]
    await turns()
    assert log.calls == []


async def test_resets_at_a_rate_that_may_be_go_on_for_ever(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "RESETS", 5)
    now = 1000.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now, raising=False)
    connection, wire = connected(log)
    for number in range(1, 400, 2):
        now += 1 / connection_module.RESETS_A_SECOND
        connection.data_received(begun(number) + frames.reset(number, Code.CANCEL))
    assert not wire.closed
