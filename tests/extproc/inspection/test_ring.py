"""What a worker remembers of the requests that it handled last, and what it shows of them."""

from __future__ import annotations

import pytest
from handled_requests import decided, failed, observed
from hypothesis import given
from hypothesis import strategies as st

from router.extproc.inspection.remembering import moment, summary_of, whole_of
from router.extproc.inspection.ring import BARE_BYTES, EVIDENCE_BYTES, OBSERVATION_BYTES, Ring, Wanted


def numbers(ring: Ring, wanted: Wanted, limit: int = 100) -> list[str]:
    return [handled.identifier for handled in ring.newest(wanted, limit)]


def test_the_newest_come_first_and_push_the_oldest_out() -> None:
    ring = Ring(requests=3)
    for number in range(5):
        ring.take(decided(number))
    assert numbers(ring, Wanted()) == ["r4", "r3", "r2"]
    assert numbers(ring, Wanted(), limit=2) == ["r4", "r3"]
    assert numbers(ring, Wanted(), limit=0) == []
    assert ring.find("r1") is None
    found = ring.find("r3")
    assert found is not None and found.identifier == "r3"


def test_large_records_push_others_out_before_there_are_many() -> None:
    large = decided(2, signals={"keyword/a": observed(pieces=100)})
    size = BARE_BYTES + OBSERVATION_BYTES + 100 * EVIDENCE_BYTES
    ring = Ring(requests=100, limit=size + BARE_BYTES)
    ring.take(decided(0))
    ring.take(decided(1))
    ring.take(large)
    assert numbers(ring, Wanted()) == ["r2", "r1"]


def test_one_that_is_larger_than_all_there_may_be_is_not_remembered() -> None:
    ring = Ring(limit=BARE_BYTES)
    ring.take(decided(0, signals={"keyword/a": observed()}))
    assert numbers(ring, Wanted()) == []
    assert ring.hits("p") == {"one": 1}


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 10), st.integers(1, 40))
def test_never_more_than_so_many_and_so_many_bytes(pieces: list[int], requests: int, thousands: int) -> None:
    ring = Ring(requests, thousands * 1000)
    for number, count in enumerate(pieces):
        ring.take(decided(number, signals={"keyword/a": observed(pieces=count)}))
    held = [handled for handled in ring.newest(Wanted(), 1000) if handled.record is not None]
    kept = [len(one.evidence) for handled in held for one in (handled.record.verdict.observations.values())]
    assert len(held) <= requests
    assert sum(BARE_BYTES + OBSERVATION_BYTES + EVIDENCE_BYTES * count for count in kept) <= thousands * 1000
    assert [handled.identifier for handled in held] == [f"r{len(pieces) - 1 - n}" for n in range(len(held))]


MIXED = [
    decided(1, "one", "route", "small", {"keyword/a": observed(), "image/b": observed(False)}),
    decided(2, "two", "refuse", None, {"keyword/a": observed(False)}),
    decided(3, "one", "route", "large", {"image/b": observed(None, "timed_out")}),
    failed(4),
    decided(5, "default", "clarify", None),
]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Wanted(), ["r5", "r4", "r3", "r2", "r1"]),
        (Wanted(decision="one"), ["r3", "r1"]),
        (Wanted(decision="failure"), ["r4"]),
        (Wanted(outcome="refuse"), ["r4", "r2"]),
        (Wanted(model="large"), ["r3"]),
        (Wanted(signal="keyword/a"), ["r1"]),
        (Wanted(signal="image/b"), []),
        (Wanted(failed=True), ["r4", "r3"]),
        (Wanted(since=3 * 10**9), ["r5", "r4", "r3"]),
        (Wanted(decision="one", model="small", since=1), ["r1"]),
    ],
)
def test_a_filter_takes_what_it_says(wanted: Wanted, found: list[str]) -> None:
    ring = Ring()
    for handled in MIXED:
        ring.take(handled)
    assert numbers(ring, wanted) == found


def test_requests_are_counted_by_decision_for_the_policy_that_serves() -> None:
    ring = Ring(requests=1)
    for handled in MIXED:
        ring.take(handled)
    assert ring.hits("p") == {"one": 2, "two": 1, "failure": 1, "default": 1}
    assert ring.hits("q") == {}
    ring.take(decided(6, policy="q"))
    assert (ring.hits("p"), ring.hits("q")) == ({}, {"one": 1})


def test_a_request_that_was_not_judged_has_the_keys_of_one_that_was() -> None:
    judged, unjudged = whole_of(decided(1)), whole_of(failed(2))
    assert set(unjudged) == set(judged)
    assert (unjudged["decision"], unjudged["reason"], unjudged["failure"]) == ("failure", "deadline", "deadline")
    assert (unjudged["outcome"], unjudged["status"], unjudged["decisions"]) == ("refuse", 503, [])
    assert (judged["failure"], judged["at"]) == (None, "1970-01-01T00:00:01.000Z")
    assert "decisions" not in summary_of(decided(1))


def test_a_moment_is_told_to_the_millisecond() -> None:
    assert moment(1_700_000_000_123_999_999) == "2023-11-14T22:13:20.123Z"
