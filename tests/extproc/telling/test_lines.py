"""The log's line about a request."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from opentelemetry.trace import SpanContext, TraceFlags

from router.config.load import parse_policy
from router.extproc.head import RequestHead
from router.extproc.house import move_in
from router.extproc.telling.desk import Desk
from router.extproc.telling.handled import Handled
from router.extproc.telling.lines import fields_of, write_line
from router.extproc.telling.teller import Teller
from router.telemetry.context import Trace
from router.telemetry.instruments import create_instruments
from router.telemetry.log import JsonFormatter

TRACE = Trace(SpanContext(0x4BF9, 0x00F0, is_remote=False, trace_flags=TraceFlags(1)))
FAILED = Handled("failure", "openai.chat", "r-1", None, "p", "refuse", 1_700_000_000_000_000_000, 0.25, failure="shed")
POLICY = "{version: 1, upstreams: [{model: small, cluster: a}], default_model: small}"


async def test_a_decision_is_one_line_at_info_with_the_records_summary(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "router")
    told: list[Handled] = []
    teller = Teller((told.append, write_line), create_instruments().telemetry_dropped)
    house = await move_in(parse_policy(POLICY.encode(), Path("p.yaml")), 1, desk=Desk(teller))
    teller.start()
    try:
        body = {"model": "any", "messages": [{"role": "user", "content": "words of a client"}]}
        await house.pipeline.judge(RequestHead("POST", "/v1/chat/completions", {}), json.dumps(body).encode())
    finally:
        house.machinery.close()
        teller.close()
    [handled] = told
    assert handled.record is not None
    [line] = [record for record in caplog.records if record.getMessage() == "decision"]
    assert line.levelname == "INFO"
    assert fields_of(handled) == handled.record.summary()
    written = json.loads(JsonFormatter().format(line))
    assert (written["record"], written["decision"]) == (handled.identifier, "default")
    assert "words" not in json.dumps(written)


def test_a_line_is_found_by_trace_span_and_record() -> None:
    traced = {"trace_id": f"{0x4BF9:032x}", "span_id": f"{0x00F0:016x}"}
    with_trace = Handled("failure", None, "r-1", None, "p", "refuse", 0, 0.25, failure="shed", trace=TRACE)
    assert fields_of(with_trace) == {"record": "r-1", "kind": "shed", **traced}
    assert fields_of(FAILED) == {"record": "r-1", "kind": "shed"}


def test_a_line_has_the_time_of_the_answer_whenever_it_is_written(caplog: pytest.LogCaptureFixture) -> None:
    write_line(FAILED)
    [line] = caplog.records
    assert line.created == pytest.approx(1_700_000_000.25)
    assert line.levelname == "WARNING"
    assert json.loads(JsonFormatter().format(line))["time"] == "2023-11-14T22:13:20.250Z"
