"""What spans say of requests, signals, decisions and responses: names and values, as docs/traces.md has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from opentelemetry.sdk.trace import Event

from router.extproc.reading import ResponseFacts
from router.extproc.telling.handled import Handled
from router.extproc.telling.measures import OPERATIONS
from router.records.record import NO_CAPABLE_MODEL, DecisionRecord
from router.records.record_id import time_of
from router.signals.base import Evidence, Observation, SignalName
from router.telemetry import span_names as names

LONGEST_POINTER: Final = 256

_ATTENTION: Final = {"shed": names.SHED, "timed_out": names.TIMED_OUT, "failed": names.SIGNAL_FAILED}


def attention(handled: Handled) -> tuple[str, ...]:
    """What about a request asks for attention, in our words; what a tail sampler should keep has some."""
    if handled.record is None:
        return (names.UNREADABLE if handled.kind == "unreadable" else names.FAILURE,)
    return tuple(dict.fromkeys(_attention(handled.record)))


def _attention(record: DecisionRecord) -> Iterator[str]:
    verdict = record.verdict
    if any(one.guard for one in verdict.decisions if one.name == verdict.decision):
        yield names.WON_BY_GUARD
    if verdict.overran:
        yield names.NOT_JUDGED
    if record.resolution is not None and record.resolution.upstream is None:
        yield names.NO_MODEL
    for name, answer in verdict.observations.items():
        if name not in verdict.reads and answer.status in _ATTENTION:
            yield _ATTENTION[answer.status]


def of_request(handled: Handled) -> Iterator[tuple[str, Any]]:
    """Of the request's span."""
    record = handled.record
    if handled.api is not None:
        operation, provider = OPERATIONS[handled.api]
        yield names.OPERATION, operation
        yield names.PROVIDER, provider
        yield names.API, handled.api
    yield names.RECORD, handled.identifier
    yield names.POLICY, handled.policy
    yield names.OUTCOME, handled.outcome
    yield names.ENFORCED, handled.enforced
    yield from _given((names.HTTP_STATUS, handled.status))
    wanting = attention(handled)
    if wanting:
        yield names.ATTENTION, wanting
    if record is None:
        yield names.ERROR_TYPE, handled.failure
        yield names.BODY_SIZE, handled.body_bytes
        return
    if record.verdict.overran:
        yield names.ERROR_TYPE, names.NOT_JUDGED
    elif names.NO_MODEL in wanting:
        yield names.ERROR_TYPE, NO_CAPABLE_MODEL
    yield names.DECISION, record.decision
    yield names.REASON, record.verdict.reason
    yield names.REQUEST_STREAM, record.stream
    yield from _given(
        (names.REQUEST_MODEL, record.requested_model),
        (names.RESPONSE_MODEL, record.model),
        (names.CLUSTER, record.cluster),
        (names.PROFILE, record.verdict.profile),
    )


def of_size(handled: Handled, record: DecisionRecord) -> Iterator[tuple[str, Any]]:
    """Of what was read."""
    yield names.BODY_SIZE, handled.body_bytes
    yield names.TURNS, record.turns
    yield names.IMAGES, record.images


def of_answer(name: SignalName, answer: Observation, *, asked: bool) -> Iterator[tuple[str, Any]]:
    """Of a signal that was `asked`, or of a projection."""
    yield names.SIGNAL_NAME, str(name)
    yield names.FAMILY, name.family
    yield names.STATUS, answer.status
    yield names.EVIDENCE_COUNT, len(answer.evidence)
    if asked:
        yield names.QUEUE_TIME, answer.waited
        yield names.COMPUTE_TIME, max(0.0, answer.duration - answer.waited)
    yield from _given(
        (names.MATCHED, None if answer.matched is None else bool(answer.matched)),
        (names.SCORE, _plain(answer.score)),
        (names.VALUE, _plain(answer.value)),
        (names.LABEL, answer.label or None),
        (names.PACK, answer.pack or None),
        (names.ERROR_TYPE, None if answer.status == "observed" else answer.reason or answer.status),
    )
    if asked and answer.status in _ATTENTION:
        yield names.ATTENTION, (_ATTENTION[answer.status],)


