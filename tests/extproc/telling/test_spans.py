"""Spans of requests, responses and parity misses, as they are made of what is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import StatusCode

from router.extproc.reading import ResponseFacts
from router.extproc.telling.handled import Handled
from router.extproc.telling.spans import MOST_EVENTS, MOST_MISSES, Spans
from router.extproc.usage import Usage
from router.inference.gate import Miss
from router.policy.model import Clarify, Decision, Route
from router.policy.predicate import Leaf
from router.policy.resolve import Resolution
from router.policy.verdict import Stage, Verdict
from router.records.record import DecisionRecord
from router.records.record_id import new_record_id
from router.selection.choice import Choice
from router.selection.model import Static
from router.selection.needs import Needs
from router.selection.upstream import Upstream
from router.signals.base import Evidence, Observation, SignalName, failed, observed, shed
from router.telemetry import span_names as names
from router.telemetry.context import Joiner
from router.telemetry.names import Names
from router.telemetry.propagation import W3C
from router.telemetry.sink import Sink

WORDS, ATTACK, RISK = SignalName("keyword", "words"), SignalName("jailbreak", "attack"), SignalName("score", "risk")
NEEDS = Needs(frozenset(), frozenset(), frozenset(), 1, 1, ())
PARENT = f"00-{'1' * 32}-{'2' * 16}-01"


class Kept(SpanProcessor):
    """What was ended."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)

    def named(self, name: str) -> ReadableSpan:
        [found] = [span for span in self.spans if span.name == name]
        return found


def made(sampler: Sampler | None = None) -> tuple[Spans, Kept, Joiner]:
    kept, ids = Kept(), RandomIdGenerator()
    joiner = Joiner(sampler or ParentBased(ALWAYS_ON), ids, W3C(), "test")
    known = Names()
    known.admit("model", ["m"])
    known.admit("decision", ["d"])
    return Spans(Sink([kept], ids, Resource({}), InstrumentationScope("test")), joiner, known), kept, joiner


def record(
    answers: dict[SignalName, Observation],
    *,
    parse: float = 0.001,
    decide: float = 0.01,
    select: float = 0.001,
    stages: tuple[Stage, ...] = (),
    guard: bool = False,
    unknown: bool = False,
    able: bool = True,
) -> DecisionRecord:
    decision = Decision("d", 1, guard, guard, Leaf(ATTACK), Clarify("?") if guard else Route(("m",), Static()), 1)
    upstream = Upstream("m", "c", None, "m", ("text",))
    choice = Choice("m", "first", {"m": 1.0}, {}) if able else None
    verdict = Verdict(
        "d",
        decision.outcome,
        "priority",
        1.0,
        unknown,
        True,
        answers,
        (),
        stages,
        decide,
        (decision,),
        {RISK: (ATTACK, WORDS)},
    )
    return DecisionRecord(
        new_record_id(),
        "digest",
        "openai.chat",
        None,
        "d",
        "route",
        "m" if able else None,
        "c" if able else None,
        verdict,
        10,
        1,
        0,
        False,
        parse,
        decide,
        parse + decide,
        Resolution(upstream if able else None, choice, "route", "static", 0, 0, "", {}, NEEDS),
        select=select,
    )


def handled(joiner: Joiner, one: DecisionRecord | None, seconds: float = 1.0, **rest: object) -> Handled:
    trace = joiner.join({"traceparent": PARENT}, {})
    base = Handled("decision", "openai.chat", "id", one, "digest", "route", 10**18, seconds, trace=trace)
    return replace(base, **rest)  # type: ignore[arg-type]


seconds = st.floats(0, 100)
answers = st.builds(lambda took, at, waited: observed(True, 0.5).took(took, waited, at), seconds, seconds, seconds)


