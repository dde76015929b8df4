"""Counts by labels, bounded, and the pace of what is dear."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from router.telemetry.tally import Pace, Tally

WORDS = st.sampled_from(["a", "b", "c", "d", "other"])


@given(st.lists(st.tuples(WORDS, WORDS, st.booleans()), max_size=60), st.integers(0, 6))
def test_nothing_is_lost_and_there_are_never_more_series_than_allowed(
    counted: list[tuple[str, str, bool]], most: int
) -> None:
    tally = Tally(("one", "two"), most)
    expected: Counter[tuple[str, str]] = Counter()
    for one, two, begins in counted:
        if begins:
            tally.begin(one, two)
        else:
            tally.add(one, two)
            expected[one, two] += 1
    found = {(labels["one"], labels["two"]): count for count, labels in tally.readings()}
    assert len(found) <= most + 1
    assert sum(found.values()) == expected.total()
    beyond = ("other", "other")
    assert all(count == expected[labels] for labels, count in found.items() if labels != beyond)


def test_a_series_that_is_begun_keeps_what_it_has() -> None:
    tally = Tally(("one",), 5)
    tally.add("a")
    tally.begin("a")
    tally.begin("b")
    assert list(tally.readings()) == [(1, {"one": "a"}), (0, {"one": "b"})]


@given(st.lists(st.floats(0, 3), max_size=60), st.integers(1, 5))
def test_a_pace_is_kept_over_any_time(waits: list[float], a_second: int) -> None:
    now = 0.0
    pace = Pace(a_second, lambda: now)
    allowed = []
    for wait in waits:
        now += wait
        if pace.allows():
            allowed.append(now)
    for start, first in enumerate(allowed):
        for last in allowed[start:]:
            assert sum(first <= at <= last for at in allowed) <= (last - first) * a_second + a_second + 1e-6
    assert not waits or allowed
