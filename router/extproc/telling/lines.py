"""The log's line about a request: one each, with the time at which it was answered, whenever that is told."""

from __future__ import annotations

import logging
from typing import Any, Final

from opentelemetry.trace import format_span_id

from router.extproc.telling.handled import Handled
from router.telemetry.context import Trace

logger = logging.getLogger(__name__)

_LEVELS: Final = {"decision": logging.INFO, "unreadable": logging.INFO, "failure": logging.WARNING}


def write_line(handled: Handled) -> None:
    """Write it."""
    level = _LEVELS[handled.kind]
    if not logger.isEnabledFor(level):
        return
    extra = {"fields": fields_of(handled)}
    line = logger.makeRecord(logger.name, level, "", 0, handled.kind, (), None, extra=extra)
    line.created = handled.began / 1e9 + handled.seconds
    logger.handle(line)


def fields_of(handled: Handled) -> dict[str, Any]:
    """A line's fields; those of a decision are its record's."""
    place = {} if handled.trace is None else _place(handled.trace)
    if handled.record is not None:
        return {**handled.record.summary(), **place}
    if handled.kind == "unreadable":
        said = {"status": handled.status, "code": handled.failure, "pointer": handled.pointer}
        return {"record": handled.identifier, **said, **place}
    return {"record": handled.identifier, "kind": handled.failure, **place}


def _place(trace: Trace) -> dict[str, str]:
    """By which a line is found from its trace: the words that OpenTelemetry asks for in logs."""
    return {"trace_id": trace.trace_id, "span_id": format_span_id(trace.context.span_id)}