def event(piece: Evidence, at: int) -> Event:
    """A piece of evidence."""
    told: dict[str, Any] = {names.POINTER: piece.pointer[:LONGEST_POINTER]}
    told.update(
        _given(
            (names.EVIDENCE_LABEL, piece.label or None),
            (names.EVIDENCE_SCORE, _plain(piece.score)),
            (names.SPAN, None if piece.span is None else tuple(map(int, piece.span))),
            (names.IMAGE_INDEX, None if piece.image is None else int(piece.image)),
        )
    )
    return Event(names.EVIDENCE, told, at)


def of_decision(record: DecisionRecord) -> Iterator[tuple[str, Any]]:
    """Of the verdict."""
    verdict = record.verdict
    yield names.DECISION, record.decision
    yield names.OUTCOME, record.outcome
    yield names.REASON, verdict.reason
    yield names.UNKNOWN_ROOT, verdict.unknown_root
    yield names.SKIPPED, len(verdict.skipped)
    yield from _given((names.CONFIDENCE, _plain(verdict.confidence)))
    for decision in verdict.decisions:
        if decision.name == verdict.decision:
            yield names.GUARD, decision.guard
            yield names.PRIORITY, decision.priority


def of_selection(record: DecisionRecord) -> Iterator[tuple[str, Any]]:
    """Of the choice of the upstream."""
    resolution = record.resolution
    if resolution is None:
        return
    choice = resolution.choice
    yield names.FILTERED, len(resolution.filtered)
    yield names.CANDIDATES, len(choice.propensities) if choice is not None else 0
    yield names.SELECT_REASON, choice.reason if choice is not None else NO_CAPABLE_MODEL
    yield from _given(
        (names.SELECT_BY, resolution.select or None),
        (names.SELECT_FROM, resolution.source),
        (names.PROPENSITY, _plain(choice.propensities[choice.model]) if choice is not None else None),
        (names.RESPONSE_MODEL, record.model),
    )


def of_action(handled: Handled, record: DecisionRecord) -> Iterator[tuple[str, Any]]:
    """Of what was done."""
    yield names.OUTCOME, record.outcome
    yield names.ENFORCED, handled.enforced
    yield from _given((names.HTTP_STATUS, handled.status), (names.CLUSTER, record.cluster))


def of_response(facts: ResponseFacts, decision: str) -> Iterator[tuple[str, Any]]:
    """Of a response. `decision` is one of ours; of the record only what can be an identifier is said."""
    if facts.api is not None:
        operation, provider = OPERATIONS[facts.api]
        yield names.OPERATION, operation
        yield names.PROVIDER, provider
        yield names.API, facts.api
    if time_of(facts.record) is not None:
        yield names.RECORD, facts.record
    yield names.DECISION, decision
    yield names.REQUEST_MODEL, facts.model
    yield names.RESPONSE_MODEL, facts.model
    yield names.HTTP_STATUS, facts.status
    yield names.REQUEST_STREAM, facts.stream
    error = error_of(facts)
    yield from _given(
        (names.FIRST_CHUNK, facts.first),
        (names.INPUT_TOKENS, facts.usage.tokens_in),
        (names.OUTPUT_TOKENS, facts.usage.tokens_out),
        (names.CACHED_TOKENS, facts.usage.cached),
        (names.UNREAD, facts.unread or None),
        (names.ERROR_TYPE, error),
        (names.ATTENTION, None if error is None else (names.RESPONSE_FAILED,)),
    )


def error_of(facts: ResponseFacts) -> str | None:
    """What is wrong with a response, None for nothing."""
    if not 100 <= facts.status < 400:
        return str(facts.status)
    return facts.unread if facts.unread == "broken_off" else None


def _given(*pairs: tuple[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in pairs if value is not None)


def _plain(number: float | None) -> float | None:
    # One of NumPy's cannot be exported, nor can any other span of its batch.
    return None if number is None else float(number)