@given(answers, answers, seconds, seconds, seconds, seconds, st.lists(st.tuples(seconds, seconds), max_size=2))
def test_every_span_lies_within_the_requests_and_the_parts_follow_each_other(
    one: Observation,
    other: Observation,
    parse: float,
    decide: float,
    select: float,
    whole: float,
    stages: list[tuple[float, float]],
) -> None:
    spans, kept, joiner = made()
    staged = tuple(Stage("learned", (ATTACK,), took, at) for took, at in stages)
    found = {WORDS: one, ATTACK: other, RISK: observed(True, 0.5)}
    spans.tell(handled(joiner, record(found, parse=parse, decide=decide, select=select, stages=staged), whole))
    root = kept.spans[0]
    assert root.context is not None
    assert len(kept.spans) == 8
    for span in kept.spans:
        assert root.start_time <= span.start_time <= span.end_time <= root.end_time  # type: ignore[operator]
    for span in kept.spans[1:]:
        assert span.parent == root.context
    parts = [kept.named(name) for name in (names.PARSE, names.DECIDE, names.SELECT, names.ACT)]
    if select <= decide and parse + decide <= whole:
        assert sum(part.end_time - part.start_time for part in parts) <= root.end_time - root.start_time  # type: ignore[operator]


def test_queue_and_compute_time_are_a_signals_seconds() -> None:
    spans, kept, joiner = made()
    spans.tell(handled(joiner, record({ATTACK: observed(False, 0.1).took(0.5, 0.2, 0.1)})))
    span = kept.named("signal jailbreak/attack")
    assert span.attributes is not None
    assert span.attributes[names.QUEUE_TIME] == 0.2
    assert span.attributes[names.COMPUTE_TIME] == pytest.approx(0.3)
    assert span.end_time - span.start_time == pytest.approx(0.5e9, abs=2)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("answer", "mark"),
    [
        (shed(), names.SHED),
        (failed("truncated"), names.SIGNAL_FAILED),
        (Observation("timed_out", None, reason="deadline"), names.TIMED_OUT),
    ],
)
def test_a_signal_without_an_answer_is_an_error_and_marks_the_request(answer: Observation, mark: str) -> None:
    spans, kept, joiner = made()
    spans.tell(handled(joiner, record({ATTACK: answer, WORDS: observed(True)})))
    asked = kept.named("signal jailbreak/attack")
    assert asked.status.status_code is StatusCode.ERROR
    assert asked.attributes is not None
    assert names.MATCHED not in asked.attributes
    assert asked.attributes[names.ERROR_TYPE] == answer.reason
    root = kept.spans[0]
    assert root.attributes is not None
    assert root.attributes[names.ATTENTION] == (mark,)
    assert root.status.status_code is StatusCode.UNSET


def test_a_guard_that_had_no_time_to_look_is_an_error() -> None:
    spans, kept, joiner = made()
    late = Observation("timed_out", None, reason="deadline")
    spans.tell(handled(joiner, record({ATTACK: late}, guard=True, unknown=True)))
    root = kept.spans[0]
    assert root.attributes is not None
    assert root.attributes[names.ATTENTION] == (names.WON_BY_GUARD, names.NOT_JUDGED, names.TIMED_OUT)
    assert root.attributes[names.ERROR_TYPE] == names.NOT_JUDGED
    assert root.status.status_code is StatusCode.ERROR


def test_nobody_who_can_is_marked() -> None:
    spans, kept, joiner = made()
    spans.tell(handled(joiner, record({}, able=False)))
    root = kept.named("chat")
    assert root.attributes is not None
    assert root.attributes[names.ATTENTION] == (names.NO_MODEL,)


@pytest.mark.parametrize(("api", "name"), [("anthropic.messages", "chat"), (None, names.UNKNOWN_REQUEST)])
def test_a_failure_is_one_span_that_is_an_error(api: str | None, name: str) -> None:
    spans, kept, joiner = made()
    spans.tell(handled(joiner, None, kind="failure", failure="deadline", api=api, status=503, outcome="refuse"))
    [span] = kept.spans
    assert (span.name, span.status.status_code) == (name, StatusCode.ERROR)
    assert span.attributes is not None
    assert span.attributes[names.ERROR_TYPE] == "deadline"
    assert span.attributes[names.ATTENTION] == (names.FAILURE,)


