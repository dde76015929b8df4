"""Requests are told behind a bounded queue, between those that are served."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from router.extproc.reading import ResponseFacts
from router.extproc.telling.handled import Handled
from router.extproc.telling.lines import write_line
from router.extproc.telling.teller import Teller
from router.extproc.usage import NOTHING_SAID
from router.telemetry.instruments import Instruments, create_instruments

FACTS = ResponseFacts("m", "d", "r", 200, False, NOTHING_SAID, None, 1.0, "")


async def turns(count: int = 10) -> None:
    """Of the event loop."""
    for _ in range(count):
        await asyncio.sleep(0)


def one(identifier: str = "id", **rest: object) -> Handled:
    return Handled("failure", None, identifier, None, "policy", "refuse", 10**18, 0.5, failure="deadline", **rest)  # type: ignore[arg-type]


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def instruments(reader: InMemoryMetricReader) -> Iterator[Instruments]:
    provider = MeterProvider([reader])
    yield create_instruments(provider.get_meter("test"))
    provider.shutdown()


def dropped(reader: InMemoryMetricReader) -> dict[str, int]:
    data = reader.get_metrics_data()
    assert data is not None
    metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
    points = [p for m in metrics if m.name == "pointsman.telemetry.dropped" for p in m.data.data_points]
    return {str((p.attributes or {})["kind"]): int(p.value) for p in points}  # type: ignore[union-attr]


async def test_what_is_queued_is_told_in_order_and_before_the_end(instruments: Instruments) -> None:
    told: list[str] = []
    teller = Teller(
        (lambda handled: told.append(handled.identifier),),
        instruments.telemetry_dropped,
        (lambda facts: told.append(facts.model),),
    )
    teller.start()
    teller.tell(one("1"))
    teller.tell_response(FACTS)
    teller.also(lambda handled: told.append(f"kept {handled.identifier}"))(one("2"))
    assert told == []
    teller.close()
    assert told == ["1", "m", "2", "kept 2"]


async def test_it_tells_without_being_closed_once_the_answer_is_written(instruments: Instruments) -> None:
    happened: list[str] = []
    teller = Teller((lambda handled: happened.append(handled.identifier),), instruments.telemetry_dropped)
    teller.tell(one("before the start"))
    teller.start()
    teller.start()
    loop = asyncio.get_running_loop()
    teller.tell(one("told"))
    loop.call_soon(happened.append, "answered")
    await turns()
    assert happened == ["answered", "before the start", "told"]
    teller.close()
    teller.close()


async def test_others_have_their_turn_between_slices(instruments: Instruments, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.extproc.telling.teller.SLICE_SECONDS", 0.0)
    happened: list[str] = []
    teller = Teller((lambda handled: happened.append(handled.identifier),), instruments.telemetry_dropped)
    teller.start()
    for number in range(3):
        teller.tell(one(str(number)))
    await turns(2)
    asyncio.get_running_loop().call_soon(happened.append, "a request")
    await turns()
    assert happened[0] == "0" and happened.index("a request") < happened.index("2")
    assert [what for what in happened if what != "a request"] == ["0", "1", "2"]


async def test_threads_may_tell_while_the_loop_does(instruments: Instruments) -> None:
    told: list[str] = []
    all_told = asyncio.Event()

    def take(handled: Handled) -> None:
        told.append(handled.identifier)
        if len(told) == 800:
            all_told.set()

    teller = Teller((take,), instruments.telemetry_dropped)
    teller.start()

    def tell_some(name: str) -> None:
        for number in range(200):
            teller.tell(one(f"{name}{number}"))

    await asyncio.gather(*(asyncio.to_thread(tell_some, name) for name in "abcd"))
    await asyncio.wait_for(all_told.wait(), 30)
    for name in "abcd":
        assert [each for each in told if each[0] == name] == [f"{name}{number}" for number in range(200)]
    teller.close()


async def test_who_tells_after_the_end_is_not_disturbed(instruments: Instruments) -> None:
    teller = Teller((), instruments.telemetry_dropped)
    teller.start()
    teller.close()
    teller.tell(one())
    await asyncio.to_thread(teller.tell, one())
    await turns()


async def test_what_finds_the_queue_full_is_counted(instruments: Instruments, reader: InMemoryMetricReader) -> None:
    told: list[str] = []
    teller = Teller((lambda handled: told.append(handled.identifier),), instruments.telemetry_dropped, limit=3)
    teller.start()
    for number in range(10):
        teller.tell(one(str(number)))
    teller.tell_response(FACTS)
    teller.close()
    assert told == ["0", "1", "2"]
    assert dropped(reader) == {"request": 7, "response": 1}


async def test_a_telling_that_fails_costs_the_others_nothing_and_is_said_once(
    instruments: Instruments, reader: InMemoryMetricReader, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    def broken(handled: Handled) -> None:
        raise ValueError(f"CANARY {handled.identifier}")

    teller = Teller((broken, lambda handled: told.append(handled.identifier)), instruments.telemetry_dropped)
    teller.start()
    for number in range(5):
        teller.tell(one(str(number)))
    await turns()
    assert told == ["0", "1", "2", "3", "4"]
    assert dropped(reader) == {"request": 5}
    [record] = caplog.records
    assert record.__dict__["fields"] == {"error_type": "ValueError"}
    assert "CANARY" not in caplog.text
    teller.close()


def test_a_line_bears_the_time_of_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        write_line(one())
    [record] = caplog.records
    assert record.created == 10**9 + 0.5
    assert record.getMessage() == "failure"
    assert record.__dict__["fields"] == {"record": "id", "kind": "deadline"}
