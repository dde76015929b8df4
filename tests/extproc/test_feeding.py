"""What becomes of what was read of responses: lines of the log, and measurements where they are kept."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from router.admin.app import build_intake
from router.admin.feedback import Feedback
from router.admin.server import Front, serving
from router.cli.administering import keeper_socket
from router.extproc.feeding import BUNDLE, Feed, ResponseLog, measurement_of
from router.extproc.reading import ResponseFacts
from router.extproc.usage import Usage
from router.selection.keeper import Keeper

FACTS = ResponseFacts("m", "d", "r", 200, True, Usage(5, 3), 0.25, 1.25, "")


@contextmanager
def taking(keeper: Keeper, socket: Path) -> Iterator[Path]:
    intake = build_intake(Feedback(keeper, lambda: {"": {"m"}}))
    with serving([Front("keeper", intake, keeper_socket(socket))]):
        yield socket


async def test_measurements_reach_the_state_that_selections_read(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path / "selection.json")
    with taking(keeper, tmp_path / "feedback.sock") as socket:
        feed = Feed(socket)
        log = ResponseLog(lambda: {"m"}, feed)
        log.tell(FACTS)
        log.tell(replace(FACTS, first=None, stream=False, whole=2.0))
        await feed.send()
    speed = keeper.snapshot.speed("m")
    assert (speed.ttft, speed.latency) == ((250.0,), (1250.0, 2000.0))


async def test_of_more_than_is_taken_at_once_the_latest_are_sent(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path / "selection.json")
    with taking(keeper, tmp_path / "feedback.sock") as socket:
        feed = Feed(socket)
        for number in range(BUNDLE + 5):
            feed.take({"model": "m", "ttft_ms": float(number)})
        await feed.send()
    assert keeper.snapshot.speed("m").ttft[-1] == BUNDLE + 4
    assert keeper.snapshot.version == BUNDLE


async def test_a_keeper_that_does_not_answer_is_told_of_once_and_waited_for_by_nobody(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    feed = Feed(tmp_path / "nobody.sock")
    for _ in range(3):
        feed.take({"model": "m", "ttft_ms": 1.0})
        await feed.send()
    assert [record.getMessage() for record in caplog.records] == ["measurements not taken"]


def test_a_line_of_the_log_has_what_is_known(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        ResponseLog(lambda: {"m"}, None).tell(FACTS)
        ResponseLog(lambda: {"m"}, None).tell(replace(FACTS, usage=Usage(), whole=None, unread="broken_off"))
    assert [record.__dict__["fields"] for record in caplog.records] == [
        {
            "record": "r",
            "decision": "d",
            "model": "m",
            "status": 200,
            "stream": True,
            "tokens_in": 5,
            "tokens_out": 3,
            "ttft_ms": 250.0,
            "latency_ms": 1250.0,
            "tokens_per_second": 3.0,
        },
        {
            "record": "r",
            "decision": "d",
            "model": "m",
            "status": 200,
            "stream": True,
            "ttft_ms": 250.0,
            "unread": "broken_off",
        },
    ]


def test_models_of_somebody_else_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        ResponseLog(lambda: {"m"}, None).tell(replace(FACTS, model="what a client wrote"))
    assert caplog.records == []


def test_errors_and_answers_without_times_measure_nothing() -> None:
    assert measurement_of(replace(FACTS, status=503)) is None
    assert measurement_of(replace(FACTS, first=None, whole=None)) is None
    assert measurement_of(replace(FACTS, whole=None)) == {"model": "m", "ttft_ms": 250.0}
