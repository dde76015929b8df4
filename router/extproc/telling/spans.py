"""Spans of requests, of responses and of parity misses, made when all is over and handed to whoever exports them.

The times are those of the record, so that the spans of a request lie within its own and show as a waterfall what took
how long. Attributes are facts, words of the policy and digests: never what a client wrote.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from opentelemetry.trace import SpanContext, SpanKind

from router.extproc.reading import ResponseFacts
from router.extproc.telling.attributes import (
    error_of,
    event,
    of_action,
    of_answer,
    of_decision,
    of_request,
    of_response,
    of_selection,
    of_size,
)
from router.extproc.telling.handled import Handled
from router.extproc.telling.measures import OPERATIONS
from router.inference.gate import Miss
from router.records.record import DecisionRecord
from router.signals.base import Observation
from router.telemetry import span_names as names
from router.telemetry.context import Joiner
from router.telemetry.names import Names
from router.telemetry.otel import Exporting
from router.telemetry.sink import Attributes, Sink

MOST_EVENTS: Final = 8
"""Pieces of evidence that a signal's span shows; the record has more."""

MOST_MISSES: Final = 32
"""Spans of one check; the log has every miss."""


class Spans:
    """Makes spans. `known` has the models whose responses are ours. May be called from any thread."""

    def __init__(self, sink: Sink, joiner: Joiner, known: Names) -> None:
        self._sink = sink
        self._joiner = joiner
        self._known = known

    def tell(self, handled: Handled) -> None:
        """The span of a request, and those below it where it was judged; none where it is not sampled."""
        trace = handled.trace
        if trace is None or not trace.sampled:
            return
        clock = _Clock(handled)
        self._sink.put(
            _name(handled),
            trace.context,
            trace.parent,
            clock.began,
            clock.ended,
            dict(of_request(handled)),
            kind=SpanKind.SERVER,
            error=handled.kind == "failure" or (handled.record is not None and handled.record.verdict.overran),
        )
        if handled.record is not None:
            self._below(trace.context, handled, handled.record, clock)

    def _below(self, root: SpanContext, handled: Handled, record: DecisionRecord, clock: _Clock) -> None:
        verdict, parsed = record.verdict, record.parse
        settled = parsed + record.decide - record.select

        def put(name: str, begun: float, ended: float, attributes: Attributes, **rest: Any) -> None:
            self._sink.put(name, self._sink.below(root), root, clock.at(begun), clock.at(ended), attributes, **rest)

        put(names.PARSE, 0.0, parsed, dict(of_size(handled, record)))
        for signal, answer in verdict.observations.items():
            bases = verdict.reads.get(signal)
            if bases is None:
                begun, ended, kind = parsed + answer.at, parsed + answer.at + answer.duration, names.SIGNAL
            else:
                begun = ended = parsed + _last(verdict.observations.get(base) for base in bases)
                kind = names.PROJECTION
            put(
                f"{kind} {signal}",
                begun,
                ended,
                dict(of_answer(signal, answer, asked=bases is None)),
                error=answer.status != "observed",
                events=[event(piece, clock.at(ended)) for piece in answer.evidence[:MOST_EVENTS]],
            )
        asked = parsed + max((stage.at + stage.seconds for stage in verdict.stages), default=0.0)
        put(names.DECIDE, min(asked, settled), settled, dict(of_decision(record)))
        if record.resolution is not None:
            put(names.SELECT, settled, settled + record.select, dict(of_selection(record)))
        put(names.ACT, settled + record.select, handled.seconds, dict(of_action(handled, record)))

    def tell_response(self, facts: ResponseFacts) -> None:
        """The span of a response, below the request's; none where that is not sampled, or its model is none of ours."""
        parent = self._joiner.parent(facts.traced)
        if parent is None or not parent.trace_flags.sampled or self._known.of("model", facts.model) != facts.model:
            return
        self._sink.put(
            names.RESPONSE if facts.api is None else f"{OPERATIONS[facts.api][0]} {facts.model}",
            self._sink.below(parent),
            parent,
            facts.at - int(facts.lasted * 1e9),
            facts.at,
            dict(of_response(facts, self._known.of("decision", facts.decision))),
            kind=SpanKind.CLIENT,
            error=error_of(facts) is not None,
        )

    def tell_misses(self, misses: Sequence[Miss]) -> None:
        """A pack is not what its golden vectors say: a trace of its own for each miss, sampled or not."""
        at = time.time_ns()
        for miss in misses[:MOST_MISSES]:
            told = {
                names.PACK_NAME: miss.pack,
                names.PARITY_STAGE: miss.stage,
                names.ERROR_TYPE: names.PARITY,
                names.ATTENTION: (names.PARITY,),
            }
            self._sink.put(names.PARITY_MISS, self._sink.root(), None, at, at, told, error=True)


def spans_of(exporting: Exporting | None, known: Names) -> Spans | None:
    """What makes spans, where they are exported."""
    if exporting is None or exporting.sink is None or exporting.joiner is None:
        return None
    return Spans(exporting.sink, exporting.joiner, known)


class _Clock:
    """Times of one request: what is said in seconds from its beginning, within its span."""

    def __init__(self, handled: Handled) -> None:
        self.began = handled.began
        self.ended = handled.began + max(0, int(handled.seconds * 1e9))

    def at(self, seconds: float) -> int:
        return min(self.ended, self.began + max(0, int(seconds * 1e9)))


def _name(handled: Handled) -> str:
    operation = OPERATIONS[handled.api][0] if handled.api is not None else names.UNKNOWN_REQUEST
    model = handled.record.model if handled.record is not None else None
    return f"{operation} {model}" if model else operation


def _last(answers: Iterable[Observation | None]) -> float:
    """When the last of these answers was there."""
    return max((answer.at + answer.duration for answer in answers if answer is not None), default=0.0)
