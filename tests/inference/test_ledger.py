"""What the last check of each pack found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from router.inference.ledger import Checked, Ledger

FIGURES = st.lists(st.floats(-1, 1), max_size=5)


@given(FIGURES, FIGURES)
def test_the_last_check_is_kept_with_its_worst_figure(first: list[float], second: list[float]) -> None:
    times = iter((10.0, 20.0, 30.0))
    ledger = Ledger(lambda: next(times))
    ledger.enter("pack", "text", first)
    ledger.enter("words", "classifier", first)
    ledger.enter("pack", "text", second)
    assert ledger.last() == (
        Checked("pack", "text", 30.0, cosine=min(second, default=None)),
        Checked("words", "classifier", 20.0, difference=max(first, default=None)),
    )


def test_the_towers_of_one_pack_are_kept_apart() -> None:
    ledger = Ledger(lambda: 1.0)
    ledger.enter("both", "text", [0.5])
    ledger.enter("both", "vision", [0.7])
    assert [(last.tower, last.cosine) for last in ledger.last()] == [("text", 0.5), ("vision", 0.7)]
