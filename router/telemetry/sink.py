"""Takes spans that are over, with the times and identifiers that they are given, to those who export them.

A span is made in one go, after the fact: nothing of it costs on the path of a request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.util.types import AttributeValue

Attributes = Mapping[str, AttributeValue]

_UNSET: Final = Status(StatusCode.UNSET)
_ERROR: Final = Status(StatusCode.ERROR)


class Sink:
    """Where spans go. May be called from any thread."""

    def __init__(
        self,
        processors: Sequence[SpanProcessor],
        ids: IdGenerator,
        resource: Resource,
        scope: InstrumentationScope,
    ) -> None:
        self._processors = tuple(processors)
        self._ids = ids
        self._resource = resource
        self._scope = scope

    def root(self) -> SpanContext:
        """A trace of its own, which no sampler is asked about."""
        flags = TraceFlags(TraceFlags.SAMPLED)
        return SpanContext(self._ids.generate_trace_id(), self._ids.generate_span_id(), False, flags)

    def below(self, parent: SpanContext) -> SpanContext:
        """A child of this span."""
        return SpanContext(parent.trace_id, self._ids.generate_span_id(), False, parent.trace_flags, parent.trace_state)

    def put(
        self,
        name: str,
        context: SpanContext,
        parent: SpanContext | None,
        begun: int,
        ended: int,
        attributes: Attributes,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        error: bool = False,
        events: Sequence[Event] = (),
    ) -> None:
        """One span; times are in nanoseconds since the epoch."""
        span = ReadableSpan(
            name,
            context,
            parent,
            self._resource,
            attributes,
            events,
            (),
            kind,
            None,
            _ERROR if error else _UNSET,
            begun,
            ended,
            self._scope,
        )
        for processor in self._processors:
            processor.on_end(span)
