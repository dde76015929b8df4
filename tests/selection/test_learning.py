from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selection_cases import DECISION, after, events, rewarded, snapshots

from router.selection.learning import MEMORY, RATING_SPREAD, TIMES_KEPT, Measurement, Reward, learn
from router.selection.snapshot import EMPTY, START_RATING, Arm, Snapshot, Speed


@given(snapshots, st.lists(events, max_size=20))
def test_the_state_stays_within_its_bounds(start: Snapshot, more: list[Reward | Measurement]) -> None:
    state = after(*more, start=start)
    assert state.version == start.version + len(more)
    for arms in state.arms.values():
        for arm in arms.values():
            assert 0 <= arm.gained + arm.missed <= MEMORY
            assert abs(arm.rating - START_RATING) <= RATING_SPREAD
    for speed in state.speeds.values():
        assert max(len(speed.ttft), len(speed.latency)) <= TIMES_KEPT


@given(snapshots, events)
def test_a_snapshot_is_not_changed_by_what_is_learnt_from_it(start: Snapshot, event: Reward | Measurement) -> None:
    before = repr(start)
    learn(start, event)
    assert repr(start) == before


def test_sums_never_pass_the_memory() -> None:
    arm = after(*rewarded("a", 1.0, 5 * MEMORY)).arm(DECISION, "a")
    assert MEMORY * 0.99 < arm.gained < MEMORY
    assert arm.rewards == 5 * MEMORY


def test_a_model_that_is_not_asked_any_more_is_forgotten_slowly() -> None:
    known = after(*rewarded("a", 1.0, 100))
    later = after(*rewarded("b", 0.0, MEMORY), start=known)
    assert 30 < later.arm(DECISION, "a").gained < 40  # a hundred, over e
    assert later.arm(DECISION, "a").rewards == 100


def test_a_reward_between_is_partly_gained_and_partly_missed() -> None:
    arm = after(Reward("r", DECISION, "a", 0.25)).arm(DECISION, "a")
    assert (arm.gained, arm.missed, arm.rating) == (0.25, 0.75, START_RATING)


def test_a_comparison_moves_two_ratings_apart_by_the_surprise_and_no_sums() -> None:
    state = after(Reward("r", DECISION, "a", 1.0, "b"))
    assert (state.arm(DECISION, "a").rating, state.arm(DECISION, "b").rating) == (1508.0, 1492.0)
    assert state.arm(DECISION, "a").gained == state.arm(DECISION, "b").missed == 0
    assert after(Reward("s", DECISION, "a", 0.5, "b"), start=EMPTY).arm(DECISION, "a").rating == START_RATING
    expected = 1 / (1 + 10 ** (-16 / 400))
    again = learn(state, Reward("s", DECISION, "a", 1.0, "b")).arm(DECISION, "a").rating
    assert again == pytest.approx(1508 + 16 * (1 - expected))


def test_ratings_stop_at_their_bounds() -> None:
    state = after(*[Reward(str(n), DECISION, "a", 1.0, "b") for n in range(6000)])
    assert abs(state.arm(DECISION, "a").rating - START_RATING) <= RATING_SPREAD
    assert state.arm(DECISION, "a").comparisons == 6000


def test_the_latest_times_are_kept_and_what_was_not_measured_leaves_the_rest() -> None:
    state = after(*[Measurement("a", ttft_ms=float(n)) for n in range(TIMES_KEPT + 5)])
    assert state.speed("a").ttft[0] == 5
    state = learn(state, Measurement("a", load=0.5))
    assert (state.speed("a").load, len(state.speed("a").ttft)) == (0.5, TIMES_KEPT)
    assert learn(state, Measurement("a", latency_ms=1)).speed("a").load == 0.5


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0, 100))
def test_a_percentile_is_one_of_the_times_and_as_many_are_below(times: list[float], percent: float) -> None:
    found = Speed(ttft=tuple(times)).percentile("ttft", percent)
    assert found in times
    assert sum(time < found for time in times) <= len(times) * percent / 100


def test_decisions_learn_by_themselves() -> None:
    state = after(*rewarded("a", 1.0, 3))
    assert state.arm("two", "a") == Arm()
