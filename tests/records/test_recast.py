from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.config.load import parse_policy
from router.records.basis import definitions, stored_basis
from router.records.recast import KEYS, recast
from router.signals.base import Evidence, Observation, SignalName, observed
from router.signals.context import ContextSettings, ContextSignal
from router.signals.pictures import OVERLOADED, settle
from router.signals.registry import FAMILIES

few = st.sampled_from([0.0, 0.2, 0.4, 0.5, 0.7, 1.0])
results = st.lists(
    st.one_of(
        st.builds(Evidence, st.just("/p"), st.sampled_from("xyz"), few),
        st.builds(Evidence, st.just("/p"), detail=st.sampled_from(["truncated", OVERLOADED])),
    ),
    max_size=4,
)


@given(results, few, few)
def test_an_answer_by_the_best_part_is_read_again_as_it_would_have_been_given(
    found: list[Evidence], old: float, new: float
) -> None:
    then = settle(found, lambda score: score >= old, "pack")
    now = settle(found, lambda score: score >= new, "pack")
    read = recast("image", then, (old, None), (new, None))
    if read is not None:
        assert (read.status, read.matched, read.score, read.label, read.reason) == (
            now.status,
            now.matched,
            now.score,
            now.label,
            now.reason,
        )
    elif all(each.score is not None for each in found):
        pytest.fail("all parts were judged, so that any threshold can be tried")


ends = st.none() | st.integers(1, 20)


@given(st.integers(0, 25), ends, ends)
def test_a_count_is_held_against_any_bounds(tokens: int, low: int | None, high: int | None) -> None:
    read = recast("context", observed(tokens >= 3, value=float(tokens)), (3, None), (low, high))
    assert read is not None
    settings = ContextSettings.model_construct(min_tokens=low, max_tokens=high, image_tokens="none")
    signal = ContextSignal(SignalName("context", "long"), settings, None)
    assert read.matched is signal._within(tokens)


def test_a_count_that_was_not_finished_tells_nothing_of_other_bounds() -> None:
    assert recast("context", observed(True), (3, None), (4, None)) is None
    late = Observation("timed_out", None)
    assert recast("context", late, (3, None), (4, None)) is late


POLICY = """\
version: 1
upstreams: [{model: a, cluster: x}]
default_model: a
encoders: {text: starter, vision: starter}
signals:
  image: {one: {concepts: [a passport], against: [a car], threshold: 0.5}}
  embedding:
    hard: {texts: [a test result], threshold: 0.5}
    soft: {texts: [a test result], threshold: 0.5, mode: soft}
  jailbreak: {attack: {threshold: 0.5}}
"""


def test_the_threshold_is_part_of_what_a_signal_is_where_more_depends_on_it() -> None:
    old = parse_policy(POLICY.encode(), Path("p.yaml"))
    new = parse_policy(POLICY.replace("threshold: 0.5", "threshold: 0.6").encode(), Path("p.yaml"))
    before, after = definitions(old, {}), definitions(new, {})
    assert {name for name in before if before[name] != after[name]} == {"embedding/soft", "jailbreak/attack"}
    assert stored_basis(new, {}).ranges == {"image/one": (0.6, None), "embedding/hard": (0.6, None)}


@pytest.mark.parametrize("family", KEYS)
def test_the_keys_of_a_range_are_keys_of_the_family(family: str) -> None:
    assert FAMILIES[family].settings.model_fields.keys() >= KEYS[family]
