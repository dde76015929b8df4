"""Requests are told behind a bounded queue, in a thread of its own."""

from __future__ import annotations

import logging
import threading
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

NEVER = 3600.0
FACTS = ResponseFacts("m", "d", "r", 200, False, NOTHING_SAID, None, 1.0, "")


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


def test_what_is_queued_is_told_in_order_before_the_end(instruments: Instruments) -> None:
    told: list[str] = []
    teller = Teller(
        (lambda handled: told.append(handled.identifier),),
        instruments.telemetry_dropped,
        (lambda facts: told.append(facts.model),),
        pause=NEVER,
    )
    teller.start()
    teller.tell(one("1"))
    teller.tell_response(FACTS)
    teller.also(lambda handled: told.append(f"kept {handled.identifier}"))(one("2"))
    assert told == []
    teller.close()
    assert told == ["1", "m", "2", "kept 2"]


def test_it_tells_without_being_closed(instruments: Instruments) -> None:
    done = threading.Event()
    teller = Teller((lambda _: done.set(),), instruments.telemetry_dropped, pause=0.01)
    teller.start()
    teller.start()
    teller.tell(one())
    assert done.wait(30)
    teller.close()
    teller.close()


def test_what_finds_the_queue_full_is_counted(instruments: Instruments, reader: InMemoryMetricReader) -> None:
    told: list[str] = []
    teller = Teller(
        (lambda handled: told.append(handled.identifier),), instruments.telemetry_dropped, limit=3, pause=NEVER
    )
    teller.start()
    for number in range(10):
        teller.tell(one(str(number)))
    teller.tell_response(FACTS)
    teller.close()
    assert told == ["0", "1", "2"]
    assert dropped(reader) == {"request": 7, "response": 1}


def test_a_telling_that_fails_costs_the_others_nothing_and_is_said_once(
    instruments: Instruments, reader: InMemoryMetricReader, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    def broken(handled: Handled) -> None:
        raise ValueError(f"CANARY {handled.identifier}")

    teller = Teller(
        (broken, lambda handled: told.append(handled.identifier)), instruments.telemetry_dropped, pause=NEVER
    )
    teller.start()
    for number in range(5):
        teller.tell(one(str(number)))
    teller.close()
    assert told == ["0", "1", "2", "3", "4"]
    assert dropped(reader) == {"request": 5}
    [record] = caplog.records
    assert record.__dict__["fields"] == {"error_type": "ValueError"}
    assert "CANARY" not in caplog.text


def test_one_that_hangs_does_not_hold_up_the_end_for_ever(
    instruments: Instruments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.extproc.telling.teller.CLOSE_SECONDS", 0.05)
    release = threading.Event()
    teller = Teller((lambda _: release.wait(60) and None,), instruments.telemetry_dropped, pause=NEVER)
    teller.start()
    teller.tell(one())
    teller.close()
    release.set()


def test_a_line_bears_the_time_of_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        write_line(one())
    [record] = caplog.records
    assert record.created == 10**9 + 0.5
    assert record.getMessage() == "failure"
    assert record.__dict__["fields"]() == {"record": "id", "kind": "deadline"}