def test_evidence_is_bounded_and_says_which_image() -> None:
    spans, kept, joiner = made()
    pieces = tuple(Evidence(f"/messages/{i}" + "/x" * 500, "word", 0.5, (1, 2), i) for i in range(100))
    spans.tell(handled(joiner, record({ATTACK: observed(True, 0.5, evidence=pieces)})))
    span = kept.named("signal jailbreak/attack")
    assert len(span.events) == MOST_EVENTS
    told = span.events[3].attributes
    assert told is not None
    assert (told[names.IMAGE_INDEX], told[names.SPAN]) == (3, (1, 2))
    assert len(str(told[names.POINTER])) < 300
    assert span.attributes is not None
    assert span.attributes[names.EVIDENCE_COUNT] == 100


def test_what_is_not_sampled_or_not_traced_is_no_span() -> None:
    spans, kept, joiner = made(ALWAYS_OFF)
    spans.tell(handled(joiner, record({})))
    spans.tell(replace(handled(joiner, record({})), trace=None))
    assert not kept.spans


def facts(**rest: object) -> ResponseFacts:
    usage = Usage(3, 4, 1)
    base = ResponseFacts("m", "d", new_record_id(), 200, True, usage, 0.5, 2.0, "", "openai.chat", 10**18, 2.0)
    return replace(base, traced={"traceparent": PARENT}, **rest)  # type: ignore[arg-type]


def test_a_response_is_a_child_of_the_span_that_its_request_went_on_with() -> None:
    spans, kept, _ = made()
    spans.tell_response(facts())
    [span] = kept.spans
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == "2" * 16
    assert span.end_time - span.start_time == 2 * 10**9  # type: ignore[operator]
    assert span.attributes is not None
    assert span.name == "chat m"
    assert span.attributes[names.REQUEST_MODEL] == "m"
    assert span.attributes[names.INPUT_TOKENS] == 3
    assert span.attributes[names.OUTPUT_TOKENS] == 4
    assert span.attributes[names.FIRST_CHUNK] == 0.5
    assert names.ATTENTION not in span.attributes


@pytest.mark.parametrize(
    ("rest", "error"),
    [({"status": 503}, "503"), ({"unread": "broken_off", "whole": None}, "broken_off"), ({"status": 0}, "0")],
)
def test_a_response_that_failed_is_marked(rest: dict[str, object], error: str) -> None:
    spans, kept, _ = made()
    spans.tell_response(facts(**rest))
    [span] = kept.spans
    assert span.attributes is not None
    assert span.attributes[names.ERROR_TYPE] == error
    assert span.attributes[names.ATTENTION] == (names.RESPONSE_FAILED,)
    assert span.status.status_code is StatusCode.ERROR


def test_what_is_no_response_of_ours_says_nothing() -> None:
    spans, kept, _ = made()
    spans.tell_response(facts(model="CANARY"))
    spans.tell_response(replace(facts(), traced={}))
    spans.tell_response(replace(facts(), traced={"traceparent": PARENT[:-1] + "0"}))
    assert not kept.spans
    spans.tell_response(facts(record="CANARY", decision="CANARY"))
    [span] = kept.spans
    assert "CANARY" not in span.to_json()


def test_a_parity_miss_is_a_trace_of_its_own_whatever_the_sampler_says() -> None:
    spans, kept, _ = made(ALWAYS_OFF)
    spans.tell_misses([Miss("pack", "embeddings", "off by 0.2")] * 100)
    assert len(kept.spans) == MOST_MISSES
    span = kept.spans[0]
    assert (span.name, span.parent, span.status.status_code) == (names.PARITY_MISS, None, StatusCode.ERROR)
    assert span.context is not None
    assert span.context.trace_flags.sampled
    assert span.attributes is not None
    assert span.attributes[names.ATTENTION] == (names.PARITY,)
