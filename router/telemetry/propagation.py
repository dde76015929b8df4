"""Headers that say where a request stands among the traces, read and written.

The W3C's `traceparent` and `tracestate` are done here, in a third of the time that the SDK's propagators take, since
every request pays for it; whatever else `OTEL_PROPAGATORS` names is the SDK's. `baggage` is nobody's: it is not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Protocol

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import Getter, TextMapPropagator
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState

MAX_HEADER_BYTES: Final = 8192
"""A longer header of these is no header: the W3C asks for 512 characters of `tracestate` and 8192 of `baggage`."""

BAGGAGE: Final = "baggage"
TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
TRACE_HEADERS: Final = (TRACEPARENT, TRACESTATE)
"""The W3C's, which the upstream gets unless `OTEL_PROPAGATORS` names others."""

_PARENT: Final = re.compile(r"[ \t]*([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?[ \t]*")
_NOWHERE: Final = Context()


class Propagation(Protocol):
    """Reads and writes; `fields` are the names of the headers, in lower case."""

    @property
    def fields(self) -> frozenset[str]:
        """The names of the headers that are written."""

    def read(self, carrier: Mapping[str, str]) -> SpanContext | None:
        """The span that these headers name, by lower-case name; None where there is none."""

    def write(self, context: SpanContext) -> dict[str, str]:
        """The headers that name this span."""


class W3C:
    """Trace Context, Level 1, of the W3C."""

    fields: Final = frozenset(TRACE_HEADERS)

    def read(self, carrier: Mapping[str, str]) -> SpanContext | None:
        """See `Propagation`. A state that is malformed or too long is none."""
        value = carrier.get(TRACEPARENT)
        if value is None or len(value) > MAX_HEADER_BYTES:
            return None
        found = _PARENT.fullmatch(value)
        if found is None:
            return None
        version, trace_id, span_id, flags, more = found.groups()
        if version == "ff" or (version == "00" and more):
            return None
        state = carrier.get(TRACESTATE)
        states = None if state is None or len(state) > MAX_HEADER_BYTES else TraceState.from_header([state])
        context = SpanContext(int(trace_id, 16), int(span_id, 16), True, TraceFlags(int(flags, 16)), states)
        return context if context.is_valid else None

    def write(self, context: SpanContext) -> dict[str, str]:
        """See `Propagation`."""
        told = {TRACEPARENT: f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"}
        if context.trace_state:
            told[TRACESTATE] = context.trace_state.to_header()
        return told


class Configured:
    """What a propagator of the SDK does."""

    def __init__(self, propagator: TextMapPropagator) -> None:
        self._propagator = propagator
        self.fields = frozenset(name.lower() for name in propagator.fields) - {BAGGAGE}

    def read(self, carrier: Mapping[str, str]) -> SpanContext | None:
        """See `Propagation`."""
        around = self._propagator.extract(carrier, _NOWHERE, _BOUNDED)
        context = trace.get_current_span(around).get_span_context()
        return context if context.is_valid else None

    def write(self, context: SpanContext) -> dict[str, str]:
        """See `Propagation`."""
        told: dict[str, str] = {}
        self._propagator.inject(told, trace.set_span_in_context(NonRecordingSpan(context), _NOWHERE))
        return {name.lower(): value for name, value in told.items()}


class _Bounded(Getter[Mapping[str, str]]):
    """Headers by lower-case name; what is too long is not there, and baggage never is."""

    def get(self, carrier: Mapping[str, str], key: str) -> list[str] | None:
        """A list of one."""
        name = key.lower()
        value = carrier.get(name)
        return None if value is None or len(value) > MAX_HEADER_BYTES or name == BAGGAGE else [value]

    def keys(self, carrier: Mapping[str, str]) -> list[str]:
        """All names."""
        return list(carrier)


_BOUNDED: Final = _Bounded()
