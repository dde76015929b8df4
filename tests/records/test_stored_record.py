from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept_records import LOADED, WORDS, record

from router.records.record import MAX_EVIDENCE
from router.records.record_id import first_id, new_record_id, time_of
from router.records.stored import FORMAT, RecordFormatError, decode, encode, observations_of, to_record, to_stored
from router.signals.base import Evidence, Observation

numbers = st.none() | st.floats()
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
evidence = st.builds(
    Evidence,
    words,
    words,
    numbers,
    st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.none() | st.integers(0, 9),
    words,
)
observed_or_not = st.one_of(
    st.builds(Observation, st.just("observed"), st.booleans(), numbers, words, st.lists(evidence).map(tuple)),
    st.builds(Observation, st.sampled_from(["failed", "timed_out", "shed"]), st.none(), numbers, reason=words),
)


def same(one: object, other: object) -> bool:
    """Equal, where nan is nan and 0.0 is not -0.0."""
    return repr(one) == repr(other)


@given(observed_or_not, numbers, st.floats(0, 9))
def test_an_observation_comes_back_to_the_last_bit(answer: Observation, value: float | None, seconds: float) -> None:
    answer = Observation(
        answer.status, answer.matched, answer.score, answer.label, answer.evidence, answer.reason, "p", seconds, value
    )
    stored = decode(encode(to_stored(record(observations={WORDS: answer}))))
    [back] = observations_of(stored).values()
    assert same(back, Observation(**{**_fields(answer), "evidence": answer.evidence[:MAX_EVIDENCE]}))
    assert stored.observations[str(WORDS)].evidence_left_out == max(0, len(answer.evidence) - MAX_EVIDENCE)


def _fields(answer: Observation) -> dict[str, object]:
    return {name: getattr(answer, name) for name in answer.__slots__}


def test_the_whole_record_comes_back_with_its_trees() -> None:
    made = record(observations={WORDS: Observation("observed", True, 1 / 3, evidence=(Evidence("/m", "word"),))})
    back = to_record(decode(encode(to_stored(made))), LOADED.policy)
    assert back.whole() == made.whole()
    assert back.verdict.trace == made.verdict.trace
    assert to_record(to_stored(made), None).summary() == made.summary()


def test_a_number_that_rounding_would_move_over_a_threshold_is_whole() -> None:
    made = record(observations={WORDS: Observation("observed", False, 0.49999999999)})
    assert made.summary()["signals"][str(WORDS)]["score"] == 0.5
    [back] = observations_of(decode(encode(to_stored(made)))).values()
    assert back.score == 0.49999999999


def test_what_is_stored_is_json() -> None:
    made = record(observations={WORDS: Observation("observed", True, math.nan, value=-math.inf)})
    row = json.loads(encode(to_stored(made, "1.2")), parse_constant=pytest.fail)
    assert (row["format"], row["version"], row["record"]) == (FORMAT, "1.2", made.record)
    assert row["observations"]["keyword/words"]["score"] == "nan"


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"\xff", b'{"format": "x"}', b"[" * 100_000])
def test_what_is_no_record_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(RecordFormatError):
        decode(data)


def test_a_record_of_another_format_is_not_misread() -> None:
    row = json.loads(encode(to_stored(record())))
    with pytest.raises(RecordFormatError, match="format 2"):
        decode(json.dumps({**row, "format": 2}).encode())
    assert decode(json.dumps({**row, "of_a_later_release": 1}).encode()).record == row["record"]


@given(st.floats(0, 2**40))
def test_the_first_identifier_of_a_moment_sorts_before_all_from_then_on(seconds: float) -> None:
    assert first_id(seconds) <= first_id(seconds + 0.002)
    assert first_id(seconds)[:13] <= first_id(seconds + 1)[:13]


def test_an_identifier_tells_its_time() -> None:
    one = new_record_id()
    time = time_of(one)
    assert time is not None
    assert first_id(time) < one < first_id(time + 0.002)
    assert time_of("r") is None
    assert time_of("00000000-0000-4000-8000-000000000000") is None
