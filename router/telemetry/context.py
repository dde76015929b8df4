"""Where a request stands among the traces: whose child it is, and what makes the upstream's spans children of ours.

The headers of a request count first, then those that Envoy sent with its own call. What is sampled is the OpenTelemetry
SDK's to say. Values of headers are the client's and stay out of logs and reprs; `baggage` is passed on and never read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision, Sampler
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags

from router.telemetry.propagation import BAGGAGE, MAX_HEADER_BYTES, TRACESTATE, Propagation

_NOWHERE: Final = Context()
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_NOT_SAMPLED: Final = TraceFlags(TraceFlags.DEFAULT)


@dataclass(frozen=True, slots=True)
class Trace:
    """A request's span to be. `context` has its ids, `parent` is None where the trace begins here.

    `headers` are set on the request to the upstream, those named in `remove` are taken away.
    """

    context: SpanContext
    parent: SpanContext | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    remove: tuple[str, ...] = ()

    @property
    def sampled(self) -> bool:
        """Whether spans are made."""
        return self.context.trace_flags.sampled

    @property
    def trace_id(self) -> str:
        """In hex, as logs have it."""
        return trace.format_trace_id(self.context.trace_id)


class Joiner:
    """Joins requests to traces. May be used from several threads; holds nothing of a request."""

    def __init__(
        self, sampler: Sampler, ids: IdGenerator, propagation: Propagation, name: str, *, baggage: bool = True
    ) -> None:
        """`name` is what samplers are told the span is called; `baggage` says that Envoy's is passed on as well."""
        self._sampler = sampler
        self._ids = ids
        self._propagation = propagation
        self._name = name
        self._baggage = baggage

    def parent(self, carrier: Mapping[str, str]) -> SpanContext | None:
        """Whose children spans are of a request with these headers."""
        return self._propagation.read(carrier)

    def join(self, headers: Mapping[str, str], carried: Mapping[str, str]) -> Trace:
        """The place of a request with these headers, that came in a call with those; both by lower-case name."""
        parent, own = self._propagation.read(headers), True
        if parent is None and carried:
            parent = self._propagation.read(carried)
            own = parent is None
        around = _NOWHERE if parent is None else trace.set_span_in_context(NonRecordingSpan(parent), _NOWHERE)
        trace_id = self._ids.generate_trace_id() if parent is None else parent.trace_id
        sampling = self._sampler.should_sample(around, trace_id, self._name, SpanKind.SERVER)
        flags = _SAMPLED if sampling.decision is Decision.RECORD_AND_SAMPLE else _NOT_SAMPLED
        context = SpanContext(trace_id, self._ids.generate_span_id(), False, flags, sampling.trace_state)
        told = self._propagation.write(context)
        removed = tuple(name for name in self._propagation.fields if name in headers and name not in told)
        if not own:
            told |= self._baggage_of(headers, carried)
        elif TRACESTATE in told and parent is not None and parent.trace_state == context.trace_state:
            # It goes on as it came: written anew it might be other bytes.
            del told[TRACESTATE]
        return Trace(context, parent, tuple(told.items()), removed)

    def _baggage_of(self, headers: Mapping[str, str], carried: Mapping[str, str]) -> dict[str, str]:
        """Envoy's, where the request has none."""
        baggage = carried.get(BAGGAGE)
        if not self._baggage or baggage is None or BAGGAGE in headers or len(baggage) > MAX_HEADER_BYTES:
            return {}
        return {BAGGAGE: baggage}
