"""A short run of every target: its corpus as it is, and the same few hundred changes of it each time."""

from __future__ import annotations

import logging
import random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.changes import Change, changed, changes
from tests.fuzz.checks import CHECKS
from tests.fuzz.corpus import FOLDER, folder_of, seeds

every_target = pytest.mark.parametrize("target", CHECKS)


@every_target
def test_the_corpus_holds(target: str) -> None:
    assert seeds(target)
    for seed in seeds(target):
        CHECKS[target](seed)
        CHECKS[target](seed[: len(seed) // 2])
    CHECKS[target](b"")


@pytest.mark.slow
@every_target
def test_changes_of_the_corpus_hold(target: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "router")
    corpus = seeds(target)

    @settings(
        max_examples=250,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(st.sampled_from(corpus), changes(), st.sampled_from(corpus))
    def run(seed: bytes, made: list[Change], other: bytes) -> None:
        CHECKS[target](changed(seed, made, other))

    run()


def test_the_corpus_is_small_and_of_targets_only() -> None:
    folders = {folder_of(target) for target in CHECKS}
    assert set(FOLDER.iterdir()) == folders
    files = [file for folder in folders for file in folder.iterdir()]
    assert sum(file.stat().st_size for file in files) < 200_000


def test_a_law_that_does_not_hold_is_found() -> None:
    def check(data: bytes) -> None:
        assert b"\\ud800" not in data

    @settings(max_examples=2_000, derandomize=True, database=None, deadline=None, phases=(Phase.generate,))
    @given(st.sampled_from(seeds("chat")), changes())
    def run(seed: bytes, made: list[Change]) -> None:
        check(changed(seed, made))

    with pytest.raises(AssertionError):
        run()


def test_changes_keep_to_the_length_that_is_allowed() -> None:
    grow = [Change("repeat", 0.0, 1.0, b"")] * 12
    assert len(changed(random.Random(1).randbytes(900), grow, most=5_000)) == 5_000
