"""How long the work of a question waits."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from router.telemetry.waiting import Waiting


def test_nothing_that_runs_at_once_waits() -> None:
    waiting = Waiting()
    assert waiting.seconds == 0.0
    waiting.queued()
    waiting.begun()
    before = waiting.seconds
    assert waiting.seconds == before
    waiting.done()
    assert waiting.seconds == before


def test_a_job_that_waits_beside_one_that_runs_does_not_count() -> None:
    waiting = Waiting()
    waiting.queued()
    waiting.begun()
    before = waiting.seconds
    waiting.queued()
    assert waiting.seconds == before
    waiting.done()
    while waiting.seconds == before:
        pass
    waiting.given_up()
    after = waiting.seconds
    assert waiting.seconds == after > before


@given(st.lists(st.sampled_from(["queued", "begun", "given_up", "done"]), max_size=30))
def test_never_longer_than_it_took_and_never_less_than_before(steps: list[str]) -> None:
    waiting, waits, runs, last = Waiting(), 0, 0, 0.0
    began = time.perf_counter()
    for step in steps:
        if (step in ("begun", "given_up") and not waits) or (step == "done" and not runs):
            continue
        waits += {"queued": 1, "begun": -1, "given_up": -1, "done": 0}[step]
        runs += {"begun": 1, "done": -1}.get(step, 0)
        getattr(waiting, step)()
        assert waiting.seconds >= last
        last = waiting.seconds
        assert last <= time.perf_counter() - began
